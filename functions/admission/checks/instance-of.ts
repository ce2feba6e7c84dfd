// Which instance does a key, a user or a team refer to?
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Lookup } from '../lookup.ts';
import { KeyView, toView } from '../spec-views.ts';
import type { Draft } from '../subject.ts';

export interface InstanceReference {
  readonly namespace: string;
  readonly name: string;
  /** Undefined: not there, or not for this namespace. */
  readonly instance: KubeObject | undefined;
}

/** Undefined where the reference itself is malformed, which the schema says. */
export async function instanceOf(object: Draft, lookup: Lookup): Promise<InstanceReference | undefined> {
  const reference = toReference(object.spec);
  if (reference === undefined) return undefined;
  const { namespace, name } = reference;
  return { namespace, name, instance: await lookup.instance(namespace, name, object.metadata.namespace) };
}

export function toReference(spec: unknown): { readonly namespace: string; readonly name: string } | undefined {
  const { name, namespace } = toView(KeyView, spec).connectionRef?.instanceRef ?? {};
  return name === undefined || namespace === undefined ? undefined : { namespace, name };
}

/** Whether two objects belong to the same instance. */
export function sameInstance(one: unknown, other: unknown): boolean {
  const [left, right] = [toReference(one), toReference(other)];
  return left !== undefined && left.name === right?.name && left.namespace === right.namespace;
}
