// Which fields of an object does its schema not know?

import { isObject, type JsonObject, setMember } from './json.ts';
import { objectMeta } from './object-meta.ts';
import { memberSchema, type Schema } from './schema.ts';

type Place = { readonly schema: Schema; readonly path: string; readonly resource: boolean };

/** A copy without unknown fields, and their paths in order. The root and embedded resources keep apiVersion, kind and metadata. */
export function prune(schema: Schema, object: JsonObject): { object: JsonObject; unknown: string[] } {
  const unknown: string[] = [];
  const pruned = pruneObject(object, { schema, path: '', resource: true }, unknown);
  return { object: pruned, unknown: unknown.sort() };
}

function pruneValue(value: unknown, schema: Schema | undefined, path: string, unknown: string[]): unknown {
  if (schema === undefined) return value;
  if (Array.isArray(value)) {
    // Elements of a list whose schema has no `items` have no fields that are known, unless all are kept.
    const items = schema.items ?? (schema['x-kubernetes-preserve-unknown-fields'] === true ? undefined : {});
    return value.map((item, i) => pruneValue(item, items, `${path}[${i}]`, unknown));
  }
  if (!isObject(value)) return value;
  return pruneObject(value, { schema, path, resource: schema['x-kubernetes-embedded-resource'] === true }, unknown);
}

function pruneObject(object: JsonObject, { schema, path, resource }: Place, unknown: string[]): JsonObject {
  const kept: JsonObject = {};
  for (const [key, value] of Object.entries(object)) {
    const at = path === '' ? key : `${path}.${key}`;
    if (resource && (key === 'apiVersion' || key === 'kind')) setMember(kept, key, value);
    else if (resource && key === 'metadata') setMember(kept, key, pruneValue(value, objectMeta, at, unknown));
    else if (known(schema, key)) setMember(kept, key, pruneValue(value, memberSchema(schema, key), at, unknown));
    else unknown.push(at);
  }
  return kept;
}

function known(schema: Schema, key: string): boolean {
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return true;
  if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) return true;
  return schema.properties !== undefined && Object.hasOwn(schema.properties, key);
}
