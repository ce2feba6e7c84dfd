// How does a rule that stands deep in a schema become one expression about the whole object, old and new?
import type { StructuralSchema, Validation } from './structural.ts';

export interface PolicyRule {
  /** True: holds everywhere, or was broken in the same way before. */
  readonly expression: string;
  /** `spec.models[].modelCredentials` */
  readonly path: string;
  readonly message: string;
  /** CEL for the key of the first list entry or map value in which it does not hold, and the path around it. */
  readonly example?: { readonly key: string; readonly before: string; readonly after: string };
}

/** A place in the schema, as CEL about the object. */
interface Place {
  readonly path: string;
  /** What must hold for `holds` to hold everywhere: `self` is an expression for the value at this place. */
  readonly everywhere: (holds: (self: string) => string) => string;
  /** True where the old object has a value at this place of which `is` is true. */
  readonly before: (is: (old: string) => string) => string;
  /** The key of the first entry for which `holds` does not, where there is one list or map on the way. */
  readonly first?: (holds: (self: string) => string) => string;
  /** How long `path` is up to that list or map. */
  readonly listAt?: number;
  readonly depth: number;
}

/** Every rule of a spec's schema and of what lies below it, in the order of the fields. */
export function rulesBelow(spec: StructuralSchema): ReadonlyArray<PolicyRule> {
  return below(spec, {
    path: 'spec',
    everywhere: (holds) => holds('object.spec'),
    before: (is) => `(request.operation == 'UPDATE' && ${is('oldObject.spec')})`,
    depth: 0,
  });
}

function below(schema: StructuralSchema, place: Place): ReadonlyArray<PolicyRule> {
  const here = (schema['x-kubernetes-validations'] ?? []).map((validation) => toRule(validation, place));
  const properties = Object.entries(schema.properties ?? {}).flatMap(([name, child]) =>
    below(child, propertyOf(place, name, schema.required?.includes(name) ?? false)),
  );
  const items = schema.items === undefined ? [] : below(schema.items, itemOf(place, keyOf(schema)));
  const values = schema.additionalProperties === undefined ? [] : below(schema.additionalProperties, mapValueOf(place));
  return [...here, ...properties, ...items, ...values];
}

function toRule({ rule, message, fieldPath = '' }: Validation, place: Place): PolicyRule {
  const inPlace = (self: string, old = '') => `(${rule.replace(/\boldSelf\b/g, old).replace(/\bself\b/g, self)})`;
  // The same value breaks the same rule; where the rule is about a member, the rest may have changed.
  const wasSo = (self: string, old: string) =>
    fieldPath === ''
      ? `${self} == ${old}`
      : `!${inPlace(old)} && ${isSame(`${self}${fieldPath}`, `${old}${fieldPath}`)}`;
  const holds = /\boldSelf\b/.test(rule)
    ? (self: string) => `!${place.before((old) => `!${inPlace(self, old)}`)}`
    : (self: string) => `(${inPlace(self)} || ${place.before((old) => wasSo(self, old))})`;
  const { first, listAt = 0 } = place;
  const path = `${place.path}${fieldPath}`;
  return {
    expression: place.everywhere(holds),
    path,
    message,
    ...(first !== undefined && {
      example: { key: first(holds), before: path.slice(0, listAt), after: path.slice(listAt + 2) },
    }),
  };
}

/** Of two members that may be absent. */
const isSame = (one: string, other: string): string =>
  `has(${one}) == has(${other}) && (!has(${one}) || ${one} == ${other})`;

function propertyOf(place: Place, name: string, required: boolean): Place {
  const child = (self: string) => `${self}.${name}`;
  const present = (self: string, holds: (self: string) => string) =>
    required ? holds(child(self)) : `(!has(${child(self)}) || ${holds(child(self))})`;
  const { first } = place;
  return {
    ...place,
    path: `${place.path}.${name}`,
    everywhere: (holds) => place.everywhere((self) => present(self, holds)),
    before: (is) => place.before((old) => `has(${child(old)}) && ${is(child(old))}`),
    ...(first !== undefined && { first: (holds) => first((self) => present(self, holds)) }),
  };
}

/** `key` tells entries apart; without one an entry is the same as an equal one. */
function itemOf(place: Place, key: string | undefined): Place {
  const depth = place.depth + 1;
  const [entry, old] = [`entry${depth}`, `old${depth}`];
  const isIt = key === undefined ? `${old} == ${entry}` : `${old}.${key} == ${entry}.${key}`;
  const item: Place = {
    path: `${place.path}[]`,
    everywhere: (holds) => place.everywhere((self) => `${self}.all(${entry}, ${holds(entry)})`),
    before: (is) => place.before((list) => `${list}.exists(${old}, ${isIt} && ${is(old)})`),
    depth,
  };
  if (key === undefined || depth > 1) return item;
  const first: Place['first'] = (holds) =>
    listExpression(place, (self) => `${self}.filter(${entry}, !${holds(entry)})[0].${key}`);
  return { ...item, first, listAt: place.path.length };
}

function mapValueOf(place: Place): Place {
  const depth = place.depth + 1;
  const key = `key${depth}`;
  const value: Place = {
    path: `${place.path}{}`,
    everywhere: (holds) => place.everywhere((self) => `${self}.all(${key}, ${holds(`${self}[${key}]`)})`),
    before: (is) => place.before((map) => `${key} in ${map} && ${is(`${map}[${key}]`)}`),
    depth,
  };
  if (depth > 1) return value;
  const first: Place['first'] = (holds) =>
    listExpression(place, (self) => `${self}.filter(${key}, !${holds(`${self}[${key}]`)})[0]`);
  return { ...value, first, listAt: place.path.length };
}

/** What `place` is on the object itself: a message is asked for only where a rule does not hold, so the list is there. */
const listExpression = ({ path }: Place, of: (self: string) => string): string => of(`object.${path}`);

function keyOf(list: StructuralSchema): string | undefined {
  return list['x-kubernetes-list-map-keys']?.[0];
}
