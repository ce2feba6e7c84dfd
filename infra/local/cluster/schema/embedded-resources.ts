// Do embedded resources (`x-kubernetes-embedded-resource`) say what they are?
import type { Cause } from './cause.ts';
import { isObject } from './json.ts';
import { required } from './refusals.ts';
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

function missing(resource: Record<string, unknown>, path: string): Cause[] {
  const causes: Cause[] = [];
  if (resource.apiVersion === undefined || resource.apiVersion === '') causes.push(required(`${path}.apiVersion`));
  if (resource.kind === undefined || resource.kind === '') causes.push(required(`${path}.kind`));
  return causes;
}
