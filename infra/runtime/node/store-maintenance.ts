// Maintenance of instances' stores, over a connection of its own: accounts that have ended are closed, counters
// audited, and a deleted instance is cleared.

import type { OpenCounterStore, OpenCounterStoreDependencies } from '#adapters/backends/open-counter-store.ts';
import type { WorkMemory } from '#adapters/backends/reply-memory.ts';
import type { DatabaseWithin } from '#adapters/postgres/database.ts';
import { beginAlertMetrics } from '#core/ledger/alert-metrics.ts';
import { maintainAlone } from '#core/ledger/maintenance.ts';
import {
  type FlushWork,
  type InstanceIdentity,
  type SharedStoreConnection,
  type StoreConnection,
  storeName,
} from '#core/ports/backends.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';
import { metricsOf } from './metrics.ts';
import type { NodeDependencies } from './platform.ts';

interface StoreMaintenanceDependencies
  extends Pick<NodeDependencies, 'clock' | 'timer' | 'random'>,
    Pick<OpenCounterStoreDependencies, 'fetch'> {
  /** Connects to a store with the means of this platform; throws if it has none. */
  readonly open: (connection: SharedStoreConnection, deps: OpenCounterStoreDependencies) => OpenCounterStore;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** A store in the memory of a gateway is maintained by that gateway. */
export function createStoreMaintenance({
  open,
  clock,
  timer,
  random,
  log,
  fetch,
  ...parts
}: StoreMaintenanceDependencies) {
  return {
    async flush(
      instance: InstanceIdentity,
      {
        store: connection,
        database,
        cursor,
        workMemory,
      }: FlushWork<DatabaseWithin> & { readonly workMemory: WorkMemory },
    ): Promise<void> {
      if (connection.type === 'memory') return;
      const instanceUid = instance.uid;
      const metrics = metricsOf(parts.metrics, instance);
      beginAlertMetrics(metrics);
      const { counterStore, close } = open(connection, { instanceUid, clock, log, fetch, workMemory });
      const { scopesOfOtherInstances } = database;
      const ledgerDatabase = { ...database.ledgerDatabase(instanceUid, random), scopesOfOtherInstances };
      try {
        const epochs = database.epochs(instanceUid, { store: storeName(connection), startedAt: 0 });
        await maintainAlone(
          { instanceUid, counterStore, database: ledgerDatabase, epochs, clock, timer, log, metrics },
          cursor,
        );
      } finally {
        await close();
      }
    },
    async clear(instanceUid: string, connection: StoreConnection, workMemory?: WorkMemory): Promise<void> {
      if (connection.type === 'memory') return;
      const { counterStore, close } = open(connection, { instanceUid, clock, log, fetch, workMemory });
      await counterStore.clear().finally(close);
    },
  };
}
