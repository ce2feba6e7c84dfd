// Lists of type `set` and `map`: what identifies an element, and which elements are there twice.
import { type Cause, duplicate, invalid } from './field-errors.ts';
import { goJson } from './go-format.ts';
import { isObject } from './json.ts';
import { partsOf, type Schema } from './schema.ts';

/** Duplicates anywhere below the value. */
export function duplicatesInLists(value: unknown, schema: Schema | undefined, path: string): Cause[] {
  if (schema === undefined) return [];
  const below = partsOf(value, schema, path).flatMap((part) => duplicatesInLists(part.value, part.schema, part.path));
  return Array.isArray(value) ? [...duplicatesHere(value, schema, path), ...below] : below;
}

function duplicatesHere(list: readonly unknown[], schema: Schema, path: string): Cause[] {
  const type = schema['x-kubernetes-list-type'];
  if (type !== 'set' && type !== 'map') return [];
  const odd = list.findIndex((item) => item !== null && !isObject(item));
  if (type === 'map' && odd >= 0) {
    return [invalid(`${path}[${odd}]`, list[odd], 'must be an object for an array of list-type map')];
  }
  const seen = new Map<string, number>();
  return list.flatMap((item, i) => {
    const key = elementKey(item, schema);
    const times = seen.get(key) ?? 0;
    seen.set(key, times + 1);
    return times === 1 ? [duplicate(`${path}[${i}]`, type === 'map' ? keysOf(item, schema) : item)] : [];
  });
}

/**
 * The identity of an element as `fieldsV1` writes it: of a list of type `map` its keys (defaults filled in), of a set
 * its value.
 */
export function elementKey(item: unknown, schema: Schema | undefined): string {
  if (schema?.['x-kubernetes-list-type'] !== 'map') return `v:${goJson(item)}`;
  return `k:${goJson(keysOf(item, schema))}`;
}

function keysOf(item: unknown, schema: Schema): Record<string, unknown> {
  const keys: Record<string, unknown> = {};
  for (const key of schema['x-kubernetes-list-map-keys'] ?? []) {
    const value = isObject(item) && Object.hasOwn(item, key) ? item[key] : schema.items?.properties?.[key]?.default;
    if (value !== undefined) keys[key] = value;
  }
  return keys;
}
