// What does a server-side apply make of the live object, and who owns which field after it?
import { isObject, type JsonObject, sameJson } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { type Conflict, toConflicts } from './apply-conflicts.ts';
import { type Comparison, compareFields, fieldsOf } from './field-diff.ts';
import {
  difference,
  emptySet,
  type FieldSet,
  intersection,
  setOf,
  union,
  withDeclaredParents,
  without,
} from './field-set.ts';
import { objectSchema } from './field-shape.ts';
import { identityOf, type Manager, type Managers, managersOf, withManagers } from './managed-fields.ts';
import { typeErrors } from './typed-errors.ts';
import { mergeTyped, removeFields } from './typed-merge.ts';

export type { Conflict } from './apply-conflicts.ts';
export { conflictMessage } from './apply-conflicts.ts';

/** What both kinds of write have in common. */
type Write = {
  readonly manager: string;
  /** The kind's schema (`coreSchema`, or the CRD version's); without one the values themselves decide. */
  readonly schema: Schema | undefined;
  /** Now, RFC 3339, to the second. */
  readonly time: string;
  /** `status` where the request was for that subresource. */
  readonly subresource?: string;
  /** Paths that this request cannot write, so it owns nothing there: `[['status']]` for a kind with a status subresource. */
  readonly ignored?: ReadonlyArray<readonly string[]>;
};

export type Apply = Write & {
  readonly live: JsonObject | undefined;
  readonly applied: JsonObject;
  readonly force: boolean;
};

/** An outcome of `applyServerSide`: the new object, or what stands against it. `invalid` is the message of a 400-like refusal. */
export type Applied =
  | { readonly object: JsonObject; readonly conflicts?: undefined; readonly invalid?: undefined }
  | { readonly conflicts: readonly Conflict[]; readonly object?: undefined; readonly invalid?: undefined }
  | { readonly invalid: string; readonly object?: undefined; readonly conflicts?: undefined };

export type Update = Write & { readonly before: JsonObject | undefined; readonly after: JsonObject };

/**
 * Applies a configuration for a manager: its fields are merged in and owned, fields that it applied before and left out now
 * go unless somebody else owns them, and fields that others own with other values are conflicts unless forced. The rules are
 * structured-merge-diff's. The new object still has to be defaulted, judged and given generation and resourceVersion; when
 * nothing changed it is the live object, managedFields and all.
 */
export function applyServerSide({ live, applied, force, ...write }: Apply): Applied {
  const schema = objectSchema(write.schema);
  const wrong = typeErrors(applied, schema);
  if (wrong !== undefined) return { invalid: wrong };
  const base = live ?? { apiVersion: applied.apiVersion, kind: applied.kind, metadata: {} };
  const before = liveManagers(base, schema, write);
  const self = ownEntry(write, String(applied.apiVersion), 'Apply');
  const id = identityOf(self);
  const ignored = ignoredBy(write);
  const owned = new Map(before).set(id, { ...self, fields: without(fieldsOf(applied, schema), ignored) });
  const merged = mergeTyped(bare(base), bare(applied), schema) as JsonObject;
  const pruned = prune(merged, { last: before.get(id)?.fields, managers: owned, schema });
  const change = compareFields(bare(base), pruned, schema);
  const disputed = overwritten(owned, id, exclude(change, ignored));
  if (disputed.size > 0 && !force) return { conflicts: toConflicts(disputed, owned) };
  const managers = release(owned, id, disputed, exclude(change, ignored));
  return { object: settle({ live, base, pruned, managers, before, id }) };
}

/** The outcome with managedFields; times stay when neither the object nor its managers changed. */
function settle(step: {
  live: JsonObject | undefined;
  base: JsonObject;
  pruned: JsonObject;
  managers: Managers;
  before: Managers;
  id: string;
}): JsonObject {
  const { live, pruned, managers, before, id } = step;
  const own = managers.get(id);
  const previous = before.get(id)?.time;
  if (live && own && previous !== undefined && sameJson(bare(live), pruned)) {
    const kept = withManagers(pruned, new Map(managers).set(id, { ...own, time: previous }));
    if (sameJson(kept, live)) return live;
  }
  return withManagers(pruned, managers);
}

