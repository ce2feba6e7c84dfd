// Which bounds of its schema does a value break?
import type { Cause } from './cause.ts';
import { type Correlation, correlateItem, correlateMember, unchanged } from './correlate.ts';
import { formatFits } from './formats.ts';
import { number } from './go-words.ts';
import { isObject, sameJson } from './json.ts';
import { invalid, notSupported, required, tooLong, tooMany, wrongType } from './refusals.ts';
import { memberSchema, type Schema } from './schema.ts';

type Place = { readonly path: string; readonly correlation: Correlation | undefined };

/** The violations of a value and all below it; an unchanged part of an update has none. */
export function violations(value: unknown, schema: Schema | undefined, place: Place): Cause[] {
  if (schema === undefined) return [];
  const causes = [
    ...ofType(value, schema, place.path),
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
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function ofString(value: string, schema: Schema, path: string): Cause[] {
  const causes: Cause[] = [];
  const length = [...value].length;
  if (schema.maxLength !== undefined && length > schema.maxLength) causes.push(tooLong(path, schema.maxLength));
  if (schema.minLength !== undefined && length < schema.minLength) {
    causes.push(invalid(path, value, `${path} in body should be at least ${schema.minLength} chars long`));
  }
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value)) {
    causes.push(invalid(path, value, `${path} in body should match '${schema.pattern}'`));
  }
  if (schema.format !== undefined && !formatFits(schema.format, value)) {
    causes.push(invalid(path, value, `${path} in body must be of type ${schema.format}: "${value}"`));
  }
  return causes;
}

function ofNumber(value: number, schema: Schema, path: string): Cause[] {
  const causes: Cause[] = [];
  const { minimum, maximum, multipleOf } = schema;
  const say = (words: string, bound: number) =>
    causes.push(invalid(path, value, `${path} in body should be ${words} ${number(bound)}`));
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
  if (schema.uniqueItems === true && value.some((item, i) => value.slice(0, i).some((one) => sameJson(one, item)))) {
    causes.push(invalid(path, '', `${path} in body shouldn't contain duplicates`));
  }
  return causes;
}

function ofEnum(value: unknown, schema: Schema, path: string): Cause[] {
  if (schema.enum === undefined || schema.enum.some((one) => sameJson(one, value))) return [];
  if (value === null && schema.nullable === true) return [];
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
    causes.push(
      ...violations(child, memberSchema(schema, key), {
        path: below(key),
        correlation: correlateMember(correlation, key),
      }),
    );
  }
  return causes;
}
