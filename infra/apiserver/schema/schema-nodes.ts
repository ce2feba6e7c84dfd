// Nodes of a schema, and those that cannot be used.
import type { Schema } from './schema.ts';

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
  const visit = (node: Schema, path: readonly string[]): void => {
    if (seen.has(node)) return;
    seen.add(node);
    found.push({ node, path });
    for (const [key, child] of Object.entries(node.properties ?? {})) visit(child, [...path, `properties[${key}]`]);
    if (node.items) visit(node.items, [...path, 'items']);
    if (typeof node.additionalProperties === 'object')
      visit(node.additionalProperties, [...path, 'additionalProperties']);
    for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
      for (const [i, child] of (node[key] ?? []).entries()) visit(child, [...path, `${key}[${i}]`]);
    }
    if (node.not) visit(node.not, [...path, 'not']);
  };
  visit(schema, []);
  return found;
}
