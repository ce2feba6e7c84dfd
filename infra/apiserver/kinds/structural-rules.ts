// Is a CRD's schema structural: does every place say what type it has?
import type { Cause } from '../schema/cause.ts';
import { invalid, required } from '../schema/field-errors.ts';
import type { Schema } from '../schema/schema.ts';

/** The causes against a schema's shape; `path` is where it stands. */
export function structuralCauses(schema: Schema, path: string): Cause[] {
  return below(schema, path);
}

function below(schema: Schema, path: string): Cause[] {
  const { properties = {}, items, additionalProperties } = schema;
  const causes = Object.entries(properties).flatMap(([name, child]) =>
    typed(child, `${path}.properties[${name}]`, 'object fields'),
  );
  if (items !== undefined) causes.push(...typed(items, `${path}.items`, 'array items'));
  if (typeof additionalProperties === 'object') {
    causes.push(...typed(additionalProperties, `${path}.additionalProperties`, 'object fields'));
    if (schema.properties !== undefined) {
      causes.push({
        field: path,
        reason: 'FieldValueForbidden',
        message: 'Forbidden: additionalProperties and properties are mutual exclusive',
      });
    }
  }
  return causes;
}

function typed(schema: Schema, path: string, what: string): Cause[] {
  const free = schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const known = ['object', 'array', 'string', 'integer', 'number', 'boolean'];
  const own =
    schema.type === undefined
      ? free
        ? []
        : [required(`${path}.type`, `must not be empty for specified ${what}`)]
      : known.includes(schema.type)
        ? []
        : [invalid(`${path}.type`, schema.type, `must be one of ${known.join(', ')}`)];
  return [...own, ...below(schema, path)];
}
