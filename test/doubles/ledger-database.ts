// The double of the ledger database: rows of accounts and their expired rows, over the doubles of ledger rows and
// epochs.

import type { AccountRow } from '#core/ports/counter-store.ts';
import type { AccountClosing, Batch, BatchOutcome, LedgerDatabase } from '#core/ports/ledger-database.ts';
import type { Random } from '#core/ports/platform.ts';
import { counterKey } from '#core/ports/policy.ts';
import { toExpiredRows } from '../../infra/adapters/postgres/expired-rows.ts';
import type { MemoryEpochs } from './epochs.ts';
import { createMemoryLedgerRows, type MemoryLedgerRows } from './ledger-rows.ts';

interface Deps {
  readonly epochs: MemoryEpochs;
  /** Absent: rows of their own. */
  readonly ledgerRows?: MemoryLedgerRows;
  readonly random?: Random;
}

export interface MemoryLedgerDatabase extends LedgerDatabase {
  /** All booked ledger rows, recounts, and rejected rows. */
  readonly ledgerRows: MemoryLedgerRows;
}

const NEW: AccountRow = { bookedBatch: 0, callNumber: 0, isClosed: false, isCharged: false, isClosing: false };

/** The ledger database of one instance. Each call is one step, as a transaction of PostgreSQL is. */
export function createMemoryLedgerDatabase({
  epochs,
  ledgerRows = createMemoryLedgerRows(),
  random,
}: Deps): MemoryLedgerDatabase {
  const rows = new Map<string, AccountRow>();
  /** Ids of the expired rows of each account, by counter. */
  const charged = new Map<string, Map<string, string>>();
  /** The epoch in which each account was closed. */
  const closedIn = new Map<string, number>();
  const drawn: Random = random ?? ((count) => crypto.getRandomValues(new Uint8Array(count)));

  const outcomeOf = ({ epoch, account, closesAccount }: Batch): BatchOutcome => {
    const current = epochs.current();
    if (current.epoch !== epoch && !(closesAccount && account !== undefined)) return 'epoch';
    if (account === undefined) return current.isOpen ? 'tooLate' : 'booked';
    const { isClosed, bookedBatch } = rows.get(account.id) ?? NEW;
    return isClosed && account.batch > bookedBatch ? 'tooLate' : 'booked';
  };

  const close = ({ account, isLast, ...closing }: AccountClosing) => {
    const row = rows.get(account) ?? NEW;
    if (row.isClosed && !row.isClosing) return { row, ledgerRows: [] };
    const counters = charged.get(account) ?? new Map<string, string>();
    const expiredRows = toExpiredRows({ account, isLast, ...closing }, row.bookedBatch, drawn);
    const newRows = expiredRows.filter(({ scopeWindows }) => !scopeWindows.some((of) => counters.has(counterKey(of))));
    ledgerRows.insert(newRows);
    epochs.record(closing.epoch, closing.storeCalls);
    for (const { id, scopeWindows } of newRows) for (const of of scopeWindows) counters.set(counterKey(of), id);
    charged.set(account, counters);
    const { isOpen } = epochs.current();
    const closed = { ...row, isClosed: true, isCharged: isLast && isOpen, isClosing: !isLast && isOpen };
    rows.set(account, closed);
    closedIn.set(account, closing.epoch);
    return { row: closed, ledgerRows: newRows };
  };

  const rowOf = (account: string): AccountRow => {
    const row = rows.get(account) ?? NEW;
    return { ...row, isClosing: row.isClosing && closedIn.get(account) === epochs.current().epoch };
  };

  return {
    ledgerRows,
    bookedOf: ledgerRows.bookedOf,
    async countFirst(counters) {
      for (const counter of counters) ledgerRows.countFirst(counter);
    },
    async bookBatch(batch) {
      const outcome = outcomeOf(batch);
      if (outcome !== 'booked') return { outcome, rejected: [] };
      const { account, closesAccount, epoch, storeCalls, rows: batchRows } = batch;
      if (account !== undefined) {
        const row = rows.get(account.id) ?? NEW;
        const [bookedBatch, callNumber] = [
          Math.max(row.bookedBatch, account.batch),
          Math.max(row.callNumber, account.callNumber),
        ];
        const closed = closesAccount === true ? { isClosed: true, isClosing: false } : {};
        rows.set(account.id, { ...row, bookedBatch, callNumber, ...closed });
        epochs.record(epoch, storeCalls);
      }
      return { outcome: 'booked', rejected: ledgerRows.insert(batchRows) };
    },
    async close(closing) {
      const { epoch, isOpen } = epochs.current();
      if (epoch !== closing.epoch || (isOpen && closing.isRebuild === true)) return { outcome: 'epoch' };
      const { isClosed, callNumber } = rows.get(closing.account) ?? NEW;
      if (!isClosed && callNumber > (closing.callNumber ?? callNumber)) return { outcome: 'wentBack' };
      return { outcome: 'closed', ...close(closing) };
    },
    async accountRows(accounts) {
      return new Map(accounts.flatMap((account) => (rows.has(account) ? [[account, rowOf(account)]] : [])));
    },
    async uncorrectedRows(accounts) {
      const ids = new Set(accounts.flatMap((account) => [...(charged.get(account)?.values() ?? [])]));
      const found = ledgerRows.all().filter(({ id }) => ids.has(id));
      const corrected = new Set(found.filter(({ kind }) => kind === 'correction').map(({ id }) => id));
      return found
        .filter(({ id, kind }) => kind === 'expired' && !corrected.has(id))
        .flatMap(({ id, cost, scopeWindows }) => scopeWindows.map((of) => ({ ...of, id, spent: cost })));
    },
    sums: ledgerRows.sums,
  };
}
