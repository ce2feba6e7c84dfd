// Strategic merge patches of core kinds.
import { copyJson, isObject, type JsonObject, sameJson, setMember } from '../schema/json.ts';
import { memberSchema, type Schema } from '../schema/schema.ts';
import { PatchError } from './patches.ts';

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
  if (directive !== undefined && directive !== 'merge') throw unknownDirective(directive);
  const merged = retain(copyJson(target), patch.$retainKeys);
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue;
    if (value === null) delete merged[key];
    else setMember(merged, key, mergeMember(memberSchema(schema, key), merged[key], value));
  }
  for (const [key, value] of Object.entries(patch)) {
    if (Array.isArray(value)) listDirective(schema, { target, merged }, key, value);
  }
  return merged;
}

function mergeMember(schema: Schema | undefined, before: unknown, value: unknown): unknown {
  if (isObject(value)) {
    const replaces = strategies(schema).includes('replace') || !isObject(before);
    return mergeObject(schema, replaces ? {} : before, value);
  }
  if (!Array.isArray(value)) return value;
  if (!strategies(schema).includes('merge')) return newList(schema, value);
  const old = Array.isArray(before) ? before : [];
  if (mergeKey(schema) !== undefined) return mergeByKey(schema, old, value);
  const added = value.filter((one, i) => ![...old, ...value.slice(0, i)].some((other) => sameJson(one, other)));
  return inOrder([...old, ...added], { patch: value, live: old, identity: JSON.stringify });
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
    if (isObject(old)) merged[at] = mergeObject(schema?.items, old, keyed(item, key));
    else merged.push(mergeObject(schema?.items, {}, keyed(item, key)));
  }
  return inOrder(merged, { patch: plain, live: before, identity: byKey(key) });
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
    if (!isObject(item)) return [copyJson(item)];
    return item.$patch === undefined ? [mergeObject(schema?.items, {}, item)] : [];
  });
}

type Sides = { readonly target: JsonObject; readonly merged: JsonObject };

function listDirective(
  schema: Schema | undefined,
  { target, merged }: Sides,
  directive: string,
  value: readonly unknown[],
): void {
  const key = directive.slice(directive.indexOf('/') + 1);
  const list = merged[key];
  if (!Array.isArray(list)) return;
  if (directive.startsWith(deletePrimitives)) {
    setMember(
      merged,
      key,
      list.filter((item) => !value.some((one) => sameJson(one, item))),
    );
  } else if (directive.startsWith(setOrder)) {
    const before = target[key];
    const live = Array.isArray(before) ? before : [];
    const identity = byKey(mergeKey(memberSchema(schema, key)));
    setMember(merged, key, inOrder(list, { patch: value, live, identity }));
  }
}

function byKey(key: string | undefined): (item: unknown) => string {
  return (item) => JSON.stringify(key !== undefined && isObject(item) ? item[key] : item);
}

function retain(target: JsonObject, keys: unknown): JsonObject {
  if (!Array.isArray(keys)) return target;
  return Object.fromEntries(Object.entries(target).filter(([key]) => keys.includes(key)));
}

function withoutDirectives(value: JsonObject): JsonObject {
  return copyJson(Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith('$'))));
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

type Orders = {
  /** The order that the patch gives: its own elements, or `$setElementOrder`. */
  readonly patch: readonly unknown[];
  /** The list before the patch. */
  readonly live: readonly unknown[];
  /** What makes two elements the same one. */
  identity(item: unknown): string;
};

/**
 * Elements that the patch names stand in its order; the others keep theirs and stand before the first named one that came
 * after them in the live list (Kubernetes' `normalizeElementOrder` and `mergeSortedSlice`).
 */
function inOrder(list: readonly unknown[], { patch, live, identity }: Orders): unknown[] {
  const [wanted, before] = [patch.map(identity), live.map(identity)];
  const place = (order: readonly string[], item: unknown) => order.indexOf(identity(item));
  const named = list.filter((item) => place(wanted, item) >= 0);
  const others = list.filter((item) => place(wanted, item) < 0);
  const result: unknown[] = [];
  for (const next of named.sort((a, b) => place(wanted, a) - place(wanted, b))) {
    while (others.length > 0 && place(before, others[0]) < place(before, next)) result.push(others.shift());
    result.push(next);
  }
  return [...result, ...others];
}
