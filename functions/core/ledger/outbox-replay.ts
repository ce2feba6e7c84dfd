// Replay of an outbox: an earlier process's records folded by hold, and the step that completes each.
import type { Booked, Entry } from '../ports/books.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import type { HoldNote, SettleOperation } from '../ports/store.ts';
import { toCorrection, toExpired, toNote, toRefund } from './entry.ts';

export interface UnfinishedHold {
  readonly id: string;
  hold: Extract<OutboxRecord, { type: 'hold' }> | undefined;
  known: Nano | undefined;
  settled: Entry | undefined;
  expired: Entry | undefined;
  released: boolean;
}

export type Step =
  /** Nothing is left to do: PostgreSQL has the entry, or nothing was consumed and nothing is held. */
  | { readonly step: 'done' }
  /** The hold was released; the store may not know. */
  | { readonly step: 'release' }
  /** The store gets the cost, then these entries are booked. `entries` gets the charge that the store made meanwhile, if any. */
  | {
      readonly step: 'settle';
      readonly operation: SettleOperation;
      /** The end of the request is unknown: a release that the store knows wins. */
      readonly isEndUnknown?: true;
      readonly entries: (answered: Nano | undefined) => Entry[];
    };

/** One unfinished hold per id, oldest first. Records may come twice. */
export function foldRecords(records: ReadonlyArray<OutboxRecord>): UnfinishedHold[] {
  const unfinishedHolds = new Map<string, UnfinishedHold>();
  for (const record of records) {
    const id = 'entry' in record ? record.entry.id : record.id;
    const unfinishedHold = unfinishedHolds.get(id) ?? {
      id,
      hold: undefined,
      known: undefined,
      settled: undefined,
      expired: undefined,
      released: false,
    };
    unfinishedHolds.set(id, unfinishedHold);
    if (record.type === 'hold') unfinishedHold.hold = record;
    else if (record.type === 'progress') unfinishedHold.known = record.known;
    else if (record.type === 'settle') unfinishedHold.settled ??= record.entry;
    else if (record.type === 'expired') unfinishedHold.expired ??= record.entry;
    else unfinishedHold.released = true;
  }
  return [...unfinishedHolds.values()];
}

/** The step left for one hold, given its entries in PostgreSQL. */
export function stepFor(unfinishedHold: UnfinishedHold, booked: ReadonlyArray<Booked>, now: Millis): Step {
  const { id, hold, known, settled, expired, released } = unfinishedHold;
  if (booked.some(({ kind }) => kind !== 'expired')) return { step: 'done' };
  // The charge of the expired lease, whichever process booked it.
  const charged = booked[0]?.cost;
  if (settled !== undefined) {
    return charged === undefined ? settleStep(settled, expired) : bookedExpiredStep(settled, charged);
  }
  if (charged !== undefined) {
    const note = expired ?? hold;
    return released && note !== undefined ? refundStep(id, note, charged, now) : { step: 'done' };
  }
  if (released) return { step: 'release' };
  if (expired !== undefined) return unsettledStep(expired);
  if (hold === undefined) return { step: 'done' };
  return unsettledStep(toExpired(id, hold, known ?? hold.amount, now));
}

/** A completed reply. If its lease ended before the replay, the store answers with its charge. */
function settleStep(settled: Entry, expired: Entry | undefined): Step {
  const operation = { id: settled.id, cost: settled.cost, counters: settled.charges };
  return {
    step: 'settle',
    operation: expired === undefined ? { ...operation, note: toNote(settled) } : operation,
    entries: (charged = expired?.cost) => (charged === undefined ? [settled] : expiredAndCorrected(settled, charged)),
  };
}

/** The expiry is in PostgreSQL, the settlement that followed is not. */
function bookedExpiredStep(settled: Entry, charged: Nano): Step {
  const correction = toCorrection(settled, charged);
  const { id, cost, charges: counters } = settled;
  return {
    step: 'settle',
    operation: { id, cost, counters, counted: charged, note: toNote(correction) },
    entries: () => [correction],
  };
}

/** The expiry is in PostgreSQL, the release that followed is not. */
function refundStep(id: string, note: HoldNote, charged: Nano, now: Millis): Step {
  const refund = toRefund(id, note, charged, now);
  return {
    step: 'settle',
    operation: { id, cost: 0n, counters: note.charges, counted: charged, note: toNote(refund) },
    entries: () => [refund],
  };
}

/** The charge of a hold that was not settled: the cost streamed so far, else its size. */
function unsettledStep(expired: Entry): Step {
  return {
    ...{ step: 'settle', isEndUnknown: true },
    operation: { id: expired.id, cost: expired.cost, counters: expired.charges, note: toNote(expired) },
    entries: (charged) => (charged === undefined ? [expired] : expiredAndCorrected(expired, charged)),
  };
}

/** Another process charged the expired lease: book that, and the correction to the true cost. */
function expiredAndCorrected(truth: Entry, charged: Nano): Entry[] {
  return [toExpired(truth.id, truth, charged, truth.settledAt), toCorrection(truth, charged)];
}
