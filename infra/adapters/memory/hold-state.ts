// What is one hold's record, and which counters does it move?
import type { Millis, Nano } from '#core/ports/money.ts';
import type { HoldNote } from '#core/ports/store.ts';
import { type CounterState, isInside } from './counters.ts';
import type { Shares } from './rates.ts';

/** Taken at `at`: it counts in every counter of its scopes whose window holds that instant. */
interface Taken {
  readonly at: Millis;
  readonly amount: Nano;
  readonly note: HoldNote;
  readonly counters: CounterState[];
}

export interface Held extends Taken {
  readonly state: 'held';
  known: Nano | undefined;
  until: Millis;
  /** What it uses of rates, where anything is limited. */
  readonly shares: Shares | undefined;
}

export interface Settled extends Taken {
  readonly state: 'settled';
  readonly cost: Nano;
  readonly shares?: Shares | undefined;
}

export interface Released {
  readonly state: 'released';
  /** When the id may be forgotten. */
  readonly until: Millis;
}

export interface Expired extends Taken {
  readonly state: 'expired';
  readonly charged: Nano;
  /** What came after the lease had ended, and what the counters show since. */
  late: { readonly outcome: 'settled' | 'released'; readonly cost: Nano } | undefined;
  /** Set when the end of the lease was booked: when the id may be forgotten. */
  until: Millis | undefined;
}

export type HoldState = Held | Settled | Released | Expired;

/** Sets the amount aside. */
export function occupy(hold: Held, counter: CounterState): void {
  counter.held += hold.amount;
  counter.holds += 1;
}

/** Frees what was set aside and counts what it cost. */
export function vacate(hold: Held, cost: Nano): void {
  for (const counter of hold.counters) {
    counter.held -= hold.amount;
    counter.holds -= 1;
  }
  charge(hold.counters, cost);
}

export function charge(counters: ReadonlyArray<CounterState>, cost: Nano): void {
  for (const counter of counters) counter.spent += cost;
}

/**
 * A counter was loaded while this hold was under way or not yet booked: its sum lacks it. Happens when a budget's
 * duration was edited: the hold was taken in the old window and falls into the new one too.
 */
export function join(hold: HoldState, counter: CounterState): void {
  if (hold.state === 'released' || !isInside(hold.at, counter.window)) return;
  hold.counters.push(counter);
  if (hold.state === 'held') occupy(hold, counter);
  else if (hold.state === 'settled') counter.spent += hold.cost;
  else if (hold.until === undefined) counter.spent += hold.late?.cost ?? hold.charged;
}
