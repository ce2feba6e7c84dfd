// Who owns which field after a write that is no apply?
import { isObject, type JsonObject } from '../schema/json.ts';
import { compareFields } from './field-diff.ts';
import { bare, exclude, ignoredBy, overwritten, ownEntry, release, type Write } from './field-owners.ts';
import { emptySet, union } from './field-set.ts';
import { objectSchema } from './field-shape.ts';
import { identityOf, managersOf, withManagers } from './managed-fields.ts';

export type Update = Write & { readonly before: JsonObject | undefined; readonly after: JsonObject };

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
