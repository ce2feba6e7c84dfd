// Entries of a hold that has ended: settled, expired, corrected.
import type { Booked, Entry, EntryKind } from '../ports/books.ts';
import type { Settlement } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { HoldNote, SettleNote, UnbookedRecord } from '../ports/store.ts';
import { NO_TOKENS } from '../usage.ts';

/** The entry of a settlement. */
export function toSettled(id: string, note: HoldNote, settlement: Settlement, settledAt: Millis): Entry {
  const { cost, tokens, model, identifier, estimated } = settlement;
  return { id, kind: 'settled', charges: note.charges, cost, tokens, model, identifier, estimated, settledAt };
}

/** The entry of a hold whose lease ended: charged at what is known of its stream. */
export function toExpired(id: string, note: HoldNote, charged: Nano, settledAt: Millis): Entry {
  return { ...toEstimated(id, 'expired', note, settledAt), cost: charged };
}

/** The correction of an expired hold: `charged` was booked before the settlement arrived. */
export function toCorrection(settled: Entry, charged: Nano): Entry {
  return { ...settled, kind: 'correction', cost: settled.cost - charged };
}

/** The refund of an expired hold: `charged` was booked, and nothing was consumed. */
export function toRefund(id: string, note: HoldNote, charged: Nano, settledAt: Millis): Entry {
  return { ...toEstimated(id, 'correction', note, settledAt), cost: -charged };
}

/**
 * The part of an entry that is left to book beside what PostgreSQL has of its hold. A hold that was registered again after the store
 * forgot ends twice: its lease in the old epoch, its request in the new one. The second end is a correction of the first, or none.
 */
export function besideBooked(entry: Entry, booked: ReadonlyArray<Booked> = []): Entry[] {
  const ended = booked.find(({ kind }) => kind === 'expired');
  if (entry.kind === 'settled' && ended !== undefined) return [toCorrection(entry, ended.cost)];
  return entry.kind === 'expired' && booked.some(({ kind }) => kind === 'settled') ? [] : [entry];
}

/** The note with which any process can book the entry. */
export function toNote({ id: _id, cost: _cost, ...note }: Entry): SettleNote {
  return note;
}

/** The entry of an unbooked record of the store. */
export function fromRecord({ id, kind, cost, hold, settlement, since }: UnbookedRecord): Entry {
  const rest = settlement ?? toEstimated(id, kind, hold, since);
  return { ...rest, id, kind, cost, charges: hold.charges };
}

function toEstimated(id: string, kind: EntryKind, note: HoldNote, settledAt: Millis): Omit<Entry, 'cost'> {
  const { charges, model, identifier } = note;
  return { id, kind, charges, tokens: NO_TOKENS, model, identifier, estimated: true, settledAt };
}
