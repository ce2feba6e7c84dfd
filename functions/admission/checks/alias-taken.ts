// Has another object of the same instance this alias? Advice only: two creates race, and the claim in the database decides.
import type { Finding } from '#core/finding.ts';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import { aliasTaken } from '#core/rules/alias-taken.ts';
import type { InstanceName } from '#core/rules/instance-found.ts';
import type { Found } from '../check.ts';
import type { Lookup } from '../lookup.ts';
import type { Draft } from '../subject.ts';
import { sameInstance, toReference } from './instance-of.ts';
import { INSTANCE_FIELD } from './keys-of-instance.ts';

export interface AliasClaim {
  readonly object: Draft;
  readonly resource: Resource;
  /** The selectable field, and what stands there. */
  readonly field: string;
  readonly alias: string | undefined;
  /** The object that may have it: by default the judged one. */
  readonly owner?: string | undefined;
}

export function findAliasTaken(claim: AliasClaim, lookup: Lookup): Found {
  const instance = toReference(claim.object.spec);
  const { alias } = claim;
  return alias === undefined || alias === '' || instance === undefined
    ? []
    : ask({ ...claim, alias }, instance, lookup);
}

async function ask(
  claim: AliasClaim & { readonly alias: string },
  instance: InstanceName,
  lookup: Lookup,
): Promise<Finding[]> {
  const { object, resource, field, alias, owner = object.metadata.name } = claim;
  const { namespace } = object.metadata;
  // An instance that does not admit the namespace tells nothing of itself, not even which aliases and addresses it has.
  if ((await lookup.instance(instance.namespace, instance.name, namespace)) === undefined) return [];
  const isOwner = ({ metadata }: KubeObject) => metadata.namespace === namespace && metadata.name === owner;
  const same = await lookup.select(resource, { [field]: alias, [INSTANCE_FIELD]: instance.name });
  const other = same.find((one) => !isOwner(one) && sameInstance(one.spec, object.spec));
  if (other === undefined) return [];
  const holder = { kind: resource.kind, namespace: other.metadata.namespace, name: other.metadata.name };
  return [aliasTaken({ path: field, alias, instance, from: namespace, holder })];
}
