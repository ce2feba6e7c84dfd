// In which order stand the elements of a list that a strategic merge patch changed?
import { isObject } from '../schema/json.ts';

type Orders = {
  /** The order that the patch gives: its own elements, or `$setElementOrder`. */
  readonly patch: readonly unknown[];
  /** The list before the patch. */
  readonly live: readonly unknown[];
  /** The merge key; undefined for primitives. */
  readonly key: string | undefined;
};

/**
 * Elements that the patch names stand in its order; the others keep theirs and stand before the first named one that came
 * after them in the live list (Kubernetes' `normalizeElementOrder` and `mergeSortedSlice`).
 */
export function inOrder(list: readonly unknown[], { patch, live, key }: Orders): unknown[] {
  const identity = (item: unknown) => JSON.stringify(key !== undefined && isObject(item) ? item[key] : item);
  const positions = (order: readonly unknown[]): Order => new Map(order.map((item, i) => [identity(item), i]));
  const [wanted, before] = [positions(patch), positions(live)];
  const place = (order: Order, item: unknown) => order.get(identity(item)) ?? -1;
  const sorted = (items: readonly unknown[], order: Order) =>
    [...items].sort((a, b) => place(order, a) - place(order, b));
  const named = sorted(
    list.filter((item) => wanted.has(identity(item))),
    wanted,
  );
  const others = sorted(
    list.filter((item) => !wanted.has(identity(item))),
    before,
  );
  const result: unknown[] = [];
  while (others.length > 0 || named.length > 0) {
    const [left, right] = [place(before, others[0]), place(before, named[0])];
    const otherFirst = named.length === 0 || (others.length > 0 && left >= 0 && right >= 0 && left < right);
    result.push(otherFirst ? others.shift() : named.shift());
  }
  return result;
}

type Order = ReadonlyMap<string, number>;
