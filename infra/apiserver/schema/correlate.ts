// Correlation of an update: the part of the old object that a part of the new one continues.
import { isObject, sameJson } from './json.ts';
import { elementKey } from './list-types.ts';
import { memberSchema, type Schema } from './schema.ts';

/** A value of the new object beside its predecessor in the old one. */
export type Correlation = { readonly old: unknown; readonly now: unknown; readonly schema: Schema | undefined };

/** True when nothing changed since: an error here is not the writer's, so it is no cause (ratcheting). */
export function unchanged(correlation: Correlation | undefined): boolean {
  return correlation !== undefined && sameJson(correlation.old, correlation.now);
}

/** The correlation of a part: a member by its name, an element by its place. */
export function correlatePart(correlation: Correlation | undefined, key: string | number): Correlation | undefined {
  return typeof key === 'number' ? correlateItem(correlation, key) : correlateMember(correlation, key);
}

/** The correlation of a member, where the old value has it too. */
export function correlateMember(correlation: Correlation | undefined, key: string): Correlation | undefined {
  if (correlation === undefined || correlation.schema?.['x-kubernetes-map-type'] === 'atomic') return undefined;
  const { old, now } = correlation;
  if (!isObject(old) || !isObject(now) || !Object.hasOwn(old, key) || !Object.hasOwn(now, key)) return undefined;
  return { old: old[key], now: now[key], schema: memberSchema(correlation.schema, key) };
}

/** The correlation of a list element: only lists of type `map` have identities, by their keys. */
export function correlateItem(correlation: Correlation | undefined, index: number): Correlation | undefined {
  if (correlation === undefined || correlation.schema?.['x-kubernetes-list-type'] !== 'map') return undefined;
  const { old, now, schema } = correlation;
  if (!Array.isArray(old) || !Array.isArray(now)) return undefined;
  const before = elementsByKey(old, schema).get(elementKey(now[index], schema));
  return before === undefined ? undefined : { old: before, now: now[index], schema: schema?.items };
}

const indexed = new WeakMap<readonly unknown[], ReadonlyMap<string, unknown>>();

/** The elements of a stored list by their keys, the first of each; made once per list, which never changes. */
function elementsByKey(list: readonly unknown[], schema: Schema | undefined): ReadonlyMap<string, unknown> {
  const known = indexed.get(list);
  if (known) return known;
  const elements = new Map(list.toReversed().map((item) => [elementKey(item, schema), item]));
  indexed.set(list, elements);
  return elements;
}
