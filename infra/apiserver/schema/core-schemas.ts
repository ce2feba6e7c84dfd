// Schemas of the core kinds, from Kubernetes' own OpenAPI.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, type JsonObject } from './json.ts';
import type { Schema } from './schema.ts';

const file = JSON.parse(readFileSync(join(import.meta.dirname, 'core-schemas.json'), 'utf8'));

/** Every definition of the core kinds by its name (`io.k8s.api.core.v1.Secret`); references are `$ref`s by name. */
export const definitions: Readonly<Record<string, JsonObject>> = file.definitions;

const names = namesByKind();
const resolved = new Map<string, Schema>();

/** The Kubernetes whose schemas these are. */
export const kubernetesVersion = 'v1.34.4';

/** `metadata`, whatever the kind. */
export const objectMeta = schemaOf('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');

/** The schema of a core kind, references resolved; undefined for a kind that is not built in. */
export function coreSchema(apiVersion: string, kind: string): Schema | undefined {
  const name = definitionName(apiVersion, kind);
  return name === undefined ? undefined : schemaOf(name);
}

/** The name of a core kind's definition. */
export function definitionName(apiVersion: string, kind: string): string | undefined {
  if (kind === 'DeleteOptions') return 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions'; // of any group
  return names.get(`${apiVersion}/${kind}`);
}

function namesByKind(): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, definition] of Object.entries(definitions)) {
    const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as ReadonlyArray<Record<string, string>>;
    for (const { group, version, kind } of kinds) found.set(`${group ? `${group}/` : ''}${version}/${kind}`, name);
  }
  return found;
}

function schemaOf(name: string): Schema {
  const known = resolved.get(name);
  if (known) return known;
  const schema: JsonObject = {};
  resolved.set(name, schema); // before its members: JSONSchemaProps refers to itself
  Object.assign(schema, resolve(definitions[name] ?? {}));
  const isOpen = schema.properties === undefined && schema.additionalProperties === undefined;
  if (isOpen && (schema.type === 'object' || schema.type === undefined)) {
    schema['x-kubernetes-preserve-unknown-fields'] = true; // RawExtension, FieldsV1: any object
  }
  if (schema.format === 'int-or-string') schema['x-kubernetes-int-or-string'] = true;
  return schema;
}

function resolve(node: unknown): Schema {
  if (!isObject(node)) return {};
  if (typeof node.$ref === 'string') return schemaOf(node.$ref.slice(node.$ref.lastIndexOf('/') + 1));
  const { properties, items, additionalProperties, ...rest } = node;
  return {
    ...rest,
    ...(isObject(properties) && {
      properties: Object.fromEntries(Object.entries(properties).map(([key, child]) => [key, resolve(child)])),
    }),
    ...(items !== undefined && { items: resolve(items) }),
    ...(isObject(additionalProperties) && { additionalProperties: resolve(additionalProperties) }),
  };
}
