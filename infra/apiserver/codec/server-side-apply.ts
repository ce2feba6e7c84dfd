// Server-side apply: the configuration of a manager, merged by the one it applied last. The applied value always wins.

import { objectMeta } from '../schema/core-schemas.ts';
import { isEmpty, isObject, type JsonObject, member, sameJson, setMember } from '../schema/json.ts';
import { elementKey } from '../schema/list-types.ts';
import { memberSchema, type Schema } from '../schema/schema.ts';

export type Apply = {
  readonly live: JsonObject | undefined;
  readonly applied: JsonObject;
  readonly manager: string;
  /** The kind's schema: how its lists and maps are merged. */
  readonly schema: Schema;
  /** Now, RFC 3339, to the second. */
  readonly time: string;
  readonly subresource: string | undefined;
};

/**
 * Fields as `fieldsV1` writes them: `f:name` a member, `k:{"name":"a"}` an element of a list by its keys, `v:"x"` a
 * value of a set; nothing below where a value is applied as a whole.
 */
type Fields = { readonly [element: string]: Fields };
type Entry = {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: Fields;
};

/**
 * The live object with the configuration merged in. Fields that the manager applied last and leaves out now go, unless
 * another manager applies them too. `metadata.managedFields` remembers what each manager applied and no apply has
 * changed since; other writes are not tracked.
 */
export function serverSideApply({ live, applied, manager, schema, time, subresource }: Apply): JsonObject {
  const { managedFields = [], ...base } = isObject(live?.metadata) ? live.metadata : {};
  const entries = managedFields as readonly Entry[]; // only this file writes them
  const own = entries.find((entry) => entry.manager === manager && entry.subresource === subresource);
  const others = entries.filter((entry) => entry !== own);
  const whole = { ...schema, type: 'object', properties: { ...schema.properties, metadata: objectMeta } };
  const merged = merge({
    live: { ...live, metadata: base },
    applied,
    last: own?.fieldsV1,
    others: others.map(({ fieldsV1 }) => fieldsV1),
    schema: whole,
  }) as JsonObject; // two objects make an object
  const entry = {
    manager,
    operation: 'Apply',
    apiVersion: applied.apiVersion,
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: ownedFields(applied, whole),
    ...(subresource && { subresource }),
  };
  const left = others.flatMap(({ fieldsV1, ...other }) => {
    const unchanged = unchangedFields(fieldsV1, { before: live, after: merged, schema: whole });
    return unchanged === undefined ? [] : [{ ...other, fieldsV1: unchanged }];
  });
  return { ...merged, metadata: { ...(merged.metadata as JsonObject), managedFields: [...left, entry] } };
}

/** Every field but those that name the object. */
function ownedFields({ apiVersion: _, kind: __, metadata, ...rest }: JsonObject, schema: Schema): Fields {
  const { name: ___, namespace: ____, ...owned } = isObject(metadata) ? metadata : {};
  return fieldsOf(Object.keys(owned).length === 0 ? rest : { ...rest, metadata: owned }, schema);
}

type Node = {
  readonly live: unknown;
  readonly applied: unknown;
  readonly last: Fields | undefined;
  /** Fields that other managers applied at this place. */
  readonly others: readonly Fields[];
  readonly schema: Schema | undefined;
};

/** The value of a node; undefined where there is none any more. */
function merge(node: Node): unknown {
  const { live, applied, last, others, schema } = node;
  const isLeft = applied === undefined;
  if (isLeft && last === undefined) return live;
  const shape = shapeOf(schema, isLeft ? live : applied);
  if (isLeft && (shape === 'leaf' || Object.keys(last ?? {}).length === 0)) return others.length > 0 ? live : undefined;
  const merged =
    shape === 'map' ? mergeMembers(node) : shape === 'list' ? mergeElements(node) : structuredClone(applied);
  return isLeft && others.length === 0 && isEmpty(merged) ? undefined : merged;
}

function child({ last, others, schema }: Node, element: string, values: Pick<Node, 'live' | 'applied'>): unknown {
  const below = others.flatMap((fields) => fields[element] ?? []);
  return merge({ ...values, last: last?.[element], others: below, schema: schemaAt(schema, element) });
}

