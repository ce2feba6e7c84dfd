// The store that a connection names.
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Clock, Log } from '#core/ports/clock.ts';
import type { Store } from '#core/ports/store.ts';
import { createMemoryStore } from './memory/store.ts';
import { createRedisStore } from './redis/store.ts';
import { openRedis } from './redis/tcp.ts';
import { openUpstash } from './redis/upstash.ts';

export interface OpenStoreDependencies {
  readonly instanceUid: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface OpenedStore {
  readonly store: Store;
  /** Whether it may forget, or others use it too: then its epoch stands in PostgreSQL. */
  readonly isShared: boolean;
  close(): Promise<void>;
}

/** A store that is away is no error: its calls fail until it is back. */
export function openStore(
  connection: StoreConnection,
  { instanceUid, clock, log }: OpenStoreDependencies,
): OpenedStore {
  if (connection.type === 'memory') {
    return { store: createMemoryStore({ clock }), isShared: false, close: async () => undefined };
  }
  const { evaluate, close } = connection.type === 'redis' ? openRedis(connection, { log }) : openUpstash(connection);
  return { store: createRedisStore({ evaluate, instanceUid }), isShared: true, close };
}
