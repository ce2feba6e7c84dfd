// Maintenance of an instance's ledger, by its gateways and by a resync: accounts whose lease has ended are closed, and
// counters are audited (LEDGER 3, 6).

import type { Cursor } from '../ports/backends.ts';
import type { Clock } from '../ports/clock.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { closeEnded } from './account-closing.ts';
import type { StoreContext } from './context.ts';
import { auditCounters } from './counter-audit.ts';
import { logFailure } from './failures.ts';
import { pause } from './timeout.ts';

/** The time in which reported settlements are booked. */
const BOOKED_WITHIN: Millis = 1000;
const POLL_INTERVAL: Millis = 25;
/** The time within which processes renew their leases after the store was away. */
const RENEWED_WITHIN: Millis = 3000;
const PAGE = 500;
/** The maximum number of accounts that are closed or waited for. */
const MAX_ACCOUNTS = 2000;
/** The maximum number of pages, of more counters than a store has memory for. */
const MAX_PAGES = 10_000;
/** After this number of accounts that cannot be closed, the store or the database counts as unreachable. */
const MAX_FAILURES = 3;

const TOO_MANY = 'too many accounts have spend that is not booked';

const FROM_START: Cursor = { from: 0, move: () => undefined };

/**
 * Closes ended accounts, then audits every loaded counter, from the cursor on. Throws if the store or PostgreSQL is
 * unreachable: the next audit continues with the page of counters that this one has not ended. A page that was the
 * first one had the whole time of an audit: the next audit continues after it, so that this page cannot delay the
 * others.
 */
export async function maintain(context: StoreContext, epoch: number, cursor = FROM_START): Promise<void> {
  const { counterStore } = context;
  let failures = 0;
  let cause: unknown;
  for (const account of await endedAccounts(context))
    try {
      await closeEnded(context, epoch, account);
    } catch (error) {
      // One account that cannot be closed must not prevent the closing of the others.
      cause = error;
      failures += 1;
      if (failures === MAX_FAILURES) throw error;
    }
  await whenBooked(context);
  const pages = Math.min(MAX_PAGES, Math.ceil((await counterStore.loaded(0, 1)).total / PAGE));
  const first = Math.floor(cursor.from * pages);
  for (let page = first; page < first + pages; page += 1) {
    // The middle of the next page is in the same page if a few counters come or go.
    const next = (((page + 1) % pages) + 0.5) / pages;
    if (page === first) cursor.move(next);
    const reply = await counterStore.loaded((page % pages) * PAGE, PAGE);
    // A tenant's store may answer more than it was asked.
    const counters = reply.counters.slice(0, PAGE);
    const isAudited = await auditCounters(context, epoch, counters);
    if (!isAudited) logFailure(context, 'audit', new Error(TOO_MANY), { counters: counters.length });
    cursor.move(next);
  }
  if (failures > 0) throw new Error('closing accounts that have ended', { cause });
}

/**
 * Accounts whose lease has ended. If the store was away, its processes renew their leases within a moment: this may be
 * the first caller that reaches the store again, so it waits for them.
 */
async function endedAccounts({ counterStore, timer }: StoreContext): Promise<ReadonlyArray<string>> {
  const ended = await counterStore.accounts(true, MAX_ACCOUNTS);
  if (ended.length === 0) return [];
  await pause(timer, RENEWED_WITHIN);
  return (await counterStore.accounts(true, MAX_ACCOUNTS)).map(({ account }) => account);
}

/**
 * Maintains the ledger of an instance without a gateway. Does nothing if the store is new or being rebuilt: the next
 * gateway rebuilds it.
 */
export async function maintainAlone(
  deps: Omit<StoreContext, 'now' | 'knownStore'> & { readonly epochs: Epochs; readonly clock: Clock },
  cursor?: Cursor,
): Promise<void> {
  const { counterStore, epochs, clock } = deps;
  const { epoch, isOpen, storeCalls } = await epochs.state();
  if (!isOpen) return;
  // An empty audit shows the store's clock, and its count of calls.
  const reply = await counterStore.audit(epoch, [], new Map(), {
    storeCallsBefore: storeCalls,
    deadline: Number.MAX_SAFE_INTEGER,
  });
  if (reply.outcome === 'epoch') return;
  const clockOffset = reply.now - clock.now();
  const knownStore = { epoch, storeCalls: Math.max(storeCalls, reply.storeCalls) };
  await maintain({ ...deps, knownStore, now: () => clock.now() + clockOffset }, epoch, cursor);
}

/**
 * Waits until processes have booked what they have reported, since sums are read after a resync. An account whose
 * process died is closed when its lease ends.
 */
async function whenBooked({ counterStore, database, timer, now }: StoreContext): Promise<void> {
  const until = now() + BOOKED_WITHIN;
  const accounts = await counterStore.accounts(false, MAX_ACCOUNTS);
  const unbookedAccounts = accounts.filter(({ unbookedBatch }) => unbookedBatch > 0);
  while (unbookedAccounts.length > 0 && now() < until) {
    const rows = await database.accountRows(unbookedAccounts.map(({ account }) => account));
    const isBooked = unbookedAccounts.every(({ account, unbookedBatch }) => {
      const row = rows.get(account);
      return row !== undefined && (row.isClosed || row.bookedBatch >= unbookedBatch);
    });
    if (isBooked) return;
    await pause(timer, POLL_INTERVAL);
  }
}
