// How does a run talk to each instance's database? The connections, which hold passwords, stay out of the world.
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Random } from '#core/ports/platform.ts';
import type { Ledger, Registry } from '#core/ports/registry.ts';
import type { Path } from '../world.ts';

export interface Link {
  readonly uid: string;
  readonly registry: Registry & Books;
}

/** By path of the instance. Absent: its database cannot be reached. */
export type Links = ReadonlyMap<Path, Link>;

/**
 * What a process remembers between runs; correct when empty, lives as long as the process. `opened`: databases that it
 * has migrated and recorded an instance in. `databases`: where a live instance's database last was, so that deleting an
 * instance together with its Secrets can still retire its keys.
 */
export interface Memory {
  readonly opened: Set<string>;
  /** What names the cluster; undefined until it was asked. */
  cluster?: string | undefined;
  readonly databases: Map<string, { readonly registry: Registry & Books; readonly where: string }>;
  /** The same of its store, whose keys go with it. */
  readonly stores: Map<string, StoreConnection>;
  /** By uid of the instance: its database did not answer. */
  readonly away: Map<string, Away>;
}

/** Until then only sweeps ask it: what is dead is not dialled for each of a thousand keys. */
export interface Away {
  readonly until: Millis;
  /** In a row. */
  readonly failures: number;
  readonly message: string;
}

const SHORTEST: Millis = 1_000;
/** Less than the minute between two sweeps. */
const LONGEST: Millis = 30_000;

/** Twice as long each time, of which half is left to chance, so that not all that was away is asked in the same second. */
export function stayAway(before: Away | undefined, message: string, now: Millis, random: Random): Away {
  const failures = (before?.failures ?? 0) + 1;
  const [byte = 0] = random(1);
  const pause = Math.min(SHORTEST * 2 ** (failures - 1), LONGEST) * (0.5 + byte / 510);
  return { until: now + pause, failures, message };
}

export const createMemory = (): Memory => ({
  opened: new Set(),
  databases: new Map(),
  stores: new Map(),
  away: new Map(),
});

/** An instance that names another ledger is opened anew. */
export const openedKey = (uid: string, where: string, ledger: Ledger | undefined): string =>
  `${uid} ${where} ${ledger?.uid ?? ''}`;
