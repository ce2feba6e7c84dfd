// How does reconcile reach an instance's store, to book what is unbooked there and to clear what is deleted? Over a connection of its own.

import type { OpenedStore, OpenStoreDependencies } from '#adapters/open-store.ts';
import { tend } from '#core/ledger/tend.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Clock, Log, Metrics } from '#core/ports/clock.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import type { Timer } from '#core/ports/platform.ts';

type Shared = Exclude<StoreConnection, { type: 'memory' }>;

export interface TendingDependencies {
  /** Dials a store as this platform can; throws where it cannot. */
  readonly open: (connection: Shared, deps: OpenStoreDependencies) => OpenedStore;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface Ledgers extends Books {
  epochs(instanceUid: string): Epochs;
}

/** A store in a gateway's own memory is that gateway's to tend. */
export function createTending({ open, clock, timer, log, metrics }: TendingDependencies) {
  return {
    async flush(instanceUid: string, connection: StoreConnection, books: Ledgers): Promise<void> {
      if (connection.type === 'memory') return;
      const { store, close } = open(connection, { instanceUid, clock, log });
      try {
        await tend({ instanceUid, store, books, epochs: books.epochs(instanceUid), timer, log, metrics });
      } finally {
        await close();
      }
    },
    async clear(instanceUid: string, connection: StoreConnection): Promise<void> {
      if (connection.type === 'memory') return;
      const { store, close } = open(connection, { instanceUid, clock, log });
      await store.clear().finally(close);
    },
  };
}
