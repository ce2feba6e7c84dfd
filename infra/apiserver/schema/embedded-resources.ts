// Do embedded resources (`x-kubernetes-embedded-resource`) say what they are?
import type { Cause } from './cause.ts';
import { isObject, type JsonObject } from './json.ts';
import { invalid, required } from './refusals.ts';
import { memberSchema, type Schema } from './schema.ts';

/** apiVersion, kind and metadata.name of every embedded resource below the value. */
export function embeddedResources(value: unknown, schema: Schema | undefined, path = ''): Cause[] {
  if (schema === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((item, i) => embeddedResources(item, schema.items, `${path}[${i}]`));
  if (!isObject(value)) return [];
  const here = schema['x-kubernetes-embedded-resource'] === true ? missing(value, path) : [];
  return [
    ...here,
    ...Object.entries(value).flatMap(([key, child]) =>
      embeddedResources(child, memberSchema(schema, key), path === '' ? key : `${path}.${key}`),
    ),
  ];
}

const label = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const mixedCase =
  "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

function missing({ apiVersion, kind }: JsonObject, path: string): Cause[] {
  const causes: Cause[] = [];
  if (apiVersion === undefined) causes.push(required(`${path}.apiVersion`));
  else if (apiVersion === '') causes.push(invalid(`${path}.apiVersion`, '', 'must not be empty'));
  if (kind === undefined) causes.push(required(`${path}.kind`));
  else if (kind === '') causes.push(invalid(`${path}.kind`, '', 'must not be empty'));
  else if (typeof kind === 'string' && !label.test(kind.toLowerCase()))
    causes.push(invalid(`${path}.kind`, kind, mixedCase));
  return causes;
}
