// What makes two entries of a list the same one?
import * as z from 'zod';

/** Marks a list whose entries are told apart by their `keys`; the API server refuses a repeated one, at no CEL cost. */
export const mapBy = (...keys: readonly [string, ...string[]]) => ({
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': keys,
});

/** Marks a list of scalars in which each stands once. */
export const asSet = { 'x-kubernetes-list-type': 'set' };

/** Marks a list that is written as a whole and may repeat. */
export const atomic = { 'x-kubernetes-list-type': 'atomic' };

export function listType(schema: z.ZodType): unknown {
  return z.globalRegistry.get(schema)?.['x-kubernetes-list-type'];
}

/** The members that tell entries apart: none for a set (the entry itself does), undefined where entries may repeat. */
export function listKeys(schema: z.ZodType): readonly string[] | undefined {
  const type = listType(schema);
  if (type === 'set') return [];
  const keys = z.globalRegistry.get(schema)?.['x-kubernetes-list-map-keys'];
  return type === 'map' && Array.isArray(keys) ? keys : undefined;
}
