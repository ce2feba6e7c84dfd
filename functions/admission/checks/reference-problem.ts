// Is a User or Team that an object refers to there, and of the same instance?
import type { Effect, Finding } from '../finding.ts';
import type { Lookup } from '../lookup.ts';
import type { Draft } from '../subject.ts';
import { instanceOf, sameInstance, toReference } from './instance-of.ts';

export interface Reference {
  readonly object: Draft;
  readonly kind: 'User' | 'Team';
  readonly path: string;
  readonly name: string | undefined;
  /** What each of the two problems leads to; a refusal by default. */
  readonly effect?: Effect;
}

export async function referenceProblem(reference: Reference, lookup: Lookup): Promise<Finding[]> {
  const { object, kind, path, name, effect } = reference;
  if (name === undefined) return [];
  const { namespace } = object.metadata;
  const found = await (kind === 'User' ? lookup.user(namespace, name) : lookup.team(namespace, name));
  if (found === undefined) {
    const message = `there is no ${kind} of this name in namespace ${JSON.stringify(namespace)}: create it first, or correct the name`;
    return [{ rule: `${kind}NotFound`, path, value: name, message, effect: effect ?? 'refuse-unless-dry-run' }];
  }
  // Where the object's own instance is not found, that is said already, and is the likelier mistake.
  if (sameInstance(found.spec, object.spec) || (await instanceOf(object, lookup))?.instance === undefined) return [];
  const other = toReference(found.spec);
  const message = `this ${kind} belongs to another instance (${other?.namespace}/${other?.name}): refer to one of the same instance`;
  return [{ rule: `${kind}OfOtherInstance`, path, value: name, message, effect: effect ?? 'refuse' }];
}
