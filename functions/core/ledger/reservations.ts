// Reservations: admitted in memory if the account's escrow covers them, else requested from the store; refused with the
// reason (LEDGER 3, 9).

import { reasonOf } from '../failure/error-text.ts';
import { err, ok, type Result } from '../failure/result.ts';
import type { ReservationReply } from '../ports/counter-store.ts';
import type { Reservation, ReservationParams, ReservationRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { RateReply, RateRequest } from '../ports/rates.ts';
import { type Account, addReservation, markChanged, STOPPED_REASON } from './account.ts';
import { hasBacklog } from './booking.ts';
import type { LedgerContext, Reservations } from './context.ts';
import {
  type ChargedCounters,
  type CounterState,
  fits,
  type GrantedReservation,
  pendingSpend,
  type WaitingRequest,
} from './counters.ts';
import { logFailure } from './failures.ts';
import { append } from './journal-records.ts';
import { ratesOf, rateUseOf, returnRates, toRateRefusal, toView } from './rates.ts';
import type { LiveReservation } from './requests.ts';
import { MIN_WAIT, REQUEST_DEADLINE } from './timeout.ts';
import { updateWindows } from './wait-queue.ts';

type ReservationResult = Result<Reservation, ReservationRefusal>;

const BACKLOG =
  'settlements have waited too long to be booked, or are too many: PostgreSQL or the counter store is unreachable or slow';
/** The time since the last call with a reply during which escrow is used without a call. */
const RECENT: Millis = 1000;

/** Labels as constant objects, which are encoded once (ports/telemetry.ts). */
const OUTCOMES = {
  reserved: { outcome: 'reserved' },
  exceeded: { outcome: 'exceeded' },
  held: { outcome: 'held' },
  limited: { outcome: 'limited' },
  unavailable: { outcome: 'unavailable' },
};

export function createReservations(context: LedgerContext): Reservations {
  const { account, intervalClock, metrics } = context;

  const count = (result: ReservationResult): ReservationResult => {
    metrics.add('gateway_operator_ledger_reservations_total', OUTCOMES[result.ok ? 'reserved' : result.failure.reason]);
    return result;
  };
  /** A reply that cannot be applied refuses its own request, and no other. */
  const applyReply = (waiter: WaitingRequest, reply: ReservationReply): void => {
    try {
      apply(waiter, reply);
    } catch (error) {
      context.waitQueue.refuse(waiter, toError(context, error));
    }
  };
  const apply = (waiter: WaitingRequest, reply: ReservationReply): void => {
    const { chargedCounters, rates } = waiter;
    if (reply.outcome === 'reserved') {
      context.waitQueue.remove(waiter);
      waiter.onReserved({ chargedCounters, amount: reply.amount, rates, reply: reply.rates });
    } else if (reply.outcome === 'late' || reply.outcome === 'absent') context.waitQueue.addToNextCall(waiter);
    else if (reply.outcome !== 'held' || waiter.isGrowth) context.waitQueue.refuse(waiter, toRefusal(waiter, reply));
    else {
      const counter = chargedCounters.counters[reply.counter];
      waiter.rateView = toView(rates, reply.rates);
      if (counter !== undefined) context.waitQueue.waitIn(waiter, counter);
    }
  };

  const reserve = (request: ReservationParams): ReservationResult | Promise<ReservationResult> => {
    const why = stopReason(context);
    if (why !== undefined) return err({ reason: 'unavailable', why });
    const { namespace = '', amount, minAmount, waited = 0 } = request;
    // The account of a ledger for one request has the id of that request. So the ledger row of the request shows that
    // the account is closed, and the account needs no row of its own (adapters/postgres/ledger-database.ts).
    if (context.isPerRequest && account.callNumber === 0) account.id = request.id ?? account.id;
    const chargedCounters = account.counters.ofScopes(request.scopes, account.now());
    // A ledger for one request has no next request that could use escrow.
    recordDemand(chargedCounters, context.isPerRequest ? 0n : amount, account.now());
    const rates = ratesOf(request);
    if (rates === undefined && hasRecentReply(context) && fitsIdleEscrow(chargedCounters, amount))
      return ok(startReservation(context, request, { chargedCounters, amount }));
    return new Promise((resolve) => {
      context.waitQueue.add({
        namespace,
        chargedCounters,
        amount,
        minAmount: minAmount < amount ? minAmount : amount,
        rates,
        isGrowth: false,
        deadline: intervalClock.now() + Math.max(REQUEST_DEADLINE - waited, MIN_WAIT),
        onReserved: (granted) => resolve(ok(startReservation(context, request, granted))),
        onRefused: (refusal) => resolve(err(refusal)),
      });
    });
  };

  return {
    reserve(request): Promise<ReservationResult> {
      const onError = (error: unknown): ReservationResult => count(err(toError(context, error)));
      try {
        const result = reserve(request);
        return result instanceof Promise ? result.then(count, onError) : Promise.resolve(count(result));
      } catch (error) {
        return Promise.resolve(onError(error));
      }
    },

    onReply({ counters, waiters, call }, reply): void {
      waiters.forEach((waiter, index) => {
        const requestReply = reply.replies[index];
        const { counters: requested } = waiter.chargedCounters;
        waiter.isInCall = false;
        if (requestReply === undefined) return;
        const isLower = requested.some(
          ({ limit = 0n, changeIndex }) => limit < (call.changes[changeIndex]?.limit ?? 0n),
        );
        // Money that came too late, or above a limit that has fallen meanwhile, is returned with the next call.
        if (requestReply.outcome === 'reserved' && (waiter.hasEnded || isLower)) {
          for (const counter of requested) markChanged(account, counter);
          returnRates(account, waiter, requestReply.rates);
          context.waitQueue.addToNextCall(waiter);
        } else if (!waiter.hasEnded) applyReply(waiter, requestReply);
      });
      if (reply.replies.some(({ outcome }) => outcome === 'absent'))
        context.loading.load(counters.filter(({ spendOfAll }) => spendOfAll === undefined));
      for (const counter of counters) {
        if (counter.waitingRequests.size === 0) continue;
        refuseSpent(counter, applyReply);
        context.waitQueue.wakeAffordable(counter);
      }
    },

    /**
     * Requests are admitted in order of arrival. The first request that does not fit is in the next call.
     */
    onEscrowFreed({ waitingRequests }): void {
      for (const waiter of hasRecentReply(context) ? [...waitingRequests] : []) {
        if (waiter.isInCall || waiter.rates !== undefined) break;
        updateWindows(account, waiter);
        if (!waiter.chargedCounters.counters.every((counter) => fits(counter, waiter.amount))) break;
        applyReply(waiter, { outcome: 'reserved', amount: waiter.amount });
      }
      context.waitQueue.wakeFront(waitingRequests);
      context.sync.callNow();
    },
  };
}

/** Whether escrow may be used without a call. */
export const hasRecentReply = ({ account, intervalClock, wallClock }: LedgerContext): boolean =>
  account.isOpen && intervalClock.now() - account.sentAt < RECENT && wallClock.now() - account.sentAtWall < RECENT;

/** The reason why nothing may be reserved, whatever the budget leaves; undefined: there is none. */
export function stopReason(context: LedgerContext): string | undefined {
  if (context.account.isStopping) return STOPPED_REASON;
  return hasBacklog(context) ? BACKLOG : undefined;
}

/** Records the limits of this request, whose policies are the latest, and its demand. */
function recordDemand({ counters, limits }: ChargedCounters, amount: Nano, now: Millis): void {
  for (let at = 0; at < counters.length; at += 1) {
    const counter = counters[at];
    if (counter === undefined) continue;
    counter.limit = limits[at];
    counter.demand += amount;
    if (amount === 0n) continue;
    counter.lastAmount = amount;
    counter.lastReservedAt = now;
  }
}

function fitsIdleEscrow({ counters }: ChargedCounters, amount: Nano): boolean {
  for (const counter of counters) if (counter.waitingRequests.size > 0 || !fits(counter, amount)) return false;
  return true;
}

/**
 * Starts a reservation: the request has its money from now on. Its record in the journal is not awaited. If the process
 * dies before the record is written, the request is charged what the store has as its risk. A restart on the same disk
 * takes this charge back; without the disk it stays. The reply cannot have completed, since `settle` waits for a later
 * record.
 */
function startReservation(
  context: LedgerContext,
  { id = context.ids.next(), namespace = '', model, identifier }: ReservationParams,
  { chargedCounters, amount, rates, reply }: GrantedReservation,
): LiveReservation {
  const { account, intervalClock } = context;
  const { scopes, scopeWindows, counters } = chargedCounters;
  const live: LiveReservation = {
    id,
    namespace,
    amount,
    scopeWindows,
    scopes,
    counters,
    model,
    identifier,
    reservedAt: intervalClock.now(),
    atRisk: amount,
    state: 'reserved',
    index: -1,
    isStream: false,
    costSoFar: undefined,
    onAccountClosed: undefined,
    writtenCost: undefined,
    ending: undefined,
    ...(rates === undefined || reply === undefined ? { rateUse: undefined } : toRateMembers(account, rates, reply)),
  };
  addReservation(account, live);
  void recordReservation(context, live);
  // The risk is reported while the provider answers, so that no reply waits for the report. If the risk that
  // the store has exceeds the costs that it must cover by half of this amount, the call in 25 ms is early enough: most
  // replies cost less.
  const isRiskReported = ({ risk, costToCover: { inCall, unreported } }: CounterState): boolean =>
    risk.reported - inCall - unreported >= amount / 2n;
  if (!counters.every(isRiskReported)) context.sync.callNow();
  else context.sync.callSoon();
  return live;
}

/**
 * Records a reservation. Resolves when the journal has it, or cannot have it: then the risk is reported to the store.
 */
export function recordReservation(context: LedgerContext, reservation: LiveReservation): Promise<unknown> {
  const { id, amount, scopeWindows, model, identifier } = reservation;
  return append(context, { type: 'reserve', id, amount, scopeWindows, model, identifier });
}

function toRateMembers(
  account: Account,
  request: RateRequest,
  reply: RateReply,
): Pick<LiveReservation, 'rateUse' | 'rates' | 'modelEntryIndex'> {
  const { modelEntryIndex } = reply;
  const rateUse = rateUseOf(account, request, reply);
  return { rateUse, ...toView(request, reply), ...(modelEntryIndex === undefined ? {} : { modelEntryIndex }) };
}

function toError(context: LedgerContext, error: unknown): ReservationRefusal {
  logFailure(context, 'request', error);
  return { reason: 'unavailable', why: reasonOf(error) };
}

function toRefusal(
  waiter: WaitingRequest,
  reply: Exclude<ReservationReply, { outcome: 'reserved' | 'late' | 'absent' }>,
): ReservationRefusal {
  if (reply.outcome === 'limited') return toRateRefusal(waiter, reply);
  const { scopes, counters, limits } = waiter.chargedCounters;
  const [scope, counter, limit] = [scopes[reply.counter], counters[reply.counter], limits[reply.counter]];
  if (scope === undefined || counter === undefined || limit === undefined)
    throw new Error('the store refused a request for a counter that it does not name (our error)');
  const view = toView(waiter.rates, reply.rates);
  if (reply.outcome === 'held') return { reason: 'held', scope, ...view };
  return { reason: 'exceeded', scope, spent: reply.spent, limit, resetAt: counter.scopeWindow.window.end, ...view };
}

/** Refuses requests in this queue for which spend leaves too little, so that waiting is of no use. */
function refuseSpent(
  counter: CounterState,
  applyReply: (waiter: WaitingRequest, reply: ReservationReply) => void,
): void {
  const { limit, spendOfAll, waitingRequests } = counter;
  if (limit === undefined || spendOfAll === undefined) return;
  const spent = spendOfAll + pendingSpend(counter);
  for (const waiter of [...waitingRequests]) {
    const index = waiter.chargedCounters.counters.indexOf(counter);
    if (waiter.isInCall || index < 0 || spent + waiter.minAmount <= limit) continue;
    applyReply(waiter, { outcome: 'exceeded', counter: index, spent });
  }
}
