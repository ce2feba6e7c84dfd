// Holds: admitted in memory where the account's escrow covers them, else asked of the store; refused with the reason (LEDGER 3, 9).

import { reasonOf } from '../failure/error-text.ts';
import { err, ok, type Result } from '../failure/result.ts';
import type { AskAnswer } from '../ports/counter-store.ts';
import type { Hold, HoldRefusal, HoldRequest } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { RateReply, RateRequest } from '../ports/rates.ts';
import { type Account, begin, change, type LiveHold, STOPPED } from './account.ts';
import type { Done, Pending } from './account-call.ts';
import { isOverLimit } from './booking.ts';
import type { Context } from './context.ts';
import { type Charges, type CounterState, fits, type Granted, type Waiter } from './counters.ts';
import { report } from './failures.ts';
import { append } from './journal-records.ts';
import { giveAllBack, ratesOf, takenOf, toLimited, toView } from './rates.ts';
import { MIN_WAIT, REQUEST_DEADLINE } from './timeout.ts';
import { renew, type Waiting } from './wait-queue.ts';

type Held = Result<Hold, HoldRefusal>;

const AWAY = 'too many settlements are not booked yet: PostgreSQL or the store is away or slow';
/** Escrow is used while the last answered call was sent less than this ago. */
const FRESH: Millis = 1000;

/** Labels that come in the same object cost nothing (ports/clock.ts). */
const OUTCOMES = {
  held: { outcome: 'held' },
  exceeded: { outcome: 'exceeded' },
  busy: { outcome: 'busy' },
  limited: { outcome: 'limited' },
  unavailable: { outcome: 'unavailable' },
};

export type Holds = ReturnType<typeof createHolds>;

export function createHolds(context: Context, waiting: Waiting) {
  const { account, clock, metrics } = context;

  const count = (result: Held): Held => {
    metrics.add('gateway_operator_ledger_holds_total', OUTCOMES[result.ok ? 'held' : result.failure.reason]);
    return result;
  };
  /** An answer that cannot be applied refuses its own request, and no other. */
  const answer = (waiter: Waiter, reply: AskAnswer): void => {
    try {
      apply(waiter, reply);
    } catch (error) {
      waiting.refuse(waiter, toError(context, error));
    }
  };
  const apply = (waiter: Waiter, reply: AskAnswer): void => {
    const { charges, rates } = waiter;
    if (reply.outcome === 'held') {
      waiting.remove(waiter);
      waiter.onHeld({ charges, amount: reply.amount, rates, reply: reply.rates });
    } else if (reply.outcome === 'late') waiting.again(waiter);
    else if (reply.outcome !== 'busy' || waiter.isGrowth) waiting.refuse(waiter, toRefusal(waiter, reply));
    else {
      const counter = charges.counters[reply.counter];
      waiter.view = toView(rates, reply.rates);
      if (counter !== undefined) waiting.queue(waiter, counter);
    }
  };

  const hold = (request: HoldRequest): Held | Promise<Held> => {
    const why = whyNothing(context);
    if (why !== undefined) return err({ reason: 'unavailable', why });
    const { amount, minAmount, waited = 0 } = request;
    // The account of a visit has the id of its request, which a booking looks for.
    if (context.isolate !== undefined && account.number === 0) account.id = request.id ?? account.id;
    const charges = account.counters.charges(request.scopes, account.now());
    // A visit has no next request, for which it would get escrow ahead.
    demand(charges, context.isolate === undefined ? amount : 0n, account.now());
    const rates = ratesOf(request);
    if (rates === undefined && isFresh(context) && isFree(charges, amount))
      return ok(take(context, request, { charges, amount }));
    return new Promise((resolve) => {
      waiting.enter({
        ...{ charges, amount, minAmount: minAmount < amount ? minAmount : amount, rates, isGrowth: false },
        deadline: clock.now() + Math.max(REQUEST_DEADLINE - waited, MIN_WAIT),
        onHeld: (granted) => resolve(ok(take(context, request, granted))),
        onRefused: (refusal) => resolve(err(refusal)),
      });
    });
  };

  return {
    /** Always resolves: an error becomes a refusal. */
    async hold(request: HoldRequest): Promise<Held> {
      try {
        return count(await hold(request));
      } catch (error) {
        return count(err(toError(context, error)));
      }
    },

    /** The answers to the asks of a call; those who wait elsewhere in a line learn that spend has taken the rest. */
    answered({ counters, waiters, call }: Pending, reply: Done): void {
      waiters.forEach((waiter, index) => {
        const one = reply.asks[index];
        const asked = waiter.charges.counters;
        waiter.isAsking = false;
        if (one === undefined) return;
        const isLower = asked.some(({ limit = 0n, lineIndex }) => limit < (call.lines[lineIndex]?.limit ?? 0n));
        // Money that came too late, or above a limit that has fallen meanwhile, goes back with the next call.
        if (one.outcome === 'held' && (waiter.isOver || isLower)) {
          for (const counter of asked) change(account, counter);
          giveAllBack(account, waiter, one.rates);
          waiting.again(waiter);
        } else if (!waiter.isOver) answer(waiter, one);
      });
      for (const counter of counters) {
        if (counter.line.size === 0) continue;
        refuseSpent(counter, answer);
        waiting.found(counter);
      }
    },

    /** Escrow became idle in this counter: those who fit are admitted in order of arrival, the front asks for more. */
    freed({ line }: CounterState): void {
      for (const waiter of isFresh(context) ? [...line] : []) {
        if (waiter.isAsking || waiter.rates !== undefined) break;
        renew(account, waiter);
        if (!waiter.charges.counters.every((counter) => fits(counter, waiter.amount))) break;
        answer(waiter, { outcome: 'held', amount: waiter.amount });
      }
      waiting.wakeFront(line);
      context.urgent();
    },
  };
}

