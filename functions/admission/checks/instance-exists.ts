// Is there such an instance, and does it admit this namespace? Who is not admitted gets the answer of a missing one.
import { instanceIsDeleted, instanceNotFound } from '#core/rules/instance-found.ts';
import type { Check } from '../check.ts';
import { instanceOf } from './instance-of.ts';

export const instanceExists: Check = async ({ object }, lookup) => {
  const reference = await instanceOf(object, lookup);
  if (reference === undefined) return [];
  const { instance } = reference;
  if (instance === undefined) return [instanceNotFound(reference, object.metadata.namespace)];
  return instance.metadata.deletionTimestamp === undefined ? [] : [instanceIsDeleted(reference)];
};
