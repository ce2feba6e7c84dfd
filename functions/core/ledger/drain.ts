// Drains: charges that a dead process counted are booked from the store's records, by one process at a time (LEDGER 8).
import type { Entry, ErrandBooks } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import type { UnbookedRecord } from '../ports/store.ts';
import type { LedgerDependencies } from './deps.ts';
import { besideBooked, fromRecord } from './entry.ts';

export interface DrainDependencies
  extends Pick<LedgerDependencies, 'instanceUid' | 'books' | 'store' | 'log' | 'metrics'> {
  /** Called with entries counted in an earlier epoch: counters loaded since may miss them. */
  readonly onSuspect?: (entries: ReadonlyArray<Entry>) => void;
}

/** A process that makes no call for this long counts as dead. */
export const GONE_AFTER: Millis = 2000;

const PAGE = 500;
const MAX_PAGES = 2000;

/**
 * Books what was counted at least `idleFor` ago by processes that have made no call since, and every expired lease; with 0, every record
 * (an entry that its own process books too is there once). Records leave the store only after PostgreSQL has them. Returns how many.
 */
export async function drain(deps: DrainDependencies, idleFor: Millis): Promise<number> {
  const first = await deps.store.unbooked(idleFor, 1);
  if (first.records.length === 0) return 0;
  const { instanceUid, store, log, metrics } = deps;
  let drained = 0;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const booked = await deps.books.tryErrandLock(instanceUid, 'drain', (books) => bookPage(deps, books, idleFor));
    if (booked === undefined || booked.records.length === 0) break;
    if (booked.isSuspect) deps.onSuspect?.(booked.entries);
    if (booked.rejected.length > 0) {
      metrics.add('gateway_operator_ledger_rejected_total', {}, booked.rejected.length);
      log.error('PostgreSQL rejected entries; they are in entry_rejected', { ids: booked.rejected });
    }
    await store.forget(booked.records.map(({ id, kind }) => ({ id, kind })));
    drained += booked.records.length;
  }
  if (drained > 0) {
    metrics.add('gateway_operator_ledger_drained_total', {}, drained);
    log.info('booked unbooked entries of the store', { instance: instanceUid, entries: drained });
  }
  return drained;
}

interface BookedPage {
  readonly records: ReadonlyArray<UnbookedRecord>;
  readonly entries: ReadonlyArray<Entry>;
  readonly rejected: ReadonlyArray<string>;
  readonly isSuspect: boolean;
}

async function bookPage(
  { instanceUid, store }: DrainDependencies,
  books: ErrandBooks,
  idleFor: Millis,
): Promise<BookedPage> {
  const { records, calls, epoch } = await store.unbooked(idleFor, PAGE);
  if (records.length === 0) return { records, entries: [], rejected: [], isSuspect: false };
  const found = await books.bookedOf([...new Set(records.map(({ id }) => id))]);
  const entries = records.map(fromRecord).flatMap((entry) => besideBooked(entry, found.get(entry.id)));
  const { rejected, epoch: current = epoch } = await books.book(instanceUid, entries, { epoch, calls });
  return { records, entries, rejected, isSuspect: current !== epoch };
}
