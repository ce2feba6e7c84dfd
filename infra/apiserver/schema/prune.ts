// Pruning: an object without the fields that its schema does not know.

import { objectMeta } from './core-schemas.ts';
import { isObject, type JsonObject, setMember } from './json.ts';
import { memberSchema, type Schema } from './schema.ts';

/**
 * A copy without unknown fields, and their paths in order, as strict decoding words them (`spec.models[0].foo`).
 * `apiVersion`, `kind` and `metadata` are known, whatever the schema says.
 */
export function prune(schema: Schema, object: JsonObject): { object: JsonObject; unknown: string[] } {
  const unknown: string[] = [];
  const root = { ...schema, properties: { ...schema.properties, apiVersion: {}, kind: {}, metadata: objectMeta } };
  const pruned = pruneValue(object, root, '', unknown) as JsonObject; // an object stays one
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
  const kept: JsonObject = {};
  for (const [key, child] of Object.entries(value)) {
    const at = path === '' ? key : `${path}.${key}`;
    if (known(schema, key)) setMember(kept, key, pruneValue(child, memberSchema(schema, key), at, unknown));
    else unknown.push(at);
  }
  return kept;
}

/** Members of every object, also of one inside another. */
const identity: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

function known(schema: Schema, key: string): boolean {
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return true;
  if (schema['x-kubernetes-embedded-resource'] === true && identity.has(key)) return true;
  if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) return true;
  return schema.properties !== undefined && Object.hasOwn(schema.properties, key);
}
