// The store of accounts that a connection names.

import type { StoreConnection } from '#core/ports/backends.ts';
import type { Clock, Log } from '#core/ports/clock.ts';
import type { CounterStore } from '#core/ports/counter-store.ts';
import { createMemoryCounterStore } from '../memory/counter-store.ts';
import { createRedisCounterStore } from '../redis/counter-store.ts';
import { openRedis } from '../redis/tcp.ts';
import { openUpstash } from '../redis/upstash.ts';
import type { MemoryShare } from './reply-memory.ts';

export interface OpenAccountsDependencies {
  readonly instanceUid: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The work that asks; absent: the store is the process's own. */
  readonly share?: MemoryShare | undefined;
}

export interface OpenedAccounts {
  readonly accounts: CounterStore;
  /** Whether other processes may use it too. */
  readonly isShared: boolean;
  close(): Promise<void>;
}

/** A store that is away is no error: its calls fail until it is back. */
export function openAccounts(
  connection: StoreConnection,
  { instanceUid, clock, log, share }: OpenAccountsDependencies,
): OpenedAccounts {
  if (connection.type === 'memory')
    return { accounts: createMemoryCounterStore({ clock, epoch: 0 }), isShared: false, close: async () => undefined };
  const { evaluate, close, reconnect } =
    connection.type === 'redis' ? openRedis(connection, { log, share }) : openUpstash(connection, { share });
  return { accounts: createRedisCounterStore({ evaluate, instanceUid, reconnect, share }), isShared: true, close };
}
