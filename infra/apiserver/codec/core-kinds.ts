// Which schema has a core kind, and what is it called there?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, type JsonObject } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';

/** A definition as core-schemas.json has it: references are `$ref`s by name. */
export type Definition = JsonObject;

const file = JSON.parse(readFileSync(join(import.meta.dirname, 'core-schemas.json'), 'utf8'));

/** Every definition of the core kinds by its name (`io.k8s.api.core.v1.Secret`). */
export const definitions: Readonly<Record<string, Definition>> = file.definitions;

const names = namesByKind();
const resolved = new Map<string, Schema>();
const origins = new WeakMap<Schema, string>();

/** The schema of a core kind, references resolved; undefined for a kind that is not built in. */
export function coreSchema(apiVersion: string, kind: string): Schema | undefined {
  const name = definitionName(apiVersion, kind);
  return name === undefined ? undefined : schemaOf(name);
}

/** The name of a core kind's definition. */
export function definitionName(apiVersion: string, kind: string): string | undefined {
  return names.get(`${apiVersion}/${kind}`);
}

/** The name of the definition that a schema of `coreSchema` was made from, so a Go type's name can be told. */
export function nameOf(schema: Schema | undefined): string | undefined {
  return schema && origins.get(schema);
}

function namesByKind(): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, definition] of Object.entries(definitions)) {
    const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as ReadonlyArray<Record<string, string>>;
    for (const { group, version, kind } of kinds) found.set(`${group ? `${group}/` : ''}${version}/${kind}`, name);
  }
  found.set('v1/DeleteOptions', 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions');
  return found;
}

function schemaOf(name: string): Schema {
  const known = resolved.get(name);
  if (known) return known;
  const schema: JsonObject = {};
  resolved.set(name, schema); // before its members: JSONSchemaProps refers to itself
  origins.set(schema, name);
  Object.assign(schema, resolveMembers(definitions[name] ?? {}));
  if (schema.type === 'object' && schema.properties === undefined && schema.additionalProperties === undefined) {
    schema['x-kubernetes-preserve-unknown-fields'] = true; // RawExtension, FieldsV1: any object
  }
  if (schema.type === undefined && schema.properties === undefined)
    schema['x-kubernetes-preserve-unknown-fields'] = true;
  if (schema.format === 'int-or-string') schema['x-kubernetes-int-or-string'] = true;
  return schema;
}

function resolveNode(node: unknown): Schema {
  if (!isObject(node)) return {};
  if (typeof node.$ref === 'string') return schemaOf(node.$ref.slice(node.$ref.lastIndexOf('/') + 1));
  const only = Array.isArray(node.allOf) && node.allOf.length === 1 ? node.allOf[0] : undefined;
  if (!isObject(only)) return resolveMembers(node);
  const target = resolveNode(only);
  const schema = overlay(target, node);
  const name = nameOf(target);
  if (name !== undefined) origins.set(schema, name);
  return schema;
}

/** A reference with a description or default of its own: reads through to the definition, which may not be filled in yet. */
function overlay(target: Schema, { allOf: _, ...own }: JsonObject): Schema {
  const schema: Schema = new Proxy(own, {
    get: (mine, key) => Reflect.get(Object.hasOwn(mine, key) ? mine : target, key),
    has: (mine, key) => Reflect.has(mine, key) || Reflect.has(target, key),
    ownKeys: (mine) => [...new Set([...Reflect.ownKeys(mine), ...Reflect.ownKeys(target)])],
    getOwnPropertyDescriptor: (mine, key) => {
      const found = Reflect.getOwnPropertyDescriptor(mine, key) ?? Reflect.getOwnPropertyDescriptor(target, key);
      return found && { ...found, configurable: true };
    },
  });
  return schema;
}

function resolveMembers(node: Definition): Schema {
  const { properties, items, additionalProperties, ...rest } = node;
  return {
    ...rest,
    ...(isObject(properties)
      ? { properties: Object.fromEntries(Object.entries(properties).map(([key, child]) => [key, resolveNode(child)])) }
      : {}),
    ...(items === undefined ? {} : { items: resolveNode(items) }),
    ...(isObject(additionalProperties) ? { additionalProperties: resolveNode(additionalProperties) } : {}),
  };
}
