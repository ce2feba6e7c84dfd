// Asks of a call: a request's whole amount from all its counters or nothing; then escrow ahead of requests (LEDGER 3,
// 9).
import type { AccountCall, ReservationReply, ReservationRequest } from '#core/ports/counter-store.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import { type Account, type Counter, heldIn, isLive, type Life, type Place } from './account-state.ts';

/** One step in the life of a store: a call of an account, now. */
export interface Step {
  readonly life: Life;
  readonly account: Account;
  readonly places: ReadonlyArray<Place>;
  readonly now: Millis;
}

/** A refused account stays known to others for so long. */
const WANTED_FOR: Millis = 1000;
/** At most this share of what is left, divided among the live accounts, lies idle. */
const IDLE_SHARE = 16n;

export function answerAsk({ life, account, places, now }: Step, ask: ReservationRequest): ReservationReply {
  const own = ask.counters.flatMap((index) => places[index] ?? []);
  const ratesNow = (entry?: number) =>
    ask.rates && { ...(entry === undefined ? {} : { entry }), ...life.rates.left(ask.rates, now) };
  const minAmount = ask.minAmount < ask.amount ? ask.minAmount : ask.amount;
  let amount = ask.amount;
  for (const [counter, place] of own.entries()) {
    const left = spendLeaves(place) ?? amount + 1n;
    // A limit that spend has reached refuses, also for requests that cost nothing.
    if (left <= 0n || left < minAmount)
      return { outcome: 'exceeded', counter, spent: place.counter.spent ?? 0n, rates: ratesNow() };
    if (left < amount) amount = left;
  }
  const refusal = ask.rates && life.rates.check(ask.rates, now);
  if (refusal !== undefined) return { outcome: 'limited', ...refusal, rates: ratesNow() ?? { minute: 0, left: [] } };
  const isShort = (place: Place): boolean => amount > 0n && (escrowLeaves(place) ?? amount) < amount;
  for (const { counter } of own.filter(isShort)) counter.wanted.set(account.id, now + WANTED_FOR);
  const busy = own.findIndex(isShort);
  if (busy >= 0) return { outcome: 'busy', counter: busy, rates: ratesNow() };
  for (const { line, figures } of own) {
    if (line.limit !== undefined) figures.escrow += amount;
    figures.risk += amount;
  }
  return { outcome: 'reserved', amount, rates: ratesNow(ask.rates && life.rates.take(ask.rates, account.id, now)) };
}

/** Grants escrow ahead of requests, where nobody was refused. */
export function grantAhead(
  { life, places, now }: Step,
  { requests }: AccountCall,
  answers: ReadonlyArray<ReservationReply>,
): void {
  const isRefused = (index: number): boolean => ['exceeded', 'busy'].includes(answers[index]?.outcome ?? '');
  const refused = new Set(requests.flatMap(({ counters }, index) => (isRefused(index) ? counters : [])));
  const share = IDLE_SHARE * BigInt(liveAccounts(life, now));
  for (const [index, place] of places.entries()) {
    const { line, counter, figures } = place;
    if (line.ahead === 0n || refused.has(index) || isWanted(counter, now)) continue;
    if (share * line.ahead <= (escrowLeaves(place) ?? 0n)) figures.escrow += line.ahead;
  }
}

/** Whether an account was refused here because of escrow; `except`: another one than this. */
export function isWanted({ wanted }: Counter, now: Millis, except?: string): boolean {
  for (const [id, until] of wanted) if (until <= now) wanted.delete(id);
  return wanted.size > (except !== undefined && wanted.has(except) ? 1 : 0);
}

export const liveAccounts = ({ accounts }: Life, now: Millis): number =>
  [...accounts.values()].filter((account) => isLive(account, now)).length;

/** Undefined: without a limit. */
const spendLeaves = ({ line: { limit }, counter }: Place): Nano | undefined =>
  limit === undefined ? undefined : limit - (counter.spent ?? 0n);

const escrowLeaves = (place: Place): Nano | undefined => {
  const left = spendLeaves(place);
  return left === undefined ? undefined : left - heldIn(place.counter);
};
