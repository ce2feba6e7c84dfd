// Maps of bounded size: what was used longest ago goes first.
import { LRUCache } from 'lru-cache';

export interface Lru<V extends {}> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  size(): number;
}

/** The size of a value, and of all that are kept. */
export interface Sizes<V> {
  readonly maxSize: number;
  /** A whole number from 1. */
  readonly sizeCalculation: (value: V) => number;
}

/** `max`: how many values are kept. A value that is larger than `sizes` allows is not kept. */
export function createLru<V extends {}>(max: number, sizes?: Sizes<V>): Lru<V> {
  const cache = new LRUCache<string, V>({ max, ...sizes });
  return {
    get: (key) => cache.get(key),
    set: (key, value) => void cache.set(key, value),
    delete: (key) => void cache.delete(key),
    size: () => cache.size,
  };
}
