// Who books what a process counted that is gone? Anybody, from the store's records, one at a time (LEDGER 8).
import type { Books, Entry } from '../ports/books.ts';
import type { Log, Metrics } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Store } from '../ports/store.ts';
import { besideBooked, fromRecord } from './entry.ts';

export interface DrainDependencies {
  readonly instanceUid: string;
  readonly books: Books;
  readonly store: Store;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The epoch under which these were counted is over: counters that were loaded since may miss them. */
  readonly onDoubt?: (entries: ReadonlyArray<Entry>) => void;
}

/** After so long a process that says nothing counts as gone. */
export const GONE_AFTER: Millis = 2000;

const PAGE = 500;
const MOST_PAGES = 2000;

/**
 * Books what was counted so long ago by whoever has been silent as long, and every end of a lease; with 0, all there is:
 * what its own process books as well is there once. Nothing leaves the store that is not in PostgreSQL. Answers how many.
 */
export async function drain(deps: DrainDependencies, silence: Millis): Promise<number> {
  const first = await deps.store.unbooked(silence, 1);
  if (first.records.length === 0) return 0;
  return (await deps.books.alone(deps.instanceUid, 'drain', () => drainAll(deps, silence))) ?? 0;
}

async function drainAll(
  { instanceUid, books, store, log, metrics, onDoubt }: DrainDependencies,
  silence: Millis,
): Promise<number> {
  let drained = 0;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { records, calls, epoch } = await store.unbooked(silence, PAGE);
    if (records.length === 0) break;
    const found = await books.bookedOf([...new Set(records.map(({ id }) => id))]);
    const entries = records.map(fromRecord).flatMap((entry) => besideBooked(entry, found.get(entry.id)));
    const { rejected, epoch: current = epoch } = await books.book(instanceUid, entries, { epoch, calls });
    if (current !== epoch) onDoubt?.(entries);
    if (rejected.length > 0) {
      metrics.add('gateway_operator_ledger_rejected_total', {}, rejected.length);
      log.error('PostgreSQL put entries aside in entry_rejected', { ids: rejected });
    }
    await store.forget(records.map(({ id, kind }) => ({ id, kind })));
    drained += records.length;
  }
  if (drained > 0) {
    metrics.add('gateway_operator_ledger_drained_total', {}, drained);
    log.info('booked what the store kept', { instance: instanceUid, entries: drained });
  }
  return drained;
}
