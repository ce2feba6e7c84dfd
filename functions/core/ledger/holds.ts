// Holds: admitted in memory where the account's escrow covers them, else asked of the store; refused with the reason (LEDGER 3, 9).

import type { AskAnswer } from '../ports/accounts.ts';
import type { Hold, HoldRefusal, HoldRequest, RateView } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { RateReply } from '../ports/rates.ts';
import { err, ok, type Result } from '../result.ts';
import { type Account, begin, change, type HeldRates, type LiveHold } from './account.ts';
import { type Done, leftBySpend } from './apply.ts';
import type { Booking } from './booking.ts';
import { adoptLimits, type Charges, keepLimits } from './charges.ts';
import type { Pending } from './compose.ts';
import type { Waiter } from './counters.ts';
import { type CounterState, fits, idleOf } from './counters.ts';
import type { Clocks, LedgerDependencies } from './deps.ts';
import type { Membership } from './membership.ts';
import { type RatesAsked, ratesOf, toLimited, toView } from './rates.ts';
import type { Sync } from './sync.ts';
import { REQUEST_DEADLINE, type Waiting } from './waiting.ts';

export interface HoldDependencies extends LedgerDependencies, Clocks {
  readonly account: Account;
  readonly waiting: Waiting;
  readonly sync: Sync;
  readonly booking: Booking;
  readonly phase: { readonly isClosed: boolean };
  readonly membership: Pick<Membership, 'why'>;
}

type Held = Result<Hold, HoldRefusal>;
type Outcome = 'held' | HoldRefusal['reason'];

/** A request that waits for its hold. */
interface Attempt {
  readonly request: HoldRequest;
  readonly rates: RatesAsked | undefined;
  readonly resolve: (result: Held) => void;
}

/** Escrow is used while the last answered call was sent less than this ago. */
const FRESH: Millis = 1000;

/** Labels that come in the same object cost nothing (ports/clock.ts). */
const OUTCOMES: Readonly<Record<Outcome, { readonly outcome: Outcome }>> = {
  held: { outcome: 'held' },
  exceeded: { outcome: 'exceeded' },
  busy: { outcome: 'busy' },
  limited: { outcome: 'limited' },
  unavailable: { outcome: 'unavailable' },
};

export type Holds = ReturnType<typeof createHolds>;

export function createHolds(deps: HoldDependencies) {
  const { account, waiting, clock, wall, metrics } = deps;

  const isFresh = (): boolean =>
    account.isOpen && clock.now() - account.sentAt < FRESH && wall.now() - account.sentAtWall < FRESH;
  const isFree = ({ counters }: Charges, amount: Nano): boolean => {
    for (const counter of counters) if (counter.line.size > 0 || !fits(counter, amount)) return false;
    return true;
  };
  const count = (result: Held): Held => {
    metrics.add('gateway_operator_ledger_holds_total', OUTCOMES[result.ok ? 'held' : result.failure.reason]);
    return result;
  };

  return {
    /** Always resolves: an error becomes a refusal. */
    hold(request: HoldRequest): Promise<Held> {
      const refused = refusalOf(deps);
      if (refused !== undefined) return Promise.resolve(count(err(refused)));
      const { amount } = request;
      // The account of a visit has the id of its request, which a booking looks for.
      if (deps.isolate !== undefined && account.number === 0) account.id = request.id ?? account.id;
      const charges = account.charges(request.scopes, account.now());
      adoptLimits(charges);
      for (const counter of charges.counters) {
        counter.quiet = 0;
        counter.demand += amount;
        if (amount > 0n) counter.lastAmount = amount;
      }
      const rates = ratesOf(request);
      if (rates === undefined && isFresh() && isFree(charges, amount))
        return Promise.resolve(count(ok(take(deps, request, charges, amount))));
      return new Promise((resolve) => {
        waiting.enter(toWaiter(deps, charges, { request, rates, resolve: (result) => resolve(count(result)) }));
      });
    },

    /** The answers to the asks of a call; those who wait elsewhere in a line learn that spend has taken the rest. */
    answered({ counters, waiters, call }: Pending, reply: Done): void {
      waiters.forEach((waiter, index) => {
        const answer = reply.asks[index];
        waiter.isAsking = false;
        // Nobody needs what came too late: it goes back with the next call.
        if (waiter.isOver) for (const counter of waiter.counters) change(account, counter);
        if (waiter.isOver || answer === undefined) return;
        const isLower = waiter.counters.some(({ limit, lineIndex }) => isBelow(limit, call.lines[lineIndex]?.limit));
        // A limit has fallen meanwhile: the escrow goes back, and the request asks again.
        if (answer.outcome === 'held' && isLower) waiting.again(waiter);
        else waiter.onAnswer(answer);
      });
      for (const counter of counters) {
        if (counter.line.size === 0) continue;
        refuseSpent(counter);
        waiting.found(counter, roomIn(counter));
      }
    },

    /** Escrow became idle in these counters: those who wait for it go on. */
    freed(counters: ReadonlyArray<CounterState>): void {
      for (const counter of counters)
        if (counter.line.size > 0)
          waiting.freed(counter, (waiter) => {
            if (!isFresh() || waiter.rates !== undefined) return false;
            waiter.onAnswer({ outcome: 'held', amount: waiter.amount });
            return true;
          });
    },
  };
}

const isBelow = (limit: Nano | undefined, asked: Nano | undefined): boolean =>
  limit !== undefined && asked !== undefined && limit < asked;