function mergeMembers(node: Node): JsonObject {
  const live = isObject(node.live) ? node.live : {};
  const applied = isObject(node.applied) ? node.applied : {};
  const merged: JsonObject = {};
  for (const key of new Set([...Object.keys(live), ...Object.keys(applied)])) {
    const value = child(node, `f:${key}`, { live: member(live, key), applied: member(applied, key) });
    if (value !== undefined) setMember(merged, key, value);
  }
  return merged;
}

function mergeElements(node: Node): unknown[] {
  const [live, applied] = [node.live, node.applied].map((list) => {
    const items = Array.isArray(list) ? list : [];
    return new Map<string, unknown>(items.map((item) => [elementKey(item, node.schema), item]));
  }) as [Map<string, unknown>, Map<string, unknown>];
  return inAppliedOrder([...live.keys()], [...applied.keys()]).flatMap((element) => {
    // An element that no manager applies any more goes whole, defaults and all.
    const isShared = node.others.some((fields) => fields[element] !== undefined);
    if (!applied.has(element) && node.last?.[element] !== undefined && !isShared) return [];
    return [child(node, element, { live: live.get(element), applied: applied.get(element) })];
  });
}

/**
 * The applied order holds among its elements; the others keep their place among their neighbours, as
 * structured-merge-diff does it.
 */
function inAppliedOrder(live: readonly string[], applied: readonly string[]): string[] {
  const next = applied.filter((element) => live.includes(element));
  const order: string[] = [];
  let taken = 0;
  for (const element of live) {
    if (!applied.includes(element)) order.push(element);
    if (element !== next[0]) continue;
    next.shift();
    const end = applied.indexOf(element) + 1;
    order.push(...applied.slice(taken, end));
    taken = end;
  }
  return [...order, ...applied.slice(taken)];
}

function fieldsOf(value: unknown, schema: Schema | undefined): Fields {
  const shape = shapeOf(schema, value);
  const elements: Array<[string, unknown]> =
    shape === 'map' && isObject(value)
      ? Object.entries(value).map(([key, below]) => [`f:${key}`, below])
      : shape === 'list' && Array.isArray(value)
        ? value.map((item) => [elementKey(item, schema), item])
        : [];
  return Object.fromEntries(elements.map(([element, below]) => [element, fieldsOf(below, schemaAt(schema, element))]));
}

type Change = { readonly before: unknown; readonly after: unknown; readonly schema: Schema | undefined };

/** Another manager's fields without those that this apply gave another value; undefined where none is left. */
function unchangedFields(fields: Fields, { before, after, schema }: Change): Fields | undefined {
  const below = Object.entries(fields);
  if (below.length === 0) return sameJson(before, after) ? fields : undefined;
  const kept = below.flatMap(([element, child]): Array<[string, Fields]> => {
    const at = (value: unknown) => valueAt(value, element, schema);
    const left = unchangedFields(child, { before: at(before), after: at(after), schema: schemaAt(schema, element) });
    return left === undefined ? [] : [[element, left]];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function valueAt(value: unknown, element: string, schema: Schema | undefined): unknown {
  if (!Array.isArray(value)) return member(value, element.slice(2));
  return value.find((item) => elementKey(item, schema) === element);
}

/**
 * The way a value is merged: by members, by elements, or as a whole. Where the schema does not say, objects are merged
 * and lists replaced.
 */
function shapeOf(schema: Schema | undefined, value: unknown): 'map' | 'list' | 'leaf' {
  const listType = schema?.['x-kubernetes-list-type'];
  if (Array.isArray(value)) return listType === 'map' || listType === 'set' ? 'list' : 'leaf';
  return isObject(value) && schema?.['x-kubernetes-map-type'] !== 'atomic' ? 'map' : 'leaf';
}

function schemaAt(schema: Schema | undefined, element: string): Schema | undefined {
  return element.startsWith('f:') ? memberSchema(schema, element.slice(2)) : schema?.items;
}
