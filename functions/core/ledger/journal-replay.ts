// Ledger rows that no settlement makes: of requests in the journal of an earlier process, and corrections (LEDGER 6).

import { NO_TOKENS } from '../money/usage.ts';
import type { JournalRecord, ReservationRecord } from '../ports/journal.ts';
import type { ExpiredRow } from '../ports/ledger-database.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';

/**
 * The row of a request without a settlement, of kind `settled` like all rows of requests. `cost`: the cost so far if
 * that is known, else the amount of the reservation.
 */
export function toEstimatedRow(
  reservation: ReservationRecord & { readonly id: string },
  cost: Nano,
  settledAt: Millis,
): LedgerRow {
  const { id, scopeWindows, model, identifier } = reservation;
  return { id, kind: 'settled', scopeWindows, cost, tokens: NO_TOKENS, model, identifier, estimated: true, settledAt };
}

/** The row that takes back an expired row, since the process books its requests itself. */
export function toCorrectionRow({ id, scopeId, window, spent }: ExpiredRow, settledAt: Millis): LedgerRow {
  const reservation = { id, scopeWindows: [{ scopeId, window }], model: '', identifier: '' };
  return { ...toEstimatedRow(reservation, -spent, settledAt), kind: 'correction' };
}

type RecordOf<Type> = Extract<JournalRecord, { type: Type }>;

/**
 * Replays a journal: the accounts that it names, the rows of settled and unsettled requests, and the ids of records
 * that are not needed. The oldest records come first; a record may come twice.
 */
export function replay(records: ReadonlyArray<JournalRecord>, now: Millis) {
  const accounts = new Set<string>();
  const reservations = new Map<string, RecordOf<'reserve'>>();
  const progress = new Map<string, Nano>();
  const settled = new Map<string, LedgerRow>();
  const released = new Set<string>();
  const isLarger = ({ id, amount }: RecordOf<'reserve'>): boolean => amount >= (reservations.get(id)?.amount ?? 0n);
  for (const record of records) {
    if (record.type === 'account') accounts.add(record.id);
    else if (record.type === 'reserve' && isLarger(record)) reservations.set(record.id, record);
    else if (record.type === 'progress') progress.set(record.id, record.cost);
    else if (record.type === 'release') released.add(record.id);
    else if (record.type === 'settle' && !settled.has(record.row.id)) settled.set(record.row.id, record.row);
  }
  const open = [...reservations.values()].filter(({ id }) => !settled.has(id) && !released.has(id));
  const unsettled = open.map((reservation) =>
    toEstimatedRow(reservation, progress.get(reservation.id) ?? reservation.amount, now),
  );
  const rows = [...settled.values(), ...unsettled];
  const needed = new Set(rows.map(({ id }) => id));
  const unneeded = [...released, ...progress.keys()].filter((id) => !needed.has(id));
  return { accounts, rows, unneeded };
}
