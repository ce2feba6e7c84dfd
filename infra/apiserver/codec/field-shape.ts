// How is a field owned: as a whole, by its members, or by its elements?
import { isObject, type JsonObject } from '../schema/json.ts';
import { objectMeta } from '../schema/object-meta.ts';
import type { Schema } from '../schema/schema.ts';

/** `leaf`: as a whole (scalars, atomic lists and maps). `map`: each member. `list`: each element, by its keys or its value. */
export type Shape = 'leaf' | 'map' | 'list';

/** The shape of a value; where the schema says nothing, the value itself decides: objects by member, lists as a whole. */
export function shapeOf(schema: Schema | undefined, ...values: readonly unknown[]): Shape {
  const untyped =
    schema === undefined || (schema.type === undefined && !schema.properties && !schema.additionalProperties);
  if (untyped) return values.some(isObject) ? 'map' : 'leaf';
  if (schema.type === 'array') {
    const type = schema['x-kubernetes-list-type'];
    return type === 'map' || type === 'set' ? 'list' : 'leaf';
  }
  if (schema.type !== 'object' && !schema.properties) return 'leaf';
  return schema['x-kubernetes-map-type'] === 'atomic' ? 'leaf' : 'map';
}

/** The schema that holds for what a path element leads to. */
export function fieldSchema(schema: Schema | undefined, element: string): Schema | undefined {
  if (!element.startsWith('f:')) return schema?.items;
  const key = element.slice(2);
  if (schema?.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

/** The path element of a list's element: its keys (defaults filled in) or, in a set, its value. */
export function elementOf(schema: Schema | undefined, item: unknown): string {
  if (schema?.['x-kubernetes-list-type'] !== 'map') return `v:${JSON.stringify(item)}`;
  const keys: JsonObject = {};
  const names = [...(schema['x-kubernetes-list-map-keys'] ?? [])].sort();
  for (const name of names) {
    const value = isObject(item) && Object.hasOwn(item, name) ? item[name] : schema.items?.properties?.[name]?.default;
    keys[name] = value ?? null;
  }
  return `k:${JSON.stringify(keys)}`;
}

/** A kind's schema with `apiVersion`, `kind` and `metadata` as every object has them: a CRD's own schema leaves them open. */
export function objectSchema(schema: Schema | undefined): Schema {
  const meta = schema?.properties?.metadata;
  if (meta?.properties?.managedFields) return schema ?? {};
  const text: Schema = { type: 'string' };
  const properties = { ...schema?.properties, apiVersion: text, kind: text, metadata: objectMeta };
  return { ...schema, type: 'object', properties };
}
