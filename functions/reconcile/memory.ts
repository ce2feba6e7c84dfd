// The memory of a process between runs: where databases and stores of instances last were, and which cluster this is.

import { createLru, type Lru } from '#core/caches/lru.ts';
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import type { DatabaseConnection, StoreConnection } from '#core/ports/backends.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { LedgerReader } from '#core/ports/ledger-rows.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Registry } from '#core/ports/registry.ts';
import type { ReconcileDeps } from './deps.ts';
import { type Cursors, createCursors } from './turns.ts';
import type { Path } from './world.ts';

/** The database of an instance, and how people name it. Connections, which hold passwords, stay out of the world. */
export interface Link {
  readonly uid: string;
  readonly registry: Registry & LedgerReader;
  readonly where: string;
}

/** Instances that are remembered, each with up to 64 KiB of certificates. */
const MAX_INSTANCES = 1000;

/** Triggers that may hold many objects at the same time. */
const MAX_LOADS = 8;

/** Facts that a process keeps between runs; correct when empty, lost with the process. */
export interface Memory {
  /**
   * By uid of an instance: where its database and store last were, so that deleting it together with its Secrets can
   * still close and clear them.
   */
  readonly instances: Lru<{ readonly database: DatabaseConnection; readonly store: StoreConnection | undefined }>;
  /** By the path of a part: when the resync began that looked at it last, and how long the part took. */
  visits: ReadonlyMap<Path, { readonly at: Millis; readonly took: Millis }>;
  /**
   * By the path of a part: how long it took when a trigger looked at it last, which has fewer of its objects than a
   * resync.
   */
  readonly triggered: Lru<Millis>;
  readonly cursors: Cursors;
  /** Triggers that list objects, or hold many. */
  readonly loads: ReturnType<typeof createFairLimiter>;
  /** The uid of the namespace kube-system names the cluster where a database is shared with others. */
  cluster?: string | undefined;
}

export const createMemory = (cursors = createCursors()): Memory => ({
  instances: createLru(MAX_INSTANCES),
  visits: new Map(),
  triggered: createLru(MAX_INSTANCES),
  cursors,
  loads: createFairLimiter(MAX_LOADS),
});

/** The uid that names this cluster; undefined where that cannot be read. */
export async function clusterOf({ deps, memory }: { readonly deps: ReconcileDeps; readonly memory: Memory }) {
  try {
    memory.cluster ??= (await deps.cluster.get(RESOURCES.namespaces, undefined, 'kube-system'))?.metadata.uid;
  } catch (error) {
    deps.log.warn('cannot read the identity of the cluster', { why: reasonOf(error) });
  }
  return memory.cluster;
}
