// A table of cases that this API server and a real one must validate alike.
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import type { Schema } from '../../../infra/apiserver/schema/schema.ts';

/** An object to create, or with `old` one to update: `old` was stored while the schema was `loose`. */
export type SchemaCase = {
  readonly name: string;
  readonly spec?: unknown;
  readonly old?: unknown;
  readonly status?: unknown;
  readonly metadata?: JsonObject;
  readonly root?: JsonObject;
};

export type SchemaCases = {
  readonly name: string;
  readonly schema: Schema;
  /** The schema before it was tightened; without one the schema has always been the same. */
  readonly loose?: Schema;
  readonly cases: readonly SchemaCase[];
};

/** What was answered: the causes by field, and where there are none the stored object's parts. */
export type Answer = {
  readonly causes?: readonly { readonly field: string; readonly reason: string; readonly message: string }[];
  readonly warnings?: readonly string[];
  readonly unknown?: readonly string[];
  readonly stored?: unknown;
  /** An error without causes: the object could not be decoded. */
  readonly refused?: string;
};

/** The kind that all cases are of. */
export const sample = {
  group: 'sample.gateway-operator.dev',
  version: 'v1',
  kind: 'Sample',
  plural: 'samples',
} as const;

/** The object of a case, as a client sends it. */
export function objectOf({ metadata, root, spec }: SchemaCase, part: unknown = spec): JsonObject {
  const object = {
    apiVersion: `${sample.group}/${sample.version}`,
    kind: sample.kind,
    metadata: { name: 'a', namespace: 'default', ...metadata },
    ...(part === undefined ? {} : { spec: part }),
    ...root,
  };
  return JSON.parse(JSON.stringify(object)); // without members that are undefined
}
