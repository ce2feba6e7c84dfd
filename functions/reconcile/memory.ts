// The memory of a process between runs: the last databases and counter stores of instances, and the identity of the
// cluster.

import { createLru, type Lru } from '#core/caches/lru.ts';
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import type { DatabaseConnection, StoreConnection } from '#core/ports/backends.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { LedgerReader } from '#core/ports/ledger-rows.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Registry } from '#core/ports/registry.ts';
import type { ReconcileDependencies } from './deps.ts';
import { type Cursors, createCursors } from './round-robin.ts';
import type { Path } from './world.ts';

/**
 * The database of an instance, and its name for people. Connections contain passwords, so they are not part of the
 * world.
 */
export interface DatabaseLink {
  readonly uid: string;
  readonly registry: Registry & LedgerReader;
  readonly where: string;
}

/** The number of instances that are remembered, each with up to 64 KiB of certificates. */
const MAX_INSTANCES = 1000;

/** The number of triggers that may have many objects in memory at the same time. */
const MAX_LOADS = 8;

/** Facts that a process keeps between runs. The memory is correct when empty, and lost with the process. */
export interface Memory {
  /**
   * By uid of an instance: its last database and counter store, so that an instance which is deleted together with its
   * Secrets can still be closed and cleared.
   */
  readonly instances: Lru<{ readonly database: DatabaseConnection; readonly store: StoreConnection | undefined }>;
  /** By the path of a part: the start of the resync that observed it last, and how long the part took. */
  partRuns: ReadonlyMap<Path, { readonly at: Millis; readonly took: Millis }>;
  /** By the path of a part: how long it took in the last trigger, which has fewer of its objects than a resync. */
  readonly triggerTimes: Lru<Millis>;
  readonly cursors: Cursors;
  /** Limits the triggers that list objects, or have many in memory. */
  readonly loads: ReturnType<typeof createFairLimiter>;
  /** The uid of the namespace kube-system: it identifies this cluster in a database that several clusters share. */
  cluster?: string | undefined;
}

export const createMemory = (cursors = createCursors()): Memory => ({
  instances: createLru(MAX_INSTANCES),
  partRuns: new Map(),
  triggerTimes: createLru(MAX_INSTANCES),
  cursors,
  loads: createFairLimiter(MAX_LOADS),
});

/** The uid that names this cluster; undefined if it cannot be read. */
export async function clusterOf({ deps, memory }: { readonly deps: ReconcileDependencies; readonly memory: Memory }) {
  try {
    memory.cluster ??= (await deps.cluster.get(RESOURCES.namespaces, undefined, 'kube-system'))?.metadata.uid;
  } catch (error) {
    deps.log.warn('cannot read the identity of the cluster', { why: reasonOf(error) });
  }
  return memory.cluster;
}
