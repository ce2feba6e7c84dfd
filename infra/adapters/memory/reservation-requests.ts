// Requests of a call: the whole amount from all counters of a request, or nothing; then escrow ahead of requests
// (LEDGER 3, 9).
import type { AccountCall, ReservationReply, ReservationRequest } from '#core/ports/counter-store.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import {
  type AccountState,
  type ChangedCounter,
  type Counter,
  escrowIn,
  isLive,
  type MemoryStore,
} from './account-state.ts';

/** One step of the store: a call of an account, with the time of the call. */
export interface Step {
  readonly store: MemoryStore;
  readonly account: AccountState;
  readonly changed: ReadonlyArray<ChangedCounter>;
  readonly now: Millis;
}

/** The time for which other accounts see the refusal of an account. */
const REFUSAL_SHOWN_FOR: Millis = 1000;
/** At most this share of what is left, divided among the live accounts, is idle escrow. */
const IDLE_SHARE = 16n;

export function answerRequest({ store, account, changed, now }: Step, request: ReservationRequest): ReservationReply {
  const changedCounters = request.counters.flatMap((index) => changed[index] ?? []);
  if (changedCounters.some(({ counter }) => counter.spent === undefined)) return { outcome: 'absent' };
  const ratesNow = (modelEntryIndex?: number) =>
    request.rates && {
      ...(modelEntryIndex === undefined ? {} : { modelEntryIndex }),
      ...store.rates.remainders(request.rates, now),
    };
  const minAmount = request.minAmount < request.amount ? request.minAmount : request.amount;
  let amount = request.amount;
  for (const [counter, changedCounter] of changedCounters.entries()) {
    const left = spendLeaves(changedCounter) ?? amount + 1n;
    // A limit that spend has reached also refuses requests that cost nothing.
    if (left <= 0n || left < minAmount)
      return { outcome: 'exceeded', counter, spent: changedCounter.counter.spent ?? 0n, rates: ratesNow() };
    if (left < amount) amount = left;
  }
  const refusal = request.rates && store.rates.check(request.rates, now);
  if (refusal !== undefined)
    return { outcome: 'limited', ...refusal, rates: ratesNow() ?? { minute: 0, remainders: [] } };
  const isShort = (one: ChangedCounter): boolean => amount > 0n && (escrowLeaves(one) ?? amount) < amount;
  for (const { counter } of changedCounters.filter(isShort)) counter.refusals.set(account.id, now + REFUSAL_SHOWN_FOR);
  const held = changedCounters.findIndex(isShort);
  if (held >= 0) return { outcome: 'held', counter: held, rates: ratesNow() };
  for (const { change, figures } of changedCounters) {
    if (change.limit !== undefined) figures.escrow += amount;
    figures.risk += amount;
  }
  return {
    outcome: 'reserved',
    amount,
    rates: ratesNow(request.rates && store.rates.take(request.rates, account.id, now)),
  };
}

/** Grants escrow ahead of requests, if no request was refused in the counter. */
export function grantAhead(
  { store, changed, now }: Step,
  { requests }: AccountCall,
  answers: ReadonlyArray<ReservationReply>,
): void {
  const isRefused = (index: number): boolean => ['exceeded', 'held'].includes(answers[index]?.outcome ?? '');
  const refused = new Set(requests.flatMap(({ counters }, index) => (isRefused(index) ? counters : [])));
  const share = IDLE_SHARE * BigInt(liveAccounts(store, now));
  for (const [index, changedCounter] of changed.entries()) {
    const { change, counter, figures } = changedCounter;
    if (change.ahead === 0n || refused.has(index) || isWantedByOthers(counter, now)) continue;
    if (share * change.ahead <= (escrowLeaves(changedCounter) ?? 0n)) figures.escrow += change.ahead;
  }
}

/** Whether an account was refused in this counter because of escrow; `except`: an account that does not count. */
export function isWantedByOthers({ refusals }: Counter, now: Millis, except?: string): boolean {
  for (const [id, until] of refusals) if (until <= now) refusals.delete(id);
  return refusals.size > (except !== undefined && refusals.has(except) ? 1 : 0);
}

export const liveAccounts = ({ accounts }: MemoryStore, now: Millis): number =>
  [...accounts.values()].filter((account) => isLive(account, now)).length;

/** The rest that spend leaves of the limit; undefined: there is no limit. */
const spendLeaves = ({ change: { limit }, counter }: ChangedCounter): Nano | undefined =>
  limit === undefined ? undefined : limit - (counter.spent ?? 0n);

const escrowLeaves = (changedCounter: ChangedCounter): Nano | undefined => {
  const left = spendLeaves(changedCounter);
  return left === undefined ? undefined : left - escrowIn(changedCounter.counter);
};
