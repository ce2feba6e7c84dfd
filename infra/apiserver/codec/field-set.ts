// Which fields does a manager own? A set of paths, as `managedFields` writes it (fieldsV1).
import { isObject, type JsonObject } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { fieldSchema } from './field-shape.ts';

/**
 * A set of field paths as a tree. A path element is written as in fieldsV1: `f:name` a member, `k:{"name":"a"}` an element
 * of a list by its keys, `v:"x"` a value of a set. `member` says that the path ending here is in the set itself.
 */
export type FieldSet = ReadonlyMap<string, Entry>;
export type Entry = { readonly member: boolean; readonly below: FieldSet };

export const emptySet: FieldSet = new Map();

export function fromFieldsV1(fields: unknown): FieldSet {
  if (!isObject(fields)) return emptySet;
  const entries = Object.entries(fields).filter(([element]) => element !== '.');
  return new Map(
    entries.map(([element, child]) => {
      const below = fromFieldsV1(child);
      return [element, { member: below.size === 0 || (isObject(child) && '.' in child), below }];
    }),
  );
}

export function toFieldsV1(set: FieldSet): JsonObject {
  const sorted = [...set].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    sorted.map(([element, { member, below }]) => [
      element,
      { ...(member && below.size > 0 ? { '.': {} } : {}), ...toFieldsV1(below) },
    ]),
  );
}

/** The set of the given paths. */
export function setOf(paths: Iterable<readonly string[]>): FieldSet {
  let set: FieldSet = emptySet;
  for (const path of paths) set = union(set, single(path));
  return set;
}

function single([element, ...rest]: readonly string[]): FieldSet {
  if (element === undefined) return emptySet;
  return new Map([[element, { member: rest.length === 0, below: single(rest) }]]);
}

export function union(left: FieldSet, right: FieldSet): FieldSet {
  const result = new Map(left);
  for (const [element, entry] of right) {
    const mine = left.get(element);
    result.set(element, mine ? { member: mine.member || entry.member, below: union(mine.below, entry.below) } : entry);
  }
  return result;
}

export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, (element, entry) => {
    const other = right.get(element);
    return {
      member: entry.member && other?.member === true,
      below: intersection(entry.below, other?.below ?? emptySet),
    };
  });
}

export function difference(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, (element, entry) => {
    const other = right.get(element);
    return { member: entry.member && other?.member !== true, below: difference(entry.below, other?.below ?? emptySet) };
  });
}

/** What is in `left` and neither in `right` nor below a path of it. */
export function without(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, (element, entry) => {
    const other = right.get(element);
    if (other?.member) return { member: false, below: emptySet };
    return { member: entry.member, below: without(entry.below, other?.below ?? emptySet) };
  });
}

function combine(set: FieldSet, change: (element: string, entry: Entry) => Entry): FieldSet {
  const result = new Map<string, Entry>();
  for (const [element, entry] of set) {
    const changed = change(element, entry);
    if (changed.member || changed.below.size > 0) result.set(element, changed);
  }
  return result;
}

/** With every declared member on the way to a path in the set itself: `spec.a` puts `spec` in too. */
export function withDeclaredParents(set: FieldSet, schema: Schema | undefined): FieldSet {
  return new Map(
    [...set].map(([element, { member, below }]) => {
      const declared = element.startsWith('f:') && Object.hasOwn(schema?.properties ?? {}, element.slice(2));
      return [
        element,
        {
          member: member || (declared && below.size > 0),
          below: withDeclaredParents(below, fieldSchema(schema, element)),
        },
      ];
    }),
  );
}

/** Every path of the set, in the order in which Kubernetes lists them. */
export function pathsOf(set: FieldSet, above: readonly string[] = []): string[][] {
  const sorted = [...set].sort(([a], [b]) => (a < b ? -1 : 1));
  const here = sorted.filter(([, { member }]) => member).map(([element]) => [...above, element]);
  return [...here, ...sorted.flatMap(([element, { below }]) => pathsOf(below, [...above, element]))];
}

/** A path as conflicts name it: `.spec.items[name="a"].value`. */
export function pathText(path: readonly string[]): string {
  return path.map(elementText).join('');
}

/** One path element as conflicts name it. */
export function elementText(element: string): string {
  const rest = element.slice(2);
  if (element.startsWith('f:')) return `.${rest}`;
  if (element.startsWith('v:')) return `[=${rest}]`;
  if (!element.startsWith('k:')) return `[${rest}]`;
  const keys = Object.entries(JSON.parse(rest) as JsonObject);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
}
