// Entries of reservations that have ended: settled by their requests, left in the journal by an earlier process, or corrected
// (LEDGER 6).

import { NO_TOKENS } from '../money/usage.ts';
import type { JournalRecord, ReservationRecord } from '../ports/journal.ts';
import type { AccountCharge } from '../ports/ledger-database.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';

/** The request was not settled: charged at what is known to have been streamed, else at its size. */
export function toUnsettledRow(
  reservation: ReservationRecord & { readonly id: string },
  cost: Nano,
  settledAt: Millis,
): LedgerRow {
  const { id, scopeWindows, model, identifier } = reservation;
  return { id, kind: 'settled', scopeWindows, cost, tokens: NO_TOKENS, model, identifier, estimated: true, settledAt };
}

/** Takes back what was charged in an account's name: its process books its requests itself. */
export function toCorrectionRow({ id, scopeId, window, spent }: AccountCharge, settledAt: Millis): LedgerRow {
  const reservation = { id, scopeWindows: [{ scopeId, window }], model: '', identifier: '' };
  return { ...toUnsettledRow(reservation, -spent, settledAt), kind: 'correction' };
}

type RecordOf<Type> = Extract<JournalRecord, { type: Type }>;

/**
 * Accounts that a journal names, entries of settled and unsettled requests, and ids of which nothing is left. Records
 * may come twice and in any order within an id.
 */
export function replay(records: ReadonlyArray<JournalRecord>, now: Millis) {
  const accounts = new Set<string>();
  const held = new Map<string, RecordOf<'reserve'>>();
  const streamed = new Map<string, Nano>();
  const settled = new Map<string, LedgerRow>();
  const released = new Set<string>();
  const isLarger = ({ id, amount }: RecordOf<'reserve'>): boolean => amount >= (held.get(id)?.amount ?? 0n);
  for (const record of records) {
    if (record.type === 'account') accounts.add(record.id);
    else if (record.type === 'reserve' && isLarger(record)) held.set(record.id, record);
    else if (record.type === 'progress') streamed.set(record.id, record.cost);
    else if (record.type === 'release') released.add(record.id);
    else if (record.type === 'settle' && !settled.has(record.row.id)) settled.set(record.row.id, record.row);
  }
  const open = [...held.values()].filter(({ id }) => !settled.has(id) && !released.has(id));
  const unsettled = open.map((reservation) =>
    toUnsettledRow(reservation, streamed.get(reservation.id) ?? reservation.amount, now),
  );
  const entries = [...settled.values(), ...unsettled];
  const owed = new Set(entries.map(({ id }) => id));
  const done = [...released, ...streamed.keys()].filter((id) => !owed.has(id));
  return { accounts, entries, done };
}
