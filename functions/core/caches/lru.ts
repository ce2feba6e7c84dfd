// Maps of bounded size: what was used longest ago goes first.
import { LRUCache } from 'lru-cache';

export interface Lru<V extends {}> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  size(): number;
}

/** `max`: how many values are kept. */
export function createLru<V extends {}>(max: number): Lru<V> {
  const cache = new LRUCache<string, V>({ max });
  return {
    get: (key) => cache.get(key),
    set: (key, value) => void cache.set(key, value),
    delete: (key) => void cache.delete(key),
    size: () => cache.size,
  };
}
