// What stands in an answer of the API server? The little that we read of it; each throws on what is no such answer.
// By hand: these are few, and the schema library would be most of a cold start.
import { isMap, type Json } from '#crds/shapes.ts';

export interface Page {
  readonly items: ReadonlyArray<Json>;
  /** The token of the next page, `''` where this is the last one. */
  readonly next: string;
}

/** Go writes an empty list as null. */
export function readPage(text: string): Page {
  const { items, metadata } = read(text);
  const next = isMap(metadata) ? (metadata.continue ?? '') : '';
  const listed = items === null ? [] : items;
  if (!Array.isArray(listed) || !listed.every(isMap) || typeof next !== 'string') throw new Error('not a list');
  return { items: listed, next };
}

/** The plural names of what a version of a group offers. */
export function readOffer(text: string): ReadonlyArray<unknown> {
  const { resources } = read(text);
  if (!Array.isArray(resources) || !resources.every(isMap)) throw new Error('not a list of resources');
  return resources.map(({ name }) => name);
}

/** Whether a review of somebody's access allows it. */
export function readAllowed(text: string): boolean {
  const { status } = read(text);
  if (!isMap(status) || typeof status.allowed !== 'boolean') throw new Error('not a review of access');
  return status.allowed;
}

function read(text: string): Json {
  const json: unknown = JSON.parse(text);
  if (!isMap(json)) throw new Error('not an object');
  return json;
}