/** Notes who wrote what in a create, update or patch that is no apply; returns `after` with its managedFields. */
export function trackUpdate({ before, after, ...write }: Update): JsonObject {
  const schema = objectSchema(write.schema);
  const sent = isObject(after.metadata) ? after.metadata.managedFields : undefined;
  const reset = Array.isArray(sent) && sent.length === 1 && isObject(sent[0]) && Object.keys(sent[0]).length === 0;
  if (reset && before && write.subresource === undefined) return withManagers(after, new Map());
  const given = managersOf(after);
  const managers = given.size > 0 && write.subresource === undefined ? given : managersOf(before);
  if (before && managers.size === 0) return withManagers(after, managers); // never tracked: an apply begins with it
  const base = before ?? { apiVersion: after.apiVersion, kind: after.kind, metadata: {} };
  const change = exclude(compareFields(bare(base), bare(after), schema), ignoredBy(write));
  const rest = release(managers, '', overwritten(managers, '', change), change);
  const written = union(change.modified, change.added);
  if (written.size === 0) return withManagers(after, rest);
  const self = ownEntry(write, String(after.apiVersion), 'Update');
  const mine = rest.get(identityOf(self));
  const fields = union(written, mine?.fields ?? emptySet);
  return withManagers(after, new Map(rest).set(identityOf(self), { ...self, fields }));
}

function ownEntry(write: Write, apiVersion: string, operation: Manager['operation']): Manager {
  const { manager, time, subresource } = write;
  return { manager, operation, apiVersion, time, fields: emptySet, ...(subresource ? { subresource } : {}) };
}

/** Managers of the live object; one that was never tracked is owned by `before-first-apply`. */
function liveManagers(live: JsonObject, schema: Schema, write: Write): Managers {
  const managers = managersOf(live);
  const isNew = !isObject(live.metadata) || live.metadata.uid === undefined;
  if (managers.size > 0 || isNew) return managers;
  const empty = { apiVersion: live.apiVersion, kind: live.kind, metadata: {} };
  const { added, modified } = compareFields(empty, bare(live), schema);
  const first = ownEntry({ ...write, manager: 'before-first-apply' }, String(live.apiVersion), 'Update');
  return new Map([[identityOf(first), { ...first, fields: union(added, modified) }]]);
}

function ignoredBy({ ignored }: Write): FieldSet {
  return setOf((ignored ?? []).map((path) => path.map((name) => `f:${name}`)));
}

function exclude({ added, modified, removed }: Comparison, ignored: FieldSet): Comparison {
  if (ignored.size === 0) return { added, modified, removed };
  return { added: without(added, ignored), modified: without(modified, ignored), removed: without(removed, ignored) };
}

/** Fields of other managers that this write gives another value. */
function overwritten(managers: Managers, self: string, { added, modified }: Comparison): Map<string, FieldSet> {
  const changed = union(modified, added);
  const disputed = new Map<string, FieldSet>();
  for (const [id, { fields }] of managers) {
    const common = id === self ? emptySet : intersection(fields, changed);
    if (common.size > 0) disputed.set(id, common);
  }
  return disputed;
}

/** Others lose what was overwritten and what is gone; who owns nothing any more is dropped. */
function release(
  managers: Managers,
  self: string,
  lost: ReadonlyMap<string, FieldSet>,
  { removed }: Comparison,
): Managers {
  const rest = new Map<string, Manager>();
  for (const [id, manager] of managers) {
    const fields =
      id === self ? manager.fields : difference(difference(manager.fields, lost.get(id) ?? emptySet), removed);
    if (fields.size > 0) rest.set(id, { ...manager, fields });
  }
  return rest;
}

/** Takes out what the manager applied last time and nobody owns now. */
function prune(merged: JsonObject, by: { last: FieldSet | undefined; managers: Managers; schema: Schema }): JsonObject {
  const { last, managers, schema } = by;
  if (last === undefined || last.size === 0) return merged;
  const named = (set: FieldSet) => withDeclaredParents(set, schema);
  const all = named(fieldsOf(merged, schema));
  const left = named(fieldsOf(removeFields(merged, named(last), schema), schema));
  const managed = named([...managers.values()].map(({ fields }) => fields).reduce(union, emptySet));
  const owned = removeFields(merged, difference(all, union(left, managed)), schema);
  const gone = difference(all, named(fieldsOf(owned, schema)));
  return removeFields(merged, intersection(gone, named(last)), schema) as JsonObject;
}

function bare(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = isObject(object.metadata) ? object.metadata : {};
  return { ...object, metadata };
}
