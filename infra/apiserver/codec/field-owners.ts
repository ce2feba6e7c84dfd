// Whose fields does a write take, and what is left to the others?
import { isObject, type JsonObject } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import type { Comparison } from './field-diff.ts';
import { difference, emptySet, type FieldSet, intersection, setOf, union, without } from './field-set.ts';
import type { Manager, Managers } from './managed-fields.ts';

/** What both kinds of write have in common. */
export type Write = {
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

/** The entry of the writer itself, before it owns anything. */
export function ownEntry(write: Write, apiVersion: string, operation: Manager['operation']): Manager {
  const { manager, time, subresource } = write;
  return { manager, operation, apiVersion, time, fields: emptySet, ...(subresource ? { subresource } : {}) };
}

/** The paths that this write owns nothing of. */
export function ignoredBy({ ignored }: Write): FieldSet {
  return setOf((ignored ?? []).map((path) => path.map((name) => `f:${name}`)));
}

export function exclude({ added, modified, removed }: Comparison, ignored: FieldSet): Comparison {
  if (ignored.size === 0) return { added, modified, removed };
  return { added: without(added, ignored), modified: without(modified, ignored), removed: without(removed, ignored) };
}

/** Fields of other managers that this write gives another value. */
export function overwritten(managers: Managers, self: string, { added, modified }: Comparison): Map<string, FieldSet> {
  const changed = union(modified, added);
  const disputed = new Map<string, FieldSet>();
  for (const [id, { fields }] of managers) {
    const common = id === self ? emptySet : intersection(fields, changed);
    if (common.size > 0) disputed.set(id, common);
  }
  return disputed;
}

/** Others lose what was overwritten and what is gone; who owns nothing any more is dropped. */
export function release(
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

/** An object without its managedFields: what managers own is never that. */
export function bare(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = isObject(object.metadata) ? object.metadata : {};
  return { ...object, metadata };
}
