// Entries: what PostgreSQL learns of a hold that has ended.
import type { Booked, Entry, EntryKind, Tokens } from '../ports/books.ts';
import type { Settlement } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { HoldNote, SettleNote, UnbookedRecord } from '../ports/store.ts';

const NO_TOKENS: Tokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 };

/** The request said what it cost. */
export function toSettled(id: string, note: HoldNote, settlement: Settlement, settledAt: Millis): Entry {
  const { cost, tokens, model, identifier, estimated } = settlement;
  return { id, kind: 'settled', charges: note.charges, cost, tokens, model, identifier, estimated, settledAt };
}

/** The cost was not told: the hold is charged at what is known of it. */
export function toExpired(id: string, note: HoldNote, charged: Nano, settledAt: Millis): Entry {
  return { ...toUnsaid(id, 'expired', note, settledAt), cost: charged };
}

/** The lease had ended and `charged` was booked when the truth came. */
export function toCorrection(settled: Entry, charged: Nano): Entry {
  return { ...settled, kind: 'correction', cost: settled.cost - charged };
}

/** The lease had ended and `charged` was booked when it turned out that nothing was consumed. */
export function toRefund(id: string, note: HoldNote, charged: Nano, settledAt: Millis): Entry {
  return { ...toUnsaid(id, 'correction', note, settledAt), cost: -charged };
}

/**
 * What is left to book of an entry when PostgreSQL has these of its hold. A hold that was registered anew after the store forgot
 * ends twice: its lease under the old epoch, its request under the new one. The second end is a correction of the first, or none.
 */
export function besideBooked(entry: Entry, booked: ReadonlyArray<Booked> = []): Entry[] {
  const ended = booked.find(({ kind }) => kind === 'expired');
  if (entry.kind === 'settled' && ended !== undefined) return [toCorrection(entry, ended.cost)];
  return entry.kind === 'expired' && booked.some(({ kind }) => kind === 'settled') ? [] : [entry];
}

/** What the store is told of it, so that any process can book it. */
export function toNote({ id: _id, cost: _cost, ...note }: Entry): SettleNote {
  return note;
}

/** What the store kept for the process that books it. */
export function fromRecord({ id, kind, cost, hold, said, since }: UnbookedRecord): Entry {
  const rest = said ?? toUnsaid(id, kind, hold, since);
  return { ...rest, id, kind, cost, charges: hold.charges };
}

function toUnsaid(id: string, kind: EntryKind, note: HoldNote, settledAt: Millis): Omit<Entry, 'cost'> {
  const { charges, model, identifier } = note;
  return { id, kind, charges, tokens: NO_TOKENS, model, identifier, estimated: true, settledAt };
}
