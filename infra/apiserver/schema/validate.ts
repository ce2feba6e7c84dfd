// Is an object legal by its schema, and may an update keep what was already wrong?
import type { Cause } from './cause.ts';
import { createRules } from './cel-rules.ts';
import type { Correlation } from './correlate.ts';
import { invalid } from './field-errors.ts';
import type { JsonObject } from './json.ts';
import { duplicatesInLists } from './list-types.ts';
import type { Schema } from './schema.ts';
import { violations } from './violations.ts';

/** What refuses the object, and what would have refused it had it not been so before. */
export type Validation = { readonly causes: readonly Cause[]; readonly warnings: readonly Cause[] };

const blocking: ReadonlySet<string> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

/** Compiles the schema's rules and returns the judge. The steps and their order are the API server's. */
export function createValidate(schema: Schema): (object: JsonObject, old?: JsonObject) => Validation {
  const judgeRules = createRules(schema);
  return (object, old) => {
    const correlation: Correlation | undefined = old && { old, now: object, schema };
    const causes = [
      ...violations(object, schema, { path: '', correlation }), // types, bounds, patterns, required members
      ...listDuplicates(object, old, schema), // list-type set and map
    ];
    if (causes.some(({ reason }) => blocking.has(reason))) {
      const skipped =
        'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';
      return { causes: judgeRules.present ? [...causes, invalid('<nil>', null, skipped)] : causes, warnings: [] };
    }
    const ruled = judgeRules.judge(object, correlation); // x-kubernetes-validations
    return { causes: [...causes, ...ruled.causes], warnings: ruled.warnings };
  };
}

/** An update of an object whose lists were bad already is not judged for duplicates. */
function listDuplicates(object: JsonObject, old: JsonObject | undefined, schema: Schema): Cause[] {
  if (old !== undefined && duplicatesInLists(old, schema, '').length > 0) return [];
  return duplicatesInLists(object, schema, '');
}
