// Opens the counter store that a connection names.

import type { StoreConnection } from '#core/ports/backends.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { CounterStore } from '#core/ports/counter-store.ts';
import type { Log } from '#core/ports/telemetry.ts';
import { createMemoryCounterStore } from '../memory/counter-store.ts';
import { createRedisCounterStore } from '../redis/counter-store.ts';
import { openRedis } from '../redis/tcp.ts';
import { openUpstash } from '../redis/upstash.ts';
import type { WorkMemory } from './reply-memory.ts';

export interface OpenCounterStoreDependencies {
  readonly instanceUid: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly readLogin?: (() => StoreConnection) | undefined;
  /** For Upstash. Absent: the platform's own. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The memory of the work that uses the store. Absent: the process uses it. */
  readonly workMemory?: WorkMemory | undefined;
}

export interface OpenCounterStore {
  readonly counterStore: CounterStore;
  /** Whether other processes may use the store too. */
  readonly isShared: boolean;
  close(): Promise<void>;
}

/** A store that is away is no error: its calls fail until it is back. */
export function openCounterStore(
  connection: StoreConnection,
  { instanceUid, clock, log, fetch, readLogin, workMemory }: OpenCounterStoreDependencies,
): OpenCounterStore {
  if (connection.type === 'memory')
    return {
      counterStore: createMemoryCounterStore({ clock, epoch: 0 }),
      isShared: false,
      close: async () => undefined,
    };
  const { evaluate, close, reconnect } =
    connection.type === 'redis'
      ? openRedis(connection, { instanceUid, log, readLogin, workMemory })
      : openUpstash(connection, { fetch, readLogin, workMemory });
  return {
    counterStore: createRedisCounterStore({ evaluate, instanceUid, reconnect, workMemory }),
    isShared: true,
    close,
  };
}
