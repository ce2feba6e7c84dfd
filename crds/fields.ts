// Which fields does a kind have, flat, in the order of its schema?
import type { Kind } from './kinds.ts';
import { toManifest } from './manifest.ts';
import type { StructuralSchema } from './structural.ts';

export interface Field {
  /** `spec.models[].gatewayParams.model`; `[]` is any entry of a list, `{}` any value of a map. */
  readonly path: string;
  readonly schema: StructuralSchema;
  readonly required: boolean;
  readonly depth: number;
}

/** Every field below `part`, parents before their children. Items of scalars and values of scalar maps are not fields. */
export function fieldsOf(kind: Kind, part: 'spec' | 'status'): readonly Field[] {
  const [version] = toManifest(kind).spec.versions;
  return below(version.schema.openAPIV3Schema.properties[part], part, 0);
}

function below(schema: StructuralSchema, path: string, depth: number): readonly Field[] {
  if (schema.items !== undefined) return below(schema.items, `${path}[]`, depth);
  if (schema.additionalProperties !== undefined) return below(schema.additionalProperties, `${path}{}`, depth);
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const field = `${path}.${name}`;
    const required = schema.required?.includes(name) ?? false;
    return [{ path: field, schema: child, required, depth }, ...below(child, field, depth + 1)];
  });
}
