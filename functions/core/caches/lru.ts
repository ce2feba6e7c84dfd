// Maps of bounded size: the value that was used longest ago is dropped first.
import { LRUCache } from 'lru-cache';

export interface Lru<V extends {}> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
  size(): number;
  values(): Iterable<V>;
}

/** The size of a value, from 1, and the maximum of all values together. A value above it is not kept. */
interface Sizes<V> {
  readonly maxSize: number;
  readonly sizeCalculation: (value: V) => number;
}

interface Options<V> {
  readonly sizes?: Sizes<V>;
  /** Receives each value that is dropped to make room. */
  readonly onEvict?: (value: V) => void;
}

/** `max`: the maximum number of values. */
export function createLru<V extends {}>(max: number, { sizes, onEvict }: Options<V> = {}): Lru<V> {
  const dispose = onEvict && ((value: V, _: string, reason: string) => reason === 'evict' && onEvict(value));
  const cache = new LRUCache<string, V>({ max, ...sizes, ...(dispose && { dispose }) });
  return {
    get: (key) => cache.get(key),
    set: (key, value) => void cache.set(key, value),
    delete: (key) => void cache.delete(key),
    clear: () => cache.clear(),
    size: () => cache.size,
    values: () => cache.values(),
  };
}
