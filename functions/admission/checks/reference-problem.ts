// Is a User or Team that an object refers to there, and of the same instance?
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Effect, Finding } from '../finding.ts';
import type { Draft } from '../subject.ts';
import { sameInstance, toReference } from './instance-of.ts';

export interface Reference {
  readonly object: Draft;
  readonly kind: 'User' | 'Team';
  readonly path: string;
  readonly name: string;
  readonly found: KubeObject | undefined;
  /** What each of the two problems leads to; a refusal by default. */
  readonly effect?: Effect;
}

export function referenceProblem({ object, kind, path, name, found, effect }: Reference): Finding[] {
  const where = `namespace ${JSON.stringify(object.metadata.namespace)}`;
  if (found === undefined) {
    const message = `there is no ${kind} of this name in ${where}: create it first, or correct the name`;
    return [{ rule: `${kind}NotFound`, path, value: name, message, effect: effect ?? 'refuse-unless-dry-run' }];
  }
  if (toReference(object.spec) === undefined || sameInstance(found.spec, object.spec)) return [];
  const { namespace, name: other } = toReference(found.spec) ?? {};
  const message = `this ${kind} belongs to another instance (${namespace}/${other}): refer to one of the same instance`;
  return [{ rule: `${kind}OfOtherInstance`, path, value: name, message, effect: effect ?? 'refuse' }];
}
