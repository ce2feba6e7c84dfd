// Replay of an outbox: what an earlier process on the same folder left, as entries of this one (LEDGER 6).
import type { Entry } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import { toUnsettled } from './entry.ts';

export interface Replay {
  /** Accounts that the outbox names. */
  readonly accounts: ReadonlyArray<string>;
  /** Settled requests; unsettled ones at what they had streamed, else at their size. */
  readonly entries: ReadonlyArray<Entry>;
  /** Released requests: nothing is left of them. */
  readonly done: ReadonlyArray<string>;
}

type RecordOf<Type> = Extract<OutboxRecord, { type: Type }>;

/** Records may come twice and in any order within an id. */
export function replay(records: ReadonlyArray<OutboxRecord>, now: Millis): Replay {
  const accounts = new Set<string>();
  const held = new Map<string, RecordOf<'hold'>>();
  const streamed = new Map<string, RecordOf<'progress'>>();
  const settled = new Map<string, Entry>();
  const released = new Set<string>();
  for (const record of records) {
    if (record.type === 'account') accounts.add(record.id);
    else if (record.type === 'hold') held.set(record.id, record);
    else if (record.type === 'progress') streamed.set(record.id, record);
    else if (record.type === 'release') released.add(record.id);
    else if (record.type === 'settle' && !settled.has(record.entry.id)) settled.set(record.entry.id, record.entry);
  }
  const open = [...held.values()].filter(({ id }) => !settled.has(id) && !released.has(id));
  const unsettled = open.map((hold) => toUnsettled(hold.id, hold, streamed.get(hold.id)?.known ?? hold.amount, now));
  const done = [...released, ...streamed.keys()].filter(
    (id) => !settled.has(id) && !open.some((hold) => hold.id === id),
  );
  return { accounts: [...accounts], entries: [...settled.values(), ...unsettled], done };
}
