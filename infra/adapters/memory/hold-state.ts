// The record of one hold: the counters it moves, and what of it is still to be booked.
import type { EntryKind } from '#core/ports/books.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { EntryName, HoldNote, Part, SettleNote } from '#core/ports/store.ts';
import { type CounterState, isInside } from './counters.ts';
import type { Shares } from './rates.ts';

/** Taken at `at`: it counts in every counter of its scopes whose window holds that instant. */
interface Taken {
  readonly at: Millis;
  readonly amount: Nano;
  readonly note: HoldNote;
  readonly counters: CounterState[];
}

/** The counting of a hold's end: when, by which process, and its settlement. */
export interface Counted {
  readonly since: Millis;
  readonly by: string | undefined;
  readonly settlement: SettleNote | undefined;
}

export interface Held extends Taken {
  readonly state: 'held';
  known: Nano | undefined;
  until: Millis;
  /** The hold's shares of rates, where anything is limited. */
  readonly shares: Shares | undefined;
}

export interface Settled extends Taken, Counted {
  readonly state: 'settled';
  readonly kind: EntryKind;
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
  readonly since: Millis;
  readonly charged: Nano;
  /** The settlement or release after the lease had ended, and what the counters show since. */
  late: (Counted & { readonly outcome: 'settled' | 'released'; readonly cost: Nano; isBooked: boolean }) | undefined;
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

/** Parts that were counted and not acknowledged. */
export function partsOf(id: string, state: HoldState): Part[] {
  if (state.state === 'settled') return [{ id, kind: state.kind, cost: state.cost }];
  if (state.state !== 'expired') return [];
  const { charged, late, until } = state;
  const ended: Part[] = until === undefined ? [{ id, kind: 'expired', cost: charged }] : [];
  if (late === undefined || late.isBooked) return ended;
  return [...ended, { id, kind: 'correction', cost: late.cost - charged }];
}

/**
 * A counter was loaded while this hold was under way or not yet booked: its sum lacks it, but for what is `booked`. Happens
 * when a budget's duration was edited (the hold was taken in the old window and falls into the new one too), and in every new epoch.
 */
export function join(id: string, hold: HoldState, counter: CounterState, booked: ReadonlyArray<EntryName>): void {
  if (hold.state === 'released' || !isInside(hold.at, counter.window)) return;
  hold.counters.push(counter);
  if (hold.state === 'held') occupy(hold, counter);
  for (const part of partsOf(id, hold)) {
    if (!booked.some((name) => name.id === id && name.kind === part.kind)) counter.spent += part.cost;
  }
}
