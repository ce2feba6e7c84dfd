// Is a User or Team that an object refers to there, and of the same instance?
import type { Effect, Finding } from '#core/finding.ts';
import { referenceFound } from '#core/rules/reference-found.ts';
import type { Found } from '../check.ts';
import type { Lookup } from '../lookup.ts';
import type { Draft } from '../subject.ts';
import { instanceOf, toReference } from './instance-of.ts';

export interface Reference {
  readonly object: Draft;
  readonly kind: 'User' | 'Team';
  readonly path: string;
  readonly name: string | undefined;
  /** What each of the two problems leads to; a refusal by default. */
  readonly effect?: Effect;
}

export function referenceProblem(reference: Reference, lookup: Lookup): Found {
  const { name } = reference;
  return name === undefined ? [] : ask({ ...reference, name }, lookup);
}

async function ask(reference: Reference & { readonly name: string }, lookup: Lookup): Promise<Finding[]> {
  const { object, kind, path, name, effect } = reference;
  const { namespace } = object.metadata;
  const found = await (kind === 'User' ? lookup.user(namespace, name) : lookup.team(namespace, name));
  const own = await instanceOf(object, lookup);
  const referred = found && {
    instance: toReference(found.spec),
    isDeleted: found.metadata.deletionTimestamp !== undefined,
  };
  // Where the object's own instance is not found, that is said already, and is the likelier mistake.
  const instance = own?.instance === undefined ? undefined : own;
  const problem = referenceFound({ kind, path, name, namespace, effect }, referred, instance);
  return problem === undefined ? [] : [problem];
}
