// Maintenance of the stores of instances: what is unbooked there is booked, and what is deleted is cleared, over a connection of its own.

import type { OpenedStore, OpenStoreDependencies } from '#adapters/open-store.ts';
import { maintain } from '#core/ledger/maintain.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Clock, Log, Metrics } from '#core/ports/clock.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import type { Timer } from '#core/ports/platform.ts';

type Shared = Exclude<StoreConnection, { type: 'memory' }>;

export interface StoreMaintenanceDependencies {
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

/** A store in a gateway's own memory is that gateway's own to maintain. */
export function createStoreMaintenance({ open, clock, timer, log, metrics }: StoreMaintenanceDependencies) {
  return {
    async flush(instanceUid: string, connection: StoreConnection, books: Ledgers): Promise<void> {
      if (connection.type === 'memory') return;
      const { store, close } = open(connection, { instanceUid, clock, log });
      try {
        await maintain({ instanceUid, store, books, epochs: books.epochs(instanceUid), timer, log, metrics });
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
