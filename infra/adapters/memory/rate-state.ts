// The use of one rate, second by second, and what that leaves (decision 0012).
import type { Millis } from '#core/ports/money.ts';
import type { RateKind, RateLeft, RateLimit, RatesLeft } from '#core/ports/rates.ts';

export interface RateState {
  /** The use in each second, the oldest first. */
  slots: Slot[];
  /** Live holds, and the tokens they are expected to use. */
  live: number;
  reserved: number;
}

interface Slot {
  /** When the last of it was used. */
  at: Millis;
  requests: number;
  tokens: number;
}

/** Why it has to wait. */
export interface Wait {
  readonly rate: RateKind;
  readonly retryIn: Millis;
}

const MINUTE: Millis = 60_000;
/** Requests in flight may end at any time. */
const SOON: Millis = 1000;

export const secondOf = (now: Millis): number => Math.floor(now / 1000);

/** The slot in which use counts now. */
export function slotAt(state: RateState, now: Millis): Slot {
  const second = secondOf(now);
  const known = state.slots.findLast(({ at }) => secondOf(at) === second);
  const slot = known ?? { at: now, requests: 0, tokens: 0 };
  if (known === undefined) state.slots.push(slot);
  slot.at = Math.max(slot.at, now);
  return slot;
}

/** The limit that keeps a request of so many tokens waiting longest. */
export function waitOf(limit: RateLimit, state: RateState, asked: number, now: Millis): Wait | undefined {
  const { requests, parallel, tokens: most } = limit;
  const waits: Wait[] = [];
  const add = (rate: RateKind, retryIn: Millis | undefined): void => {
    if (retryIn !== undefined) waits.push({ rate, retryIn });
  };
  if (requests !== undefined) add('requests', untilUsed(state, 'requests', requests - 1, now));
  if (most !== undefined) {
    // A request for more than the limit has the whole of it to itself, once it is free.
    const wanted = Math.min(asked, most);
    const isHeld = usedOf(state, 'tokens', now) + state.reserved + wanted > most;
    add('tokens', untilUsed(state, 'tokens', most - wanted, now) ?? (isHeld ? SOON : undefined));
  }
  if (parallel !== undefined && state.live >= parallel) add('parallel', SOON);
  return longest(waits);
}

export function longest<T extends { readonly retryIn: Millis }>(waits: ReadonlyArray<T>): T | undefined {
  let most: T | undefined;
  for (const wait of waits) if (most === undefined || wait.retryIn > most.retryIn) most = wait;
  return most;
}

export function leftOf({ requests, tokens }: RateLimit, state: RateState, now: Millis): RatesLeft {
  return {
    ...(requests === undefined ? {} : { requests: leftBelow(requests, state, 'requests', now) }),
    ...(tokens === undefined ? {} : { tokens: leftBelow(tokens, state, 'tokens', now) }),
  };
}

type Countable = 'requests' | 'tokens';

/** The use in a second counts until a minute after the last of it: no minute ever holds more than the limit. */
const counts = ({ at }: Slot, now: Millis): boolean => at + MINUTE > now;
const freeIn = (at: Millis, now: Millis): Millis => at + MINUTE - now;

function usedOf({ slots }: RateState, what: Countable, now: Millis): number {
  return slots.reduce((sum, slot) => (counts(slot, now) ? sum + slot[what] : sum), 0);
}

/** Until so much has passed out of the count that no more than `most` is used; undefined: it is not more. */
function untilUsed(state: RateState, what: Countable, most: number, now: Millis): Millis | undefined {
  let used = usedOf(state, what, now);
  if (used <= most) return undefined;
  for (const slot of state.slots) {
    if (counts(slot, now)) used -= slot[what];
    if (used <= most) return freeIn(slot.at, now);
  }
  return undefined;
}

function leftBelow(limit: number, state: RateState, what: Countable, now: Millis): RateLeft {
  const reserved = what === 'tokens' ? state.reserved : 0;
  const remaining = Math.max(0, limit - usedOf(state, what, now) - reserved);
  // Tokens in flight count from the end of their request on: at the earliest from now.
  const newest = reserved > 0 ? now : newestOf(state, what, now);
  return { remaining, resetIn: newest === undefined ? 0 : freeIn(newest, now) };
}

const newestOf = ({ slots }: RateState, what: Countable, now: Millis): Millis | undefined =>
  slots.findLast((slot) => slot[what] > 0 && counts(slot, now))?.at;
