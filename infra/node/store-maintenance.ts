// Maintenance of instances' stores, over a connection of its own: unbooked calls are booked, and a deleted instance is cleared.
import type { OpenedStore, OpenStoreDependencies } from '#adapters/open-store.ts';
import type { Database } from '#adapters/postgres/database.ts';
import { maintain } from '#core/ledger/maintain.ts';
import type { SharedStoreConnection, StoreConnection } from '#core/ports/backends.ts';
import type { Log, Metrics } from '#core/ports/clock.ts';
import type { NodeDependencies } from './platform.ts';

interface StoreMaintenanceDependencies extends Pick<NodeDependencies, 'clock' | 'timer'> {
  /** Dials a store as this platform can; throws where it cannot. */
  readonly open: (connection: SharedStoreConnection, deps: OpenStoreDependencies) => OpenedStore;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** A store in a gateway's own memory is that gateway's own to maintain. */
export function createStoreMaintenance({ open, clock, timer, log, metrics }: StoreMaintenanceDependencies) {
  return {
    async flush(instanceUid: string, connection: StoreConnection, books: Database): Promise<void> {
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
