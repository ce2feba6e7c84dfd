// How does a rule about several fields let be what was wrong before?
// The API server does so by itself only where nothing below the rule's place changed, so a rule at `spec` would hold a block or a
// label-and-budget edit of an object that an older CRD let in. Such a rule looks at the old object itself (DESIGN 5).
import type { StructuralSchema, Validation } from './structural.ts';

/** The same schema, as it goes into a CRD. */
export function ratcheting(schema: StructuralSchema): StructuralSchema {
  const { properties, additionalProperties, items } = schema;
  const rules = schema['x-kubernetes-validations'];
  // Entries of other lists cannot be found in the old object: there the API server's own way is the only one.
  const isCorrelated = schema['x-kubernetes-list-type'] === 'map';
  return {
    ...schema,
    ...(properties !== undefined && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, ratcheting(child)])),
    }),
    ...(additionalProperties !== undefined && { additionalProperties: ratcheting(additionalProperties) }),
    ...(items !== undefined && isCorrelated && { items: ratcheting(items) }),
    ...(rules !== undefined && { 'x-kubernetes-validations': rules.map(toRatcheting) }),
  };
}

/** Holds as well where it was broken before at the same field, which still says the same, whatever changed around it. */
function toRatcheting(validation: Validation): Validation {
  const { rule, fieldPath } = validation;
  if (fieldPath === undefined || /\boldSelf\b/.test(rule)) return validation;
  const [now, before] = [`self${fieldPath}`, `old${fieldPath}`];
  const same = `has(${now}) == has(${before}) && (!has(${now}) || ${now} == ${before})`;
  const wasBroken = `!(${rule.replace(/\bself\b/g, 'old')})`;
  // The first of the two in case the old object is so wrong that the rule cannot be asked of it. A list of one gives it a name.
  const letBe = `oldSelf.hasValue() && [oldSelf.value()].exists(old, self == old || (${same} && ${wasBroken}))`;
  return { ...validation, rule: `(${rule}) || (${letBe})`, optionalOldSelf: true };
}
