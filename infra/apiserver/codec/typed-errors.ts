// Does an applied configuration fit its schema well enough to be owned by field?

import { isObject } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { elementText } from './field-set.ts';
import { elementOf, fieldSchema, shapeOf } from './field-shape.ts';

/** The first thing that does not fit, as structured-merge-diff words it (`.spec.foo: field not declared in schema`), or undefined. */
export function typeErrors(value: unknown, schema: Schema | undefined, path = ''): string | undefined {
  return errorsOf(value, schema, path)[0];
}

function errorsOf(value: unknown, schema: Schema | undefined, path: string): string[] {
  if (value === null || schema === undefined) return [];
  const expected = mismatch(value, schema);
  if (expected !== undefined) return [`${path}: expected ${expected}, got ${kindOf(value)}`];
  if (Array.isArray(value)) return ofList(value, schema, path);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    isDeclared(schema, key)
      ? errorsOf(child, fieldSchema(schema, `f:${key}`), `${path}.${key}`)
      : [`${path}.${key}: field not declared in schema`],
  );
}

function ofList(list: readonly unknown[], schema: Schema, path: string): string[] {
  if (shapeOf(schema, list) !== 'list') return list.flatMap((item, i) => errorsOf(item, schema.items, `${path}[${i}]`));
  const seen = new Set<string>();
  return list.flatMap((item) => {
    const element = elementOf(schema, item);
    const at = elementText(element);
    if (seen.has(element)) return [`${path}: duplicate entries for key ${at}`];
    seen.add(element);
    return errorsOf(item, schema.items, `${path}${at}`);
  });
}

function isDeclared(schema: Schema, key: string): boolean {
  if (schema['x-kubernetes-preserve-unknown-fields'] === true || schema['x-kubernetes-embedded-resource'] === true)
    return true;
  if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) return true;
  return schema.properties === undefined || Object.hasOwn(schema.properties, key);
}

function mismatch(value: unknown, schema: Schema): string | undefined {
  if (schema['x-kubernetes-int-or-string'] === true || schema.format === 'int-or-string') return undefined;
  if (schema.type === 'string' && typeof value !== 'string') return 'string';
  if (schema.type === 'boolean' && typeof value !== 'boolean') return 'boolean';
  if ((schema.type === 'integer' || schema.type === 'number') && typeof value !== 'number')
    return 'numeric (int or float)';
  if (schema.type === 'array' && !Array.isArray(value)) return 'list';
  return schema.type === 'object' && !isObject(value) ? 'map' : undefined;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'list';
  return isObject(value) ? 'map' : typeof value;
}
