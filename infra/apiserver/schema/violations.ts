// Violations of a schema's types and bounds.

import { type Correlation, correlateItem, correlateMember, unchanged } from './correlate.ts';
import {
  type Cause,
  invalid,
  noAlternative,
  notSupported,
  required,
  tooLong,
  tooMany,
  wrongType,
} from './field-errors.ts';
import { formatFits, goPattern } from './formats.ts';
import { isObject, sameJson } from './json.ts';
import { memberSchema, type Schema } from './schema.ts';

type Place = { readonly path: string; readonly correlation: Correlation | undefined };

/** The violations of a value and all below it; an unchanged part of an update has none. */
export function violations(value: unknown, schema: Schema | undefined, place: Place): Cause[] {
  if (schema === undefined) return [];
  const causes = [
    ...ofType(value, schema, place.path),
    ...ofAlternatives(value, schema, place),
    ...(typeof value === 'string' ? ofString(value, schema, place.path) : []),
    ...(typeof value === 'number' ? ofNumber(value, schema, place.path) : []),
    ...(Array.isArray(value) ? ofList(value, schema, place) : []),
    ...ofEnum(value, schema, place.path),
    ...(isObject(value) ? ofObject(value, schema, place) : []),
  ];
  return causes.length > 0 && unchanged(place.correlation) ? [] : causes;
}

function ofType(value: unknown, schema: Schema, path: string): Cause[] {
  const found = typeOf(value);
  if (found === 'null' && schema.nullable === true) return [];
  if (schema['x-kubernetes-int-or-string'] === true) {
    return found === 'integer' || found === 'string' ? [] : [wrongType(path, 'integer,string', found)];
  }
  if (schema.type === undefined || schema.type === found || (schema.type === 'number' && found === 'integer'))
    return [];
  return [wrongType(path, schema.type, found)];
}

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? 'integer' : 'number';
  return typeof value;
}

/** A text's bounds: only the first broken one is reported, and also the format. */
function ofString(value: string, schema: Schema, path: string): Cause[] {
  const bound = ofBounds(value, schema, path);
  if (schema.format === undefined || formatFits(schema.format, value)) return bound;
  return [...bound, wrongType(path, schema.format, value)];
}

function ofBounds(value: string, { maxLength, minLength, pattern }: Schema, path: string): Cause[] {
  const length = [...value].length;
  if (maxLength !== undefined && length > maxLength) return [tooLong(path, maxLength)];
  if (minLength !== undefined && length < minLength) {
    return [invalid(path, value, `${path} in body should be at least ${minLength} chars long`)];
  }
  if (pattern === undefined || goPattern(pattern).test(value)) return [];
  return [invalid(path, value, `${path} in body should match '${pattern}'`)];
}

function ofNumber(value: number, schema: Schema, path: string): Cause[] {
  const causes: Cause[] = [];
  const { minimum, maximum, multipleOf } = schema;
  const say = (words: string, bound: number) =>
    causes.push(invalid(path, value, `${path} in body should be ${words} ${bound}`));
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) say('a multiple of', multipleOf);
  if (maximum !== undefined && schema.exclusiveMaximum === true && value >= maximum) say('less than', maximum);
  else if (maximum !== undefined && value > maximum) say('less than or equal to', maximum);
  if (minimum !== undefined && schema.exclusiveMinimum === true && value <= minimum) say('greater than', minimum);
  else if (minimum !== undefined && value < minimum) say('greater than or equal to', minimum);
  return causes;
}

function ofList(value: readonly unknown[], schema: Schema, place: Place): Cause[] {
  const { path, correlation } = place;
  const causes = value.flatMap((item, i) =>
    violations(item, schema.items, { path: `${path}[${i}]`, correlation: correlateItem(correlation, i) }),
  );
  if (schema.minItems !== undefined && value.length < schema.minItems) {
    causes.push(invalid(path, value.length, `${path} in body should have at least ${schema.minItems} items`));
  }
  if (schema.maxItems !== undefined && value.length > schema.maxItems)
    causes.push(tooMany(path, value.length, schema.maxItems));
  return causes;
}

function ofEnum(value: unknown, schema: Schema, path: string): Cause[] {
  if (schema.enum === undefined || schema.enum.some((one) => sameJson(one, value))) return [];
  return [notSupported(path, value, schema.enum)];
}

function ofObject(value: Record<string, unknown>, schema: Schema, place: Place): Cause[] {
  const { path, correlation } = place;
  const below = (key: string) => (path === '' ? key : `${path}.${key}`);
  const causes: Cause[] = [];
  const size = Object.keys(value).length;
  if (schema.minProperties !== undefined && size < schema.minProperties) {
    causes.push(invalid(path, size, `${path} in body should have at least ${schema.minProperties} properties`));
  }
  if (schema.maxProperties !== undefined && size > schema.maxProperties)
    causes.push(tooMany(path, size, schema.maxProperties));
  for (const key of schema.required ?? []) if (!Object.hasOwn(value, key)) causes.push(required(below(key)));
  for (const [key, child] of Object.entries(value)) {
    const at = { path: below(key), correlation: correlateMember(correlation, key) };
    causes.push(...violations(child, memberSchema(schema, key), at));
  }
  return causes;
}

/** `allOf`, `anyOf`, `oneOf`, `not`: alternatives are validated as if the object were new. */
function ofAlternatives(value: unknown, schema: Schema, { path }: Place): Cause[] {
  const causes: Cause[] = [];
  const failures = (schemas: readonly Schema[]) =>
    schemas.map((one) => violations(value, one, { path, correlation: undefined }));
  const broken = (all: readonly Cause[][]) => all.filter((one) => one.length > 0);
  const { anyOf, oneOf, allOf, not } = schema;
  const any = failures(anyOf ?? []);
  if (anyOf && broken(any).length === any.length) {
    causes.push(...(any[0] ?? []), noAlternative(path, 'must validate at least one schema (anyOf)'));
  }
  const one = failures(oneOf ?? []);
  const valid = one.length - broken(one).length;
  if (oneOf && valid !== 1) {
    const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
    const words = `must validate one and only one schema (oneOf). ${found}`;
    causes.push(...(valid === 0 ? (one[0] ?? []) : []), noAlternative(path, words));
  }
  const all = failures(allOf ?? []);
  if (broken(all).length > 0) causes.push(...all.flat(), noAlternative(path, 'must validate all the schemas (allOf)'));
  if (not && broken(failures([not])).length === 0)
    causes.push(noAlternative(path, 'must not validate the schema (not)'));
  return causes;
}
