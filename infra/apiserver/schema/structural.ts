// How does a CRD's schema judge an object: what it prunes, what it defaults, what it refuses?
import type { Cause } from './cause.ts';
import { applyDefaults } from './defaults.ts';
import type { JsonObject } from './json.ts';
import { prune } from './prune.ts';
import type { Schema } from './schema.ts';
import { checkPatterns } from './schema-nodes.ts';
import { createValidate, type Validation } from './validate.ts';

export type { Cause } from './cause.ts';
export { SchemaError } from './schema-nodes.ts';
export type { Validation } from './validate.ts';

/** The three things the API server does with a schema, in the order it does them. Nothing here changes its argument. */
export type Structural = {
  /** Drops what the schema does not know; `unknown` are the field paths dropped, as strict decoding words them (`spec.models[0].foo`). */
  prune(object: JsonObject): { readonly object: JsonObject; readonly unknown: string[] };
  /** Fills in defaults; a null of a member that is not nullable counts as absent. */
  applyDefaults(object: JsonObject): JsonObject;
  /** The refusals; with `old` an unchanged bad value is none (ratcheting) and transition rules are judged. */
  validate(object: JsonObject, old?: JsonObject): Cause[];
  /** The refusals, and the warnings that ratcheting left of them. */
  judge(object: JsonObject, old?: JsonObject): Validation;
};

/** Compiles an `openAPIV3Schema`. Throws a `SchemaError` that names the place of a rule or a pattern that does not compile. */
export function createStructural(openAPIV3Schema: Schema): Structural {
  checkPatterns(openAPIV3Schema);
  const judge = createValidate(openAPIV3Schema);
  return {
    prune: (object) => prune(openAPIV3Schema, object),
    applyDefaults: (object) => applyDefaults(openAPIV3Schema, object),
    validate: (object, old) => [...judge(object, old).causes],
    judge,
  };
}
