// What is the live object after an applied configuration is merged in, and after fields are taken out?
import { copyJson, isObject, type JsonObject, setMember } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { emptySet, type FieldSet } from './field-set.ts';
import { elementOf, fieldSchema, shapeOf } from './field-shape.ts';

/** Merges by the schema: members and keyed elements one by one, leaves from the configuration where it has them. */
export function mergeTyped(live: unknown, applied: unknown, schema: Schema | undefined): unknown {
  if (applied === undefined) return copyJson(live);
  if (live === undefined) return copyJson(applied);
  const shape = shapeOf(schema, live, applied);
  if (shape === 'list' && (Array.isArray(live) || Array.isArray(applied))) {
    return mergeLists(Array.isArray(live) ? live : [], Array.isArray(applied) ? applied : [], schema);
  }
  if (shape !== 'map' || !isObject(live)) return copyJson(applied);
  if (!isObject(applied)) return copyJson(applied === null ? live : applied);
  const merged: JsonObject = {};
  for (const key of new Set([...Object.keys(live), ...Object.keys(applied)])) {
    setMember(merged, key, mergeTyped(live[key], applied[key], fieldSchema(schema, `f:${key}`)));
  }
  return merged;
}

/**
 * Two lists of keyed elements. The applied order holds among its elements; live elements that it does not name keep their
 * place among their neighbours (structured-merge-diff's `visitListItems`).
 */
function mergeLists(live: readonly unknown[], applied: readonly unknown[], schema: Schema | undefined): unknown[] {
  const [left, right] = [live, applied].map((list) => list.map((item) => elementOf(schema, item))) as [
    string[],
    string[],
  ];
  const mine = new Map(live.map((item, i) => [left[i] ?? '', item]));
  const theirs = new Map(applied.map((item, i) => [right[i] ?? '', item]));
  const shared = right.filter((element) => mine.has(element));
  const taken = new Set<string>();
  const out: unknown[] = [];
  const takeRight = (element: string) => {
    taken.add(element);
    if (shared[0] === element) shared.shift();
    out.push(mergeTyped(mine.get(element), theirs.get(element), schema?.items));
  };
  for (let l = 0, r = 0; l < left.length || r < right.length; ) {
    const [here, there] = [left[l], right[r]];
    if (here !== undefined && here === there) {
      takeRight(here);
      l++;
      r++;
    } else if (
      here !== undefined &&
      there !== undefined &&
      theirs.has(here) &&
      shared.length > 0 &&
      shared[0] !== here
    ) {
      l++; // shared, but the applied order wants another one first
    } else if (here !== undefined && !theirs.has(here)) {
      out.push(copyJson(live[l]));
      l++;
    } else {
      if (here !== undefined && taken.has(here)) l++;
      if (there !== undefined) {
        takeRight(there);
        r++;
      }
    }
  }
  return out;
}

/** The value without the fields of the set. A container that is emptied becomes null, as in structured-merge-diff. */
export function removeFields(value: unknown, fields: FieldSet, schema: Schema | undefined): unknown {
  if (fields.size === 0) return value;
  const shape = shapeOf(schema, value);
  if (shape === 'list' && Array.isArray(value)) {
    const kept = value.flatMap((item) => {
      const entry = fields.get(elementOf(schema, item));
      return entry?.member ? [] : [removeFields(item, entry?.below ?? emptySet, schema?.items)];
    });
    return kept.length > 0 ? kept : null;
  }
  if (shape !== 'map' || !isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [key, child] of Object.entries(value)) {
    const entry = fields.get(`f:${key}`);
    if (entry?.member) continue;
    setMember(kept, key, removeFields(child, entry?.below ?? emptySet, fieldSchema(schema, `f:${key}`)));
  }
  return Object.keys(kept).length > 0 ? kept : null;
}
