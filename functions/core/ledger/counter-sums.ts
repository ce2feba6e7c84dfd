// The sum that a counter must show: PostgreSQL's sum plus the store's unbooked parts, read while nothing is booked (LEDGER 6).
import type { Booked, Reading } from '../ports/books.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '../ports/policy.ts';
import type { EntryName, Load, Part, Store, StoreCall } from '../ports/store.ts';

export interface CounterSum extends ScopeSpend {
  /** The store's value; undefined where the counter is not loaded. */
  readonly shown: Nano | undefined;
  /** The load that sets the counter. */
  readonly load: Load;
}

type Adjust = NonNullable<StoreCall['adjusts']>[number];

/** One second less than PostgreSQL leaves the lock to a silent process. */
const DEADLINE: Millis = 1000;

/** Runs inside `Books.withLedgerLock`. `spent` is what the counter must show. */
export async function readCounterSums(
  store: Pick<Store, 'survey'>,
  reading: Reading,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<ReadonlyArray<CounterSum>> {
  const survey = await store.survey(counters);
  const sums = await reading.sums(counters);
  if (sums.length !== counters.length) throw new Error('PostgreSQL left a sum out');
  const ids = [...new Set(survey.counters.flatMap(({ parts }) => parts.map(({ id }) => id)))];
  const booked = ids.length === 0 ? new Map() : await reading.bookedOf(ids);
  // A settlement may have been booked as the correction of an expired lease (booking.ts).
  const isBooked = ({ id, kind }: EntryName): boolean =>
    booked.get(id)?.some((each: Booked) => each.kind === kind || (kind === 'settled' && each.kind === 'correction')) ===
    true;
  const deadline = survey.now + DEADLINE;
  return sums.map((sum, index) => {
    const { spent: shown, parts } = survey.counters[index] ?? { spent: undefined, parts: [] };
    const unbooked = parts.filter((part) => !isBooked(part));
    const names = parts.filter(isBooked).map(({ id, kind }) => ({ id, kind }));
    return { ...sum, shown, spent: sum.spent + costOf(unbooked), load: { ...sum, booked: names, deadline } };
  });
}

/** Adjustments that make loaded counters show their sums. */
export const differencesIn = (exact: ReadonlyArray<CounterSum>): ReadonlyArray<Adjust> =>
  exact.flatMap(({ scopeId, window, shown, spent, load }) =>
    shown === undefined || shown === spent
      ? []
      : [{ scopeId, window, by: spent - shown, deadline: load.deadline ?? 0 }],
  );

const costOf = (parts: ReadonlyArray<Part>): Nano => parts.reduce((all, { cost }) => all + cost, 0n);
