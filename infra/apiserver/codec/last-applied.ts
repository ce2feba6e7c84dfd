// How does `kubectl apply --server-side` go on where `kubectl apply` began?
import { goJson } from '../schema/go-words.ts';
import { isObject, type JsonObject, member } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { compareFields, fieldsOf } from './field-diff.ts';
import { difference, emptySet, type FieldSet } from './field-set.ts';

const annotation = 'kubectl.kubernetes.io/last-applied-configuration';

/** The manager whose applies continue what client-side apply noted in its annotation; any other name opts out. */
export const kubectl = 'kubectl';

/**
 * Fields that client-side apply last wrote and nobody changed since: they are kubectl's own, so taking them over is no
 * conflict (`allowedConflictsFromLastApplied` of the API server).
 */
export function fieldsLastApplied(live: JsonObject, schema: Schema): FieldSet {
  const noted = lastApplied(live);
  if (noted === undefined) return emptySet;
  const { added, modified, removed } = compareFields(noted, live, schema);
  return [modified, added, removed].reduce(difference, fieldsOf(noted, schema));
}

/** The object with its annotation brought up to what was applied, where it has one: client-side apply may go on with it. */
export function withLastApplied(object: JsonObject, applied: JsonObject): JsonObject {
  if (lastApplied(object) === undefined) return object;
  const { metadata, ...rest } = applied;
  const { annotations, ...named } = isObject(metadata) ? metadata : {};
  const { [annotation]: _, ...others } = isObject(annotations) ? annotations : {};
  const kept = Object.keys(others).length > 0 ? { annotations: others } : {};
  const text = `${goJson({ ...rest, metadata: { ...named, ...kept } })}\n`;
  const now = isObject(object.metadata) ? object.metadata : {};
  const current = isObject(now.annotations) ? now.annotations : {};
  return { ...object, metadata: { ...now, annotations: { ...current, [annotation]: text } } };
}

function lastApplied(object: JsonObject): JsonObject | undefined {
  const text = member(member(object.metadata, 'annotations'), annotation);
  if (typeof text !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // somebody else wrote the annotation
  }
}
