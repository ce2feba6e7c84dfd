// What does a strategic merge patch make of a core object?
import { copyJson, isObject, type JsonObject, sameJson, setMember } from '../schema/json.ts';
import { memberSchema, type Schema } from '../schema/schema.ts';
import { PatchError } from './json-patch.ts';

const setOrder = '$setElementOrder/';
const deletePrimitives = '$deleteFromPrimitiveList/';

/**
 * A copy of the target with the patch merged in: lists with a merge key by that key, lists of primitives with strategy
 * `merge` as sets, all else as a merge patch; with the directives `$patch`, `$retainKeys`, `$setElementOrder` and
 * `$deleteFromPrimitiveList`. `schema` is the kind's (`coreSchema`). Throws `PatchError` for a patch that contradicts it.
 */
export function strategicMerge(schema: Schema | undefined, target: JsonObject, patch: JsonObject): JsonObject {
  return mergeObject(schema, target, patch);
}

function mergeObject(schema: Schema | undefined, target: JsonObject, patch: JsonObject): JsonObject {
  const directive = patch.$patch;
  if (directive === 'replace') return withoutDirectives(patch);
  if (directive === 'delete') return {};
  if (directive !== undefined && directive !== 'merge') {
    throw new PatchError(400, `unknown directive "$patch": ${JSON.stringify(directive)}`);
  }
  const merged = retain(copyJson(target), patch.$retainKeys);
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue;
    if (value === null) delete merged[key];
    else setMember(merged, key, mergeMember(memberSchema(schema, key), merged[key], value));
  }
  for (const [key, value] of Object.entries(patch)) listDirective(schema, merged, key, value);
  return merged;
}

function mergeMember(schema: Schema | undefined, before: unknown, value: unknown): unknown {
  if (isObject(value)) {
    if (strategies(schema).includes('replace') || !isObject(before)) return mergeObject(schema, {}, value);
    return mergeObject(schema, before, value);
  }
  if (!Array.isArray(value)) return value;
  if (!strategies(schema).includes('merge') || !Array.isArray(before)) return newList(schema, value);
  const key = schema?.['x-kubernetes-patch-merge-key'];
  return key === undefined ? mergePrimitives(before, value) : mergeByKey(schema, before, value);
}

function mergePrimitives(before: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const merged = [...before];
  for (const value of patch) if (!merged.some((one) => sameJson(one, value))) merged.push(value);
  return merged;
}

function mergeByKey(schema: Schema | undefined, before: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const key = mergeKey(schema);
  if (patch.some((item) => isObject(item) && item.$patch === 'replace')) return newList(schema, patch);
  const merged = [...before];
  for (const item of patch) {
    if (!isObject(item)) throw new PatchError(400, `elements of a list merged by ${key} must be objects`);
    if (item[key] === undefined)
      throw new PatchError(400, `map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
    const at = merged.findIndex((one) => isObject(one) && one[key] === item[key]);
    if (item.$patch === 'delete') {
      if (at >= 0) merged.splice(at, 1);
    } else if (at < 0) merged.push(mergeObject(schema?.items, {}, item));
    else merged[at] = mergeObject(schema?.items, merged[at] as JsonObject, item);
  }
  return merged;
}

/** A list that replaces: its own directives are obeyed and dropped. */
function newList(schema: Schema | undefined, list: readonly unknown[]): unknown[] {
  return list.flatMap((item) => {
    if (!isObject(item)) return [copyJson(item)];
    if (item.$patch === 'delete') return [];
    if (item.$patch === 'replace' && Object.keys(item).length === 1) return [];
    return [mergeObject(schema?.items, {}, item)];
  });
}

function listDirective(schema: Schema | undefined, merged: JsonObject, directive: string, value: unknown): void {
  if (!Array.isArray(value)) return;
  if (directive.startsWith(deletePrimitives)) {
    const key = directive.slice(deletePrimitives.length);
    const list = merged[key];
    if (Array.isArray(list))
      setMember(
        merged,
        key,
        list.filter((item) => !value.some((one) => sameJson(one, item))),
      );
  } else if (directive.startsWith(setOrder)) {
    const key = directive.slice(setOrder.length);
    const list = merged[key];
    if (Array.isArray(list)) setMember(merged, key, ordered(list, value, memberSchema(schema, key)));
  }
}

/** The named elements in the patch's order; the others keep their place relative to what stood before them. */
function ordered(list: readonly unknown[], order: readonly unknown[], schema: Schema | undefined): unknown[] {
  const key = schema?.['x-kubernetes-patch-merge-key'];
  const identity = (item: unknown) => JSON.stringify(key !== undefined && isObject(item) ? item[key] : item);
  const position = new Map(order.map((item, i) => [identity(item), i]));
  const named = list.filter((item) => position.has(identity(item)));
  named.sort((a, b) => (position.get(identity(a)) ?? 0) - (position.get(identity(b)) ?? 0));
  const result = [...named];
  list.forEach((item, i) => {
    if (position.has(identity(item))) return;
    const before = list.slice(0, i).at(-1);
    const at = before === undefined ? -1 : result.indexOf(before);
    result.splice(at + 1, 0, item);
  });
  return result;
}

function retain(target: JsonObject, keys: unknown): JsonObject {
  if (!Array.isArray(keys)) return target;
  return Object.fromEntries(Object.entries(target).filter(([key]) => keys.includes(key)));
}

function withoutDirectives(value: JsonObject): JsonObject {
  return copyJson(Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith('$'))));
}

function strategies(schema: Schema | undefined): readonly string[] {
  return (schema?.['x-kubernetes-patch-strategy'] ?? '').split(',');
}

function mergeKey(schema: Schema | undefined): string {
  return schema?.['x-kubernetes-patch-merge-key'] ?? '';
}
