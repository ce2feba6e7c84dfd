// Strategic merge patches of core kinds.
import { isObject, type JsonObject, sameJson, setMember } from '../schema/json.ts';
import { memberSchema, type Schema } from '../schema/schema.ts';
import { PatchError } from './patches.ts';

const deletePrimitives = '$deleteFromPrimitiveList/';

/**
 * A copy of the target with the patch merged in: lists with a merge key by that key, lists of primitives with strategy
 * `merge` as sets, all else as a merge patch; with the directives `$patch`, `$retainKeys` and
 * `$deleteFromPrimitiveList`.
 * Elements stay in their order and new ones come last, whatever `$setElementOrder` says. `schema` is the kind's
 * (`coreSchema`). Throws `PatchError` for a patch that contradicts it.
 */
export function strategicMerge(schema: Schema | undefined, target: JsonObject, patch: JsonObject): JsonObject {
  const directive = patch.$patch;
  if (directive === 'replace') return withoutDirectives(patch);
  if (directive === 'delete') return {};
  if (directive !== undefined && directive !== 'merge') throw unknownDirective(directive);
  const merged = retain(structuredClone(target), patch.$retainKeys);
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue;
    if (value === null) delete merged[key];
    else setMember(merged, key, mergeMember(memberSchema(schema, key), merged[key], value));
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(deletePrimitives)) deleteFrom(merged, key.slice(deletePrimitives.length), value);
  }
  return merged;
}

function mergeMember(schema: Schema | undefined, before: unknown, value: unknown): unknown {
  if (isObject(value)) {
    const replaces = strategies(schema).includes('replace') || !isObject(before);
    return strategicMerge(schema, replaces ? {} : before, value);
  }
  if (!Array.isArray(value)) return value;
  if (!strategies(schema).includes('merge')) return newList(schema, value);
  const old = Array.isArray(before) ? before : [];
  if (mergeKey(schema) !== undefined) return mergeByKey(schema, old, value);
  const merged = [...old];
  for (const one of value) if (!merged.some((other) => sameJson(one, other))) merged.push(one);
  return merged;
}

function mergeByKey(schema: Schema | undefined, before: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const key = mergeKey(schema) ?? '';
  const plain = patch.filter((item) => keyed(item, key).$patch === undefined);
  const special = patch.flatMap((item) => (isObject(item) && item.$patch !== undefined ? [item] : []));
  if (special.some(({ $patch }) => $patch === 'replace')) return newList(schema, plain);
  const deleted = special.map((item) => {
    if (item.$patch === 'delete') return item[key];
    throw unknownDirective(item.$patch);
  });
  const merged = before.filter((item) => !(isObject(item) && deleted.includes(item[key])));
  for (const item of plain) {
    const at = merged.findIndex((one) => isObject(one) && one[key] === keyed(item, key)[key]);
    const old = merged[at];
    if (isObject(old)) merged[at] = strategicMerge(schema?.items, old, keyed(item, key));
    else merged.push(strategicMerge(schema?.items, {}, keyed(item, key)));
  }
  return merged;
}

/** An element of a list that is merged by key; only one that replaces the list has none. */
function keyed(item: unknown, key: string): JsonObject {
  if (!isObject(item)) throw new PatchError(400, `elements of a list merged by ${key} must be objects`);
  if (item[key] !== undefined || item.$patch === 'replace') return item;
  throw new PatchError(400, `map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
}

/** A list that replaces: directives in it are obeyed and dropped. */
function newList(schema: Schema | undefined, list: readonly unknown[]): unknown[] {
  return list.flatMap((item) => {
    if (!isObject(item)) return [structuredClone(item)];
    return item.$patch === undefined ? [strategicMerge(schema?.items, {}, item)] : [];
  });
}

function deleteFrom(object: JsonObject, key: string, unwanted: unknown): void {
  const list = object[key];
  if (!Array.isArray(list) || !Array.isArray(unwanted)) return;
  const kept = list.filter((item) => !unwanted.some((one) => sameJson(one, item)));
  setMember(object, key, kept);
}

function retain(target: JsonObject, keys: unknown): JsonObject {
  if (!Array.isArray(keys)) return target;
  return Object.fromEntries(Object.entries(target).filter(([key]) => keys.includes(key)));
}

function withoutDirectives(value: JsonObject): JsonObject {
  return structuredClone(Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith('$'))));
}

function unknownDirective(directive: unknown): PatchError {
  return new PatchError(400, `unknown patch type: ${String(directive)}`);
}

function strategies(schema: Schema | undefined): readonly string[] {
  return (schema?.['x-kubernetes-patch-strategy'] ?? '').split(',');
}

function mergeKey(schema: Schema | undefined): string | undefined {
  return schema?.['x-kubernetes-patch-merge-key'];
}
