// What does a server-side apply make of the live object, and who owns which field after it?
import { isObject, type JsonObject, sameJson } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { type Conflict, toConflicts } from './apply-conflicts.ts';
import { compareFields, fieldsOf } from './field-diff.ts';
import { bare, exclude, ignoredBy, overwritten, ownEntry, release, type Write } from './field-owners.ts';
import { difference, emptySet, type FieldSet, intersection, union, withDeclaredParents, without } from './field-set.ts';
import { objectSchema } from './field-shape.ts';
import { fieldsLastApplied, kubectl, withLastApplied } from './last-applied.ts';
import { identityOf, type Managers, managersOf, withManagers } from './managed-fields.ts';
import { typeErrors } from './typed-errors.ts';
import { mergeTyped, removeFields } from './typed-merge.ts';

export type { Conflict } from './apply-conflicts.ts';
export { conflictMessage } from './apply-conflicts.ts';
export { trackUpdate } from './track-update.ts';

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

/**
 * Applies a configuration for a manager: its fields are merged in and owned, fields that it applied before and left out now
 * go unless somebody else owns them, and fields that others own with other values are conflicts unless forced. The rules are
 * structured-merge-diff's. The new object still has to be defaulted, judged and given generation and resourceVersion; when
 * nothing changed it is the live object, managedFields and all.
 */
export function applyServerSide(apply: Apply): Applied {
  const schema = objectSchema(apply.schema);
  const wrong = typeErrors(apply.applied, schema);
  if (wrong !== undefined) return { invalid: wrong };
  const { live, applied, manager, subresource } = apply;
  if (manager !== kubectl || subresource !== undefined || live === undefined)
    return applyFields(apply, schema, emptySet);
  const outcome = applyFields(apply, schema, fieldsLastApplied(bare(live), schema));
  return outcome.object ? { object: withLastApplied(outcome.object, applied) } : outcome;
}

/** `tolerated`: fields that may be taken from others without force. */
function applyFields({ live, applied, force, ...write }: Apply, schema: Schema, tolerated: FieldSet): Applied {
  const base = live ?? { apiVersion: applied.apiVersion, kind: applied.kind, metadata: {} };
  const before = liveManagers(base, schema, write);
  const self = ownEntry(write, String(applied.apiVersion), 'Apply');
  const id = identityOf(self);
  const ignored = ignoredBy(write);
  const owned = new Map(before).set(id, { ...self, fields: without(fieldsOf(applied, schema), ignored) });
  const merged = mergeTyped(bare(base), bare(applied), schema) as JsonObject; // two objects make an object
  const pruned = prune(merged, { last: before.get(id)?.fields, managers: owned, schema });
  const change = exclude(compareFields(bare(base), pruned, schema), ignored);
  const disputed = overwritten(owned, id, change);
  const conflicts = force ? [] : toConflicts(disputed, owned, tolerated);
  if (conflicts.length > 0) return { conflicts };
  return { object: settle({ live, pruned, managers: release(owned, id, disputed, change), before, id }) };
}

/** The outcome with managedFields. An apply that changes nothing of the object has no time of its own: it keeps the last one, or none. */
function settle(step: {
  live: JsonObject | undefined;
  pruned: JsonObject;
  managers: Managers;
  before: Managers;
  id: string;
}): JsonObject {
  const { live, pruned, managers, before, id } = step;
  const own = managers.get(id);
  if (live === undefined || own === undefined || !sameJson(bare(live), pruned)) return withManagers(pruned, managers);
  const { time: _, ...timeless } = own;
  const last = before.get(id)?.time;
  const kept = withManagers(
    pruned,
    new Map(managers).set(id, last === undefined ? timeless : { ...timeless, time: last }),
  );
  return sameJson(kept, live) ? live : kept;
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
