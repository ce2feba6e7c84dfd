// Which fields does a value have, and which differ between two?
import { isObject, sameJson } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { type Entry, emptySet, type FieldSet } from './field-set.ts';
import { elementOf, fieldSchema, shapeOf } from './field-shape.ts';

/** Every field that a value says something about: what a server-side apply makes its manager the owner of. */
export function fieldsOf(value: unknown, schema: Schema | undefined): FieldSet {
  const shape = shapeOf(schema, value);
  if (shape === 'list' && Array.isArray(value)) {
    return new Map(
      value.map((item) => [elementOf(schema, item), { member: true, below: fieldsOf(item, schema?.items) }]),
    );
  }
  if (shape !== 'map' || !isObject(value)) return emptySet;
  return new Map(
    Object.entries(value).flatMap(([key, child]): [string, Entry][] => {
      const declared = schema?.properties !== undefined && Object.hasOwn(schema.properties, key);
      const at = fieldSchema(schema, `f:${key}`);
      const below = fieldsOf(child, at);
      const bare = child === null || (isObject(child) && Object.keys(child).length === 0);
      const member = bare || !declared || shapeOf(at, child) === 'leaf';
      return member || below.size > 0 ? [[`f:${key}`, { member, below }]] : [];
    }),
  );
}

/** What became of the fields between two values; a new container is `added` itself too. */
export type Comparison = { readonly added: FieldSet; readonly modified: FieldSet; readonly removed: FieldSet };

type Verdict = 'added' | 'modified' | 'removed';
type Difference = { readonly here?: Verdict; readonly below: ReadonlyMap<string, Difference> };

/** Compares two values of one schema. An absent value is `undefined`, which is not the same as null. */
export function compareFields(before: unknown, after: unknown, schema: Schema | undefined): Comparison {
  const difference = compare(before, after, schema);
  return {
    added: collect(difference.below, 'added'),
    modified: collect(difference.below, 'modified'),
    removed: collect(difference.below, 'removed'),
  };
}

function compare(before: unknown, after: unknown, schema: Schema | undefined): Difference {
  const below = new Map<string, Difference>();
  const shape = shapeOf(schema, before, after);
  if (shape === 'leaf' || (isBare(before) && isBare(after))) {
    if (sameJson(before, after) && before !== undefined) return { below };
    return { here: verdict(before, after) ?? 'modified', below };
  }
  const [old, now] =
    shape === 'list' ? [byElement(before, schema), byElement(after, schema)] : [byMember(before), byMember(after)];
  for (const element of new Set([...old.keys(), ...now.keys()])) {
    const difference = compare(old.get(element), now.get(element), fieldSchema(schema, element));
    if (difference.here || difference.below.size > 0) below.set(element, difference);
  }
  const here = verdict(before, after) ?? (shape === 'map' && becameAnother(before, after) ? 'modified' : undefined);
  return here ? { here, below } : { below };
}

/** Where a schema leaves the type open, a map may become something else, or something else a map: itself and its members change. */
function becameAnother(before: unknown, after: unknown): boolean {
  return before !== null && after !== null && isObject(before) !== isObject(after);
}

function verdict(before: unknown, after: unknown): Verdict | undefined {
  if (before === undefined) return 'added';
  return after === undefined ? 'removed' : undefined;
}

function isBare(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

function byMember(value: unknown): Map<string, unknown> {
  return new Map(isObject(value) ? Object.entries(value).map(([key, child]) => [`f:${key}`, child]) : []);
}

function byElement(value: unknown, schema: Schema | undefined): Map<string, unknown> {
  return new Map(Array.isArray(value) ? value.map((item) => [elementOf(schema, item), item]) : []);
}

function collect(differences: ReadonlyMap<string, Difference>, wanted: Verdict): FieldSet {
  const set = new Map<string, Entry>();
  for (const [element, { here, below }] of differences) {
    const entry = { member: here === wanted, below: collect(below, wanted) };
    if (entry.member || entry.below.size > 0) set.set(element, entry);
  }
  return set;
}
