// The schema of a CRD's version: defaults and validation.
import { createRules } from './cel-rules.ts';
import type { Correlation } from './correlate.ts';
import { type Cause, invalid } from './field-errors.ts';
import { isObject, type JsonObject, setMember } from './json.ts';
import { duplicatesInLists } from './list-types.ts';
import { memberSchema, type Schema } from './schema.ts';
import { violations } from './violations.ts';

/** The causes against an object; those it had already before the update are warnings (ratcheting). */
type Validation = { readonly causes: readonly Cause[]; readonly warnings: readonly Cause[] };

/** The work of a schema on a pruned object: defaults, then validation. No function changes its argument. */
export type Structural = ReturnType<typeof createStructural>;

/**
 * Compiles an `openAPIV3Schema`. Throws a `SchemaError` that names the place of a rule or a pattern that does not
 * compile.
 */
export function createStructural(schema: Schema) {
  const rules = createRules(schema);
  return {
    /** Fills in defaults; a null of a member that is not nullable counts as absent. */
    applyDefaults(object: JsonObject) {
      const copy = structuredClone(object);
      dropNulls(copy, schema);
      fill(copy, schema);
      return copy;
    },
    /** With `old`, a bad value that did not change is no cause, and transition rules apply. */
    validate(object: JsonObject, old?: JsonObject): Validation {
      const correlation: Correlation | undefined = old && { old, now: object, schema };
      const causes = [
        ...violations(object, schema, { path: '', correlation }), // types, bounds, patterns, required members
        ...listDuplicates(object, old, schema), // list-type set and map
      ];
      if (causes.some(({ reason }) => blocking.has(reason))) {
        return { causes: rules.present ? [...causes, invalid('<nil>', null, skipped)] : causes, warnings: [] };
      }
      const ruled = rules.validate(object, correlation); // x-kubernetes-validations
      return { causes: [...causes, ...ruled.causes], warnings: ruled.warnings };
    },
  };
}

/** Rules are not evaluated on an object with one of these. */
const blocking: ReadonlySet<string> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);
const skipped =
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';

/** An update of an object whose lists were bad already is not checked for duplicates. */
function listDuplicates(object: JsonObject, old: JsonObject | undefined, schema: Schema): Cause[] {
  if (old !== undefined && duplicatesInLists(old, schema, '').length > 0) return [];
  return duplicatesInLists(object, schema, '');
}

function dropNulls(value: unknown, schema: Schema | undefined): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    for (const item of value) dropNulls(item, schema.items);
  } else if (isObject(value)) {
    for (const [key, child] of Object.entries(value)) {
      const at = memberSchema(schema, key);
      if (child === null && at !== undefined && at.nullable !== true) delete value[key];
      else dropNulls(child, at);
    }
  }
}

function fill(value: unknown, schema: Schema | undefined): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    for (const item of value) fill(item, schema.items);
  } else if (isObject(value)) {
    for (const [key, child] of Object.entries(schema.properties ?? {})) {
      if (child.default !== undefined && !Object.hasOwn(value, key))
        setMember(value, key, structuredClone(child.default));
    }
    for (const [key, child] of Object.entries(value)) fill(child, memberSchema(schema, key));
  }
}