/** Whether escrow may be used without a call. */
export const isFresh = ({ account, clock, wall }: Context): boolean =>
  account.isOpen && clock.now() - account.sentAt < FRESH && wall.now() - account.sentAtWall < FRESH;

/** The reason why nothing may be held, whatever the budget leaves. */
export function whyNothing(context: Context): string | undefined {
  if (context.account.isStopping) return STOPPED;
  return isOverLimit(context) ? AWAY : undefined;
}

/** The policies of this request are the latest known: their limits decide from now on. */
function demand({ counters, limits }: Charges, amount: Nano, now: Millis): void {
  for (let at = 0; at < counters.length; at += 1) {
    const counter = counters[at];
    if (counter === undefined) continue;
    counter.limit = limits[at];
    counter.demand += amount;
    if (amount === 0n) continue;
    counter.lastAmount = amount;
    counter.lastAt = now;
  }
}

function isFree({ counters }: Charges, amount: Nano): boolean {
  for (const counter of counters) if (counter.line.size > 0 || !fits(counter, amount)) return false;
  return true;
}

/** The request has its money from here on. Its line in the outbox is not awaited: a reply that never completed owes nothing. */
function take(
  context: Context,
  { id = context.ids.next(), model, identifier }: HoldRequest,
  { charges, amount, rates, reply }: Granted,
): LiveHold {
  const { account, clock } = context;
  const { scopes, all, counters } = charges;
  const live: LiveHold = {
    ...{ id, amount, charges: all, scopes, counters, model, identifier, since: clock.now(), risk: amount, place: -1 },
    ...{ isStream: false, known: undefined, lost: undefined, written: undefined, ending: undefined },
    ...(rates === undefined || reply === undefined ? { counted: undefined } : takenRates(account, rates, reply)),
  };
  begin(account, live);
  void record(context, live);
  // The store learns of the risk while the provider answers, so that no reply waits for that.
  if (counters.some(({ toldRisk, uncovered }) => toldRisk - uncovered < amount / 2n)) context.urgent();
  else context.news();
  return live;
}

/** Resolves when the outbox has the hold, or cannot have it: then the store knows its risk. */
export async function record(context: Context, hold: LiveHold): Promise<void> {
  const { id, amount, charges, model, identifier } = hold;
  await append(context, { type: 'hold', id, amount, charges, model, identifier });
}

function takenRates(
  account: Account,
  asked: RateRequest,
  reply: RateReply,
): Pick<LiveHold, 'counted' | 'rates' | 'entry'> {
  const { entry } = reply;
  const counted = takenOf(account, asked, reply);
  return { counted, ...toView(asked, reply), ...(entry === undefined ? {} : { entry }) };
}

function toError(context: Context, error: unknown): HoldRefusal {
  report(context, 'request', error);
  return { reason: 'unavailable', why: reasonOf(error) };
}

function toRefusal(waiter: Waiter, answer: Exclude<AskAnswer, { outcome: 'held' | 'late' }>): HoldRefusal {
  if (answer.outcome === 'limited') return toLimited(waiter, answer);
  const { scopes, counters, limits } = waiter.charges;
  const [scope, counter, limit] = [scopes[answer.counter], counters[answer.counter], limits[answer.counter]];
  if (scope === undefined || counter === undefined || limit === undefined)
    throw new Error('the store refused in a counter that was not asked for');
  const view = toView(waiter.rates, answer.rates);
  if (answer.outcome === 'busy') return { reason: 'busy', scope, ...view };
  return { reason: 'exceeded', scope, spent: answer.spent, limit, resetAt: counter.counter.window.end, ...view };
}

/** Spend leaves those in this line too little now, so that waiting is of no use. */
function refuseSpent(counter: CounterState, answer: (waiter: Waiter, reply: AskAnswer) => void): void {
  const { limit, spent, owed, line } = counter;
  if (limit === undefined || spent === undefined) return;
  for (const waiter of [...line]) {
    const index = waiter.charges.counters.indexOf(counter);
    if (waiter.isAsking || index < 0 || spent + owed + waiter.minAmount <= limit) continue;
    answer(waiter, { outcome: 'exceeded', counter: index, spent: spent + owed });
  }
}
