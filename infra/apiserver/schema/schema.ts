// Structural schemas: their members, their nodes, and the parts of a value that they describe.
import { isObject } from './json.ts';

/** One rule of `x-kubernetes-validations`. */
export type Rule = {
  readonly rule: string;
  readonly message?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
};

/**
 * The subset of JSON Schema that CRDs and the core kinds' OpenAPI use, references resolved: a node may be reached from
 * itself (JSONSchemaProps), so walk it along data, never alone.
 */
export type Schema = {
  readonly type?: string;
  readonly description?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
  readonly 'x-kubernetes-patch-strategy'?: string;
  readonly 'x-kubernetes-validations'?: readonly Rule[];
};

/** The schema of an object's member, where one is declared. */
export function memberSchema(schema: Schema | undefined, key: string): Schema | undefined {
  if (schema === undefined) return undefined;
  if (schema.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

/** A part of a value, with its schema and its path as the API server names it: `spec.models[0].name`, `labels[a.b]`. */
export type Part = {
  readonly key: string | number;
  readonly value: unknown;
  readonly schema: Schema | undefined;
  readonly path: string;
};

export function partsOf(value: unknown, schema: Schema | undefined, path: string): Part[] {
  if (Array.isArray(value)) {
    return value.map((item, key) => ({ key, value: item, schema: schema?.items, path: `${path}[${key}]` }));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).map(([key, member]) => {
    const isDeclared = schema?.properties !== undefined && Object.hasOwn(schema.properties, key);
    const at = isDeclared ? (path === '' ? key : `${path}.${key}`) : `${path}[${key}]`;
    return { key, value: member, schema: memberSchema(schema, key), path: at };
  });
}

/** A part of a schema that cannot be used; `field` is its place below `openAPIV3Schema`, as the API server names it. */
export class SchemaError extends Error {
  readonly field: string;
  constructor(field: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}

type SchemaNode = { readonly node: Schema; readonly path: readonly string[] };

/** Every part of a schema once, with its place (`properties[spec]`, `items`, …). A schema may refer to itself. */
export function nodesOf(schema: Schema): SchemaNode[] {
  const seen = new Set<Schema>();
  const found: SchemaNode[] = [];
  const walk = (node: Schema, path: readonly string[]): void => {
    if (seen.has(node)) return;
    seen.add(node);
    found.push({ node, path });
    for (const [key, child] of Object.entries(node.properties ?? {})) walk(child, [...path, `properties[${key}]`]);
    if (node.items) walk(node.items, [...path, 'items']);
    if (typeof node.additionalProperties === 'object')
      walk(node.additionalProperties, [...path, 'additionalProperties']);
    for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
      for (const [i, child] of (node[key] ?? []).entries()) walk(child, [...path, `${key}[${i}]`]);
    }
    if (node.not) walk(node.not, [...path, 'not']);
  };
  walk(schema, []);
  return found;
}