function refusalOf({ phase, booking }: HoldDependencies): HoldRefusal | undefined {
  if (phase.isClosed) return { reason: 'unavailable', why: 'the ledger stops' };
  if (!booking.isOverLimit()) return undefined;
  const why = 'too many settlements are not booked yet: PostgreSQL or the store is away or slow';
  return { reason: 'unavailable', why };
}

/** The request has its money from here on. Its line in the outbox is not awaited: a reply that never completed owes nothing. */
function take(
  deps: HoldDependencies,
  { id = deps.ids.next(), model, identifier }: HoldRequest,
  charges: Charges,
  amount: Nano,
  rates?: { readonly counted: HeldRates; readonly view: RateView; readonly entry: number | undefined },
): LiveHold {
  const { account, outbox, clock, sync, log } = deps;
  const { all, counters } = charges;
  const live: LiveHold = {
    ...{ id, amount, charges: all, counters, model, identifier, since: clock.now() },
    ...{
      known: undefined,
      lost: undefined,
      written: 0n,
      risk: amount,
      isStream: false,
      ending: undefined,
      place: -1,
      counted: rates?.counted,
    },
    ...(rates === undefined ? {} : { rates: rates.view }),
    ...(rates?.entry === undefined ? {} : { entry: rates.entry }),
  };
  begin(account, live);
  outbox
    .append({ type: 'hold', id, amount, charges: all, model, identifier })
    .catch((error) => log.warn('the outbox misses a hold', { id, error: String(error) }));
  // The store learns of the risk while the provider answers, so that no reply waits for that.
  if (counters.some(({ toldRisk, uncovered, sentUncovered }) => toldRisk - uncovered - sentUncovered < amount / 2n))
    sync.urgent();
  else sync.news();
  return live;
}

function toWaiter(deps: HoldDependencies, first: Charges, { request, rates, resolve }: Attempt): Waiter {
  const { account, clock, waiting } = deps;
  const { amount, minAmount } = request;
  const arrivedAt = clock.now() - (request.waited ?? 0);
  let charges = first;
  const waiter: Waiter = {
    ...{
      scopes: charges.scopes,
      counters: charges.counters,
      amount,
      minAmount: minAmount < amount ? minAmount : amount,
    },
    ...{ rates, deadline: Math.max(arrivedAt + REQUEST_DEADLINE, clock.now() + MIN_WAIT) },
    ...{ view: undefined, busyIn: undefined, isAsking: false, isOver: false },
    renew() {
      const before = charges;
      charges = account.charges(request.scopes, account.now());
      keepLimits(charges, before);
      waiter.counters = charges.counters;
    },
    onAnswer(answer) {
      switch (answer.outcome) {
        case 'held':
          waiting.remove(waiter);
          return resolve(ok(take(deps, request, charges, answer.amount, takenRates(rates, answer.rates))));
        case 'busy': {
          const counter = waiter.counters[answer.counter];
          if (rates !== undefined && answer.rates !== undefined) waiter.view = toView(rates, answer.rates);
          if (counter !== undefined) waiting.queue(waiter, counter);
          return;
        }
        case 'late':
          waiting.again(waiter);
          return;
        case 'exceeded':
        case 'limited':
          return waiting.refuse(waiter, toRefusal(charges, rates, answer));
      }
    },
    onRefused: (refusal) => resolve(err(why(deps, refusal))),
  };
  return waiter;
}

/** A request that has waited for the database already has this long at least. */
const MIN_WAIT: Millis = 500;

function why({ account, membership }: HoldDependencies, refusal: HoldRefusal): HoldRefusal {
  if (refusal.reason !== 'unavailable' || account.isOpen) return refusal;
  return { ...refusal, why: `${refusal.why}: ${membership.why()}` };
}

function takenRates(asked: RatesAsked | undefined, reply: RateReply | undefined) {
  if (asked === undefined || reply === undefined) return undefined;
  const { limits, entries, tokens } = asked.request;
  const entry = reply.entry === undefined ? undefined : entries[reply.entry];
  return { counted: { limits, entry, tokens }, view: toView(asked, reply), entry: reply.entry };
}

function toRefusal(
  { scopes, counters, limits }: Charges,
  rates: RatesAsked | undefined,
  answer: Extract<AskAnswer, { outcome: 'exceeded' | 'limited' }>,
): HoldRefusal {
  if (answer.outcome === 'limited') {
    if (rates === undefined) throw new Error('the store refused for a rate that was not asked for');
    return toLimited(rates, answer, answer.rates);
  }
  const view = rates === undefined || answer.rates === undefined ? {} : { rates: toView(rates, answer.rates) };
  const [scope, counter, limit] = [scopes[answer.counter], counters[answer.counter], limits[answer.counter]];
  if (scope === undefined || counter === undefined || limit === undefined)
    throw new Error('the store refused in a counter that was not asked for');
  return {
    ...{ reason: 'exceeded', scope, spent: answer.spent, limit, resetAt: counter.counter.window.end, ...view },
  };
}

/** Money that spend and escrow leave, with what is idle here. */
const roomIn = (counter: CounterState): Nano =>
  (counter.limit ?? 0n) - (counter.spent ?? 0n) - counter.held + idleOf(counter);

/** Spend leaves those in this line too little now, so that waiting is of no use. */
function refuseSpent(counter: CounterState): void {
  const left = leftBySpend(counter);
  if (left === undefined) return;
  for (const waiter of [...counter.line]) {
    const index = waiter.counters.indexOf(counter);
    if (waiter.isAsking || index < 0 || waiter.minAmount <= left) continue;
    waiter.onAnswer({ outcome: 'exceeded', counter: index, spent: (counter.limit ?? 0n) - left });
  }
}
