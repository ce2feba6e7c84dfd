// Maintenance of an instance's ledger by a sweep, with or without a running gateway: accounts that have ended are closed, then counters audited (LEDGER 3, 6).

import type { Clock } from '../ports/clock.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { auditAll } from './audit.ts';
import { type ClosingDependencies, closeEnded } from './closing.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

/** Settlements are told within one tick and booked within a few. */
const BOOKED_WITHIN: Millis = 1000;
const LOOK_AGAIN: Millis = 25;
const MAX_CLOSED = 1000;

export interface MaintainDependencies extends ClosingDependencies {
  readonly epoch: number;
}

/** Throws when store or PostgreSQL are away. */
export async function maintain(deps: MaintainDependencies): Promise<void> {
  const { accounts, timer, epoch } = deps;
  const ended = await withTimeout(timer, TIMEOUT, 'the store', accounts.accounts(true, MAX_CLOSED));
  for (const { account } of ended) await closeEnded(deps, epoch, account);
  await whenBooked(deps);
  await auditAll(deps, epoch);
}

/** Does nothing for a store that is new or being rebuilt: the next gateway rebuilds it. */
export async function maintainAlone(
  deps: Omit<ClosingDependencies, 'now' | 'store'> & { readonly epochs: Epochs; readonly clock: Clock },
): Promise<void> {
  const { accounts, epochs, timer, clock } = deps;
  const { epoch, isOpen, calls } = await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.state());
  if (!isOpen) return;
  // An empty audit tells the store's clock.
  const nothing = accounts.audit(epoch, [], new Map(), Number.MAX_SAFE_INTEGER);
  const told = await withTimeout(timer, TIMEOUT, 'the store', nothing);
  if (told.outcome === 'epoch') return;
  const ahead = told.now - clock.now();
  await maintain({ ...deps, epoch, store: { epoch, calls }, now: () => clock.now() + ahead });
}

/** Waits until processes have booked what they have told: sums are read after a sweep. Their processes do it; one that died is closed by its lease. */
async function whenBooked({ accounts, books, timer, now }: MaintainDependencies): Promise<void> {
  const until = now() + BOOKED_WITHIN;
  const told = (await withTimeout(timer, TIMEOUT, 'the store', accounts.accounts(false, MAX_CLOSED))).filter(
    ({ unbooked }) => unbooked > 0,
  );
  while (told.length > 0 && now() < until) {
    const rows = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.rows(told.map(({ account }) => account)));
    const isBooked = told.every(({ account, unbooked }) => {
      const row = rows.get(account);
      return row !== undefined && (row.isClosed || row.booked >= unbooked);
    });
    if (isBooked) return;
    await new Promise<void>((resolve) => void timer(LOOK_AGAIN, resolve));
  }
}
