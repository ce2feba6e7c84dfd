// Maps of bounded size: what was used longest ago goes first.
import { LRUCache } from 'lru-cache';

export interface Lru<V extends {}> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
  size(): number;
  values(): Iterable<V>;
}

/** Sizes: of a value, a whole number from 1, and of all that are kept. A larger value is not kept. */
interface Sizes<V> {
  readonly maxSize: number;
  readonly sizeCalculation: (value: V) => number;
}

interface Options<V> {
  readonly sizes?: Sizes<V>;
  /** Receives a value that is dropped because of others. */
  readonly onEvict?: (value: V) => void;
}

/** `max`: how many values are kept. */
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
