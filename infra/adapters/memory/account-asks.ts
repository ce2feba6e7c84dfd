// Asks of a call: a request's whole amount from all its counters or nothing; then escrow ahead of requests (LEDGER 3, 9).
import type { AccountCall, Ask, AskAnswer, CounterLine } from '#core/ports/accounts.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import { type Account, type Counter, type Figures, figuresIn, find, type Life, setAside } from './account-state.ts';

/** One step in the life of a store: an account's call, now. */
export interface Step {
  readonly life: Life;
  readonly account: Account;
  readonly now: Millis;
}

interface Place {
  readonly limit: Nano | undefined;
  readonly counter: Counter;
  readonly figures: Figures;
}

/** A refused account stays known to others for so long. */
const WANTED_FOR: Millis = 1000;
/** At most this share of what is left, divided among the live accounts, lies idle. */
const IDLE_SHARE = 16n;

export function answerAsk(step: Step, { lines }: AccountCall, ask: Ask): AskAnswer {
  const { life, account, now } = step;
  const places = ask.lines.flatMap((index) => placeOf(step, lines[index]) ?? []);
  const viewOf = (entry?: number) =>
    ask.rates && { ...(entry === undefined ? {} : { entry }), left: life.rates.left(ask.rates, now) };
  const minAmount = ask.minAmount < ask.amount ? ask.minAmount : ask.amount;
  let amount = ask.amount;
  for (const [counter, place] of places.entries()) {
    const left = spendLeaves(place);
    if (left === undefined) continue;
    // A limit that spend has reached refuses, also for requests that cost nothing.
    if (left <= 0n || left < minAmount)
      return { outcome: 'exceeded', counter, spent: place.counter.spent, rates: viewOf() };
    if (left < amount) amount = left;
  }
  const refusal = ask.rates && life.rates.check(ask.rates, now);
  if (refusal !== undefined) return { outcome: 'limited', ...refusal, rates: viewOf() ?? { left: [] } };
  const isShort = (place: Place): boolean => amount > 0n && (leftOf(place) ?? amount) < amount;
  for (const { counter } of places.filter(isShort)) counter.wanted.set(account.id, now + WANTED_FOR);
  const busy = places.findIndex(isShort);
  if (busy >= 0) return { outcome: 'busy', counter: busy, rates: viewOf() };
  for (const { limit, figures } of places) {
    if (limit !== undefined) setAside(life, figures, amount);
    figures.risk += amount;
  }
  const entry = ask.rates && life.rates.take(ask.rates, now, account.inFlight);
  return { outcome: 'held', amount, rates: viewOf(entry) };
}

/** Grants escrow ahead of requests, where nobody was refused. */
export function grantAhead(step: Step, { lines, asks }: AccountCall, answers: ReadonlyArray<AskAnswer>): void {
  const refused = new Set(
    asks.flatMap((ask, index) => (['exceeded', 'busy'].includes(answers[index]?.outcome ?? '') ? ask.lines : [])),
  );
  for (const [index, line] of lines.entries()) {
    const place = line.ahead > 0n && !refused.has(index) ? placeOf(step, line) : undefined;
    if (place === undefined || isWanted(place.counter, step.now)) continue;
    const { escrow, risk } = place.figures;
    const idle = (escrow > risk ? escrow - risk : 0n) + line.ahead;
    if (IDLE_SHARE * BigInt(liveAccounts(step)) * idle <= (leftOf(place) ?? 0n))
      setAside(step.life, place.figures, line.ahead);
  }
}

/** Whether an account was refused here because of escrow; `except`: another one than this. */
export const isWanted = ({ wanted }: Counter, now: Millis, except?: string): boolean => {
  for (const [id, until] of wanted) if (until <= now) wanted.delete(id);
  return wanted.size > (except !== undefined && wanted.has(except) ? 1 : 0);
};

export const liveAccounts = ({ life, now }: Step): number =>
  [...life.accounts.values()].filter(({ isMarked, isFinished, until }) => !isMarked && !isFinished && until > now)
    .length;

function placeOf({ life, account }: Step, line: CounterLine | undefined): Place | undefined {
  const counter = line && find(life, line);
  return counter && line && { limit: line.limit, counter, figures: figuresIn(account, line) };
}

const spendLeaves = ({ limit, counter }: Place): Nano | undefined =>
  limit === undefined ? undefined : limit - counter.spent;

const leftOf = ({ limit, counter }: Place): Nano | undefined =>
  limit === undefined ? undefined : limit - counter.spent - counter.held;
