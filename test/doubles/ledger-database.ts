// The double of the ledger database: rows of accounts and their charges, over the doubles of ledger rows and epochs.

import type { AccountRow } from '#core/ports/counter-store.ts';
import type { AccountClosing, Batch, BatchOutcome, LedgerDatabase } from '#core/ports/ledger-database.ts';
import type { Random } from '#core/ports/platform.ts';
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

const NEW: AccountRow = { bookedBatch: 0, number: 0, isClosed: false, isCharged: false };

/** The ledger database of one instance. Each call is one step, as a transaction of PostgreSQL is. */
export function createMemoryLedgerDatabase({
  epochs,
  ledgerRows = createMemoryLedgerRows(),
  random,
}: Deps): MemoryLedgerDatabase {
  const rows = new Map<string, AccountRow>();
  const charged = new Map<string, ReadonlyArray<string>>();
  const drawn: Random = random ?? ((count) => crypto.getRandomValues(new Uint8Array(count)));

  const outcomeOf = ({ epoch, account, closesAccount }: Batch): BatchOutcome => {
    const current = epochs.current();
    if (current.epoch !== epoch && !(closesAccount && account !== undefined)) return 'epoch';
    if (account === undefined) return current.isOpen ? 'closed' : 'booked';
    const { isClosed, bookedBatch } = rows.get(account.id) ?? NEW;
    return isClosed && account.batch > bookedBatch ? 'closed' : 'booked';
  };

  const close = ({ account, ...closing }: AccountClosing) => {
    const row = rows.get(account) ?? NEW;
    if (row.isClosed) return { row, ledgerRows: [] };
    const expiredRows = toExpiredRows({ account, ...closing }, row.bookedBatch, drawn);
    ledgerRows.insert(expiredRows);
    epochs.record(closing.epoch, closing.callCount);
    charged.set(
      account,
      expiredRows.map(({ id }) => id),
    );
    const closed = { ...row, isClosed: true, isCharged: epochs.current().isOpen };
    rows.set(account, closed);
    return { row: closed, ledgerRows: expiredRows };
  };

  return {
    ledgerRows,
    bookedOf: ledgerRows.bookedOf,
    async bookBatch(batch) {
      const outcome = outcomeOf(batch);
      if (outcome !== 'booked') return { outcome, rejected: [] };
      const { account, closesAccount, epoch, callCount, rows: batchRows } = batch;
      if (account !== undefined) {
        const row = rows.get(account.id) ?? NEW;
        const [bookedBatch, number] = [Math.max(row.bookedBatch, account.batch), Math.max(row.number, account.number)];
        rows.set(account.id, { ...row, bookedBatch, number, isClosed: row.isClosed || closesAccount === true });
        epochs.record(epoch, callCount);
      }
      return { outcome: 'booked', rejected: ledgerRows.insert(batchRows) };
    },
    async close(closing) {
      const { epoch, isOpen } = epochs.current();
      if (epoch !== closing.epoch || (isOpen && closing.isRebuild === true)) return { outcome: 'epoch' };
      const { isClosed, number } = rows.get(closing.account) ?? NEW;
      if (!isClosed && number > (closing.number ?? number)) return { outcome: 'behind' };
      return { outcome: 'closed', ...close(closing) };
    },
    async accountRows(accounts) {
      return new Map(accounts.flatMap((account) => (rows.has(account) ? [[account, rows.get(account) ?? NEW]] : [])));
    },
    async uncorrectedCharges(accounts) {
      const ids = new Set(accounts.flatMap((account) => charged.get(account) ?? []));
      const of = ledgerRows.all().filter(({ id }) => ids.has(id));
      const corrected = new Set(of.filter(({ kind }) => kind === 'correction').map(({ id }) => id));
      return of
        .filter(({ id, kind }) => kind === 'expired' && !corrected.has(id))
        .flatMap(({ id, cost, scopeWindows }) => scopeWindows.map((charge) => ({ ...charge, id, spent: cost })));
    },
    sums: ledgerRows.sums,
  };
}
