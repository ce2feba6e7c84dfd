// What does a schema fill in where the object says nothing?
import { copyJson, isObject, type JsonObject, setMember } from './json.ts';
import { memberSchema, type Schema } from './schema.ts';

/** A copy with the schema's defaults. Nulls of members that are not nullable are dropped first, so they are defaulted too. */
export function applyDefaults(schema: Schema, object: JsonObject): JsonObject {
  const copy = copyJson(object);
  dropNulls(copy, schema);
  fill(copy, schema);
  return copy;
}

function dropNulls(value: unknown, schema: Schema | undefined): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    for (const item of value) dropNulls(item, schema.items);
  } else if (isObject(value)) {
    for (const [key, child] of Object.entries(value)) {
      const at = memberSchema(schema, key);
      if (child === null && at !== undefined && at.nullable !== true) delete value[key];
      else dropNulls(child, at);
    }
  }
}

function fill(value: unknown, schema: Schema | undefined): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    for (const item of value) fill(item, schema.items);
  } else if (isObject(value)) {
    for (const [key, child] of Object.entries(schema.properties ?? {})) {
      if (child.default !== undefined && !Object.hasOwn(value, key)) setMember(value, key, copyJson(child.default));
    }
    for (const [key, child] of Object.entries(value)) fill(child, memberSchema(schema, key));
  }
}
