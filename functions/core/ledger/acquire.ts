// The way of a request to its money: the store is asked until its answer is final, with current windows, loaded counters and time for live holds to end.
import type { HoldRefusal, HoldRequest, RateView } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { HoldAnswer, HoldOperation } from '../ports/store.ts';
import { err, ok, type Result } from '../result.ts';
import { type Batch, StaleEpochError } from './batch.ts';
import { type Charges, createCharges } from './charges.ts';
import type { LedgerDependencies } from './deps.ts';
import type { HoldQueue, QueuedRequest } from './hold-queue.ts';
import { LEASE } from './live-holds.ts';
import type { Loads } from './loads.ts';
import { type RatesAsked, toLimited, toView } from './rates.ts';
import { ASKED_AGAIN, deadlineOf, extend, NOTHING_ASKED, type RequestDeadline } from './request-deadline.ts';
import type { StoreClock } from './store-clock.ts';
import type { StoreLiveness } from './store-liveness.ts';

/** One request on its way to a hold. Once `over` is set, because the request deadline has passed, the store is not asked for it again. */
export interface Attempt {
  readonly id: string;
  readonly request: HoldRequest;
  /** Undefined where nothing is limited. */
  readonly rates: RatesAsked | undefined;
  readonly requestDeadline: RequestDeadline;
  over: boolean;
  /** The last question to the store. */
  asked: Asked | undefined;
  /** Set while the store's last answer was `busy`. */
  busy: Busy | undefined;
}

export interface Asked {
  readonly charges: Charges;
  readonly operation: HoldOperation;
  readonly answer: Promise<HoldAnswer>;
}

export interface Busy {
  /** The request waits for live holds until then. */
  readonly until: Millis;
  readonly refusal: HoldRefusal;
}

export interface Taken {
  readonly amount: Nano;
  readonly operation: HoldOperation;
  /** The store's clock when the hold was taken. */
  readonly at: Millis;
  readonly rates: RateView | undefined;
  /** Index of the model entry whose rate was taken. */
  readonly entry: number | undefined;
}

export interface AcquireDependencies extends Pick<LedgerDependencies, 'clock' | 'timer'> {
  readonly batch: Batch;
  readonly loads: Loads;
  readonly storeClock: StoreClock;
  readonly queue: HoldQueue;
  readonly liveness: StoreLiveness;
}

/** A request waits this long for live holds. */
const BUSY: Millis = 1000;
/** A request waits this long for requests in flight that a rate counts: they may end in another process. */
const IN_FLIGHT: Millis = 100;
/** A load waits this long before the store is asked again: another process may have loaded the counter, since PostgreSQL lets in one at a time. */
const LOADED_MEANWHILE: Millis = 250;
/** Most settlements and releases reach the store within this time. */
const ON_ITS_WAY: Millis = 20;

export interface Acquire {
  /** Asks the store for the first time. The answer rejects when the store does not reply. */
  ask(attempt: Attempt): Asked;
  /** The hold of a `held` answer. */
  taken(attempt: Attempt, asked: Asked, answer: HeldAnswer): Taken;
  /** Any other answer may change: the store is asked again until the answer is final. Throws when store or database do not reply. */
  acquireWithRetry(attempt: Attempt, asked: Asked): Promise<Result<Taken, HoldRefusal>>;
}

/**
 * How often the request in front is woken after a refusal. `busy` frees nothing, so no request is woken. `exceeded` refuses most of the
 * others too, so each of them wakes two more.
 */
const NEXT: Readonly<Record<HoldRefusal['reason'], number>> = { busy: 0, limited: 1, exceeded: 2, unavailable: 1 };

type HeldAnswer = Extract<HoldAnswer, { outcome: 'held' }>;

export function createAcquire(deps: AcquireDependencies): Acquire {
  const { batch, loads, clock, storeClock, queue, liveness } = deps;
  const chargesOf = createCharges();

  const ask = (attempt: Attempt): Asked => {
    const charges = chargesOf(attempt.request.scopes, storeClock.now());
    const operation = toOperation(attempt, charges, deps);
    attempt.asked = { charges, operation, answer: batch.hold(operation) };
    return attempt.asked;
  };

  const taken = ({ rates: limits }: Attempt, { charges, operation }: Asked, { amount, rates }: HeldAnswer): Taken => {
    const view = limits === undefined || rates === undefined ? undefined : toView(limits, rates);
    return { amount, operation, at: instantIn(charges, deps), rates: view, entry: rates?.entry };
  };

  const retry = async (attempt: Attempt, first: Asked, queued: QueuedRequest): Promise<Result<Taken, HoldRefusal>> => {
    const { rates, requestDeadline } = attempt;
    let busyUntil: Millis | undefined;
    let limitedUntil: Millis | undefined;
    let isLoading = false;
    for (let asked = first; ; asked = ask(attempt)) {
      const { charges, operation } = asked;
      const answer = await (requestDeadline.isShared ? liveness.expect(asked.answer) : asked.answer);
      requestDeadline.askedAt = NOTHING_ASKED;
      // A late answer says nothing new about live holds.
      if (answer.outcome !== 'late') {
        attempt.busy = undefined;
        requestDeadline.isShared = false;
      }
      if (answer.outcome === 'held') {
        extend(requestDeadline, clock.now());
        return ok(taken(attempt, asked, answer));
      }
      const reported = ratesIn(rates, answer);
      if (answer.outcome === 'exceeded') return err({ ...exceeded(answer, charges), ...reported });
      if (answer.outcome === 'limited') {
        const now = clock.now();
        limitedUntil ??= now + IN_FLIGHT;
        const scope = isInFlight(answer) ? rates?.scopes[answer.limit] : undefined;
        if (scope === undefined || now >= limitedUntil) return err(limited(answer, rates));
        const left = limitedUntil - now;
        await queue.wait(queued, scope.scopeId, left === IN_FLIGHT ? ON_ITS_WAY : left);
      }
      if (answer.outcome === 'absent') {
        if (!isLoading) extend(requestDeadline, clock.now());
        const absent = operation.counters.filter((_, index) => answer.counters.includes(index));
        isLoading = !(await isOver(loads.load(absent), deps));
      } else isLoading = false;
      if (answer.outcome === 'busy') {
        const scope = charges.limited[answer.counter];
        if (scope === undefined) throw new Error('the store refused for an unknown counter');
        const now = clock.now();
        busyUntil ??= Math.min(now + BUSY, requestDeadline.latest - ASKED_AGAIN);
        const refusal = { reason: 'busy', scope, ...reported } as const;
        if (now >= busyUntil) return err(refusal);
        attempt.busy = { until: busyUntil, refusal };
        requestDeadline.isShared = true;
        // Only the request in front is woken earlier; every other one asks once more when its second is over.
        await queue.wait(queued, scope.scopeId, busyUntil - now);
        extend(requestDeadline, liveness.unresponsiveSince() ?? clock.now(), ASKED_AGAIN);
      } else if (!isLoading) {
        // The store is asked again with another window, a loaded counter, or a better reading of its clock.
        extend(requestDeadline, clock.now());
      }
      if (attempt.over) throw new Error('the request deadline has passed');
    }
  };

  return {
    ask,
    taken,
    async acquireWithRetry(attempt, asked) {
      const queued = queue.enter(attempt.request.amount);
      let next = 1;
      try {
        const result = await retry(attempt, asked, queued);
        if (!result.ok) next = NEXT[result.failure.reason];
        return result;
      } finally {
        queue.leave(queued, next);
      }
    },
  };
}

/** Whether the load ended in time; if not, the store is asked again all the same. So is a store that was rebuilt meanwhile. */
function isOver(loading: Promise<unknown>, { timer }: AcquireDependencies): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = timer(LOADED_MEANWHILE, () => resolve(false));
    const end = (error?: unknown): void => {
      cancel();
      if (error === undefined || error instanceof StaleEpochError) resolve(true);
      else reject(error);
    };
    loading.then(() => end(), end);
  });
}

/** The store's time, or the nearest instant that lies in all windows of the charges. */
function instantIn({ all }: Charges, { storeClock }: AcquireDependencies): Millis {
  let first = Number.NEGATIVE_INFINITY;
  let last = Number.POSITIVE_INFINITY;
  for (const { window } of all) {
    first = Math.max(first, window.start);
    last = Math.min(last, window.end - 1);
  }
  return Math.min(Math.max(storeClock.now(), first), last);
}

function toOperation(
  { id, request, rates, requestDeadline }: Attempt,
  charges: Charges,
  deps: AcquireDependencies,
): HoldOperation {
  const { amount, minAmount, model, identifier } = request;
  const { counters, all } = charges;
  const note = { charges: all, model, identifier };
  const now = deps.clock.now();
  requestDeadline.askedAt = now;
  const deadline = deps.storeClock.now() + deadlineOf(requestDeadline, now) - now;
  const operation = { id, amount, minAmount, counters, note, deadline, lease: LEASE };
  return rates === undefined ? operation : { ...operation, rates: rates.request };
}

function ratesIn(asked: RatesAsked | undefined, answer: HoldAnswer): { readonly rates?: RateView } {
  const reply = 'rates' in answer ? answer.rates : undefined;
  return asked === undefined || reply === undefined ? {} : { rates: toView(asked, reply) };
}

/** A rate that frees within a second: requests in flight fill it, or its window is about to move on. */
const isInFlight = ({ rate, retryIn }: Extract<HoldAnswer, { outcome: 'limited' }>): boolean =>
  rate !== 'requests' && retryIn <= 1000;

function limited(answer: Extract<HoldAnswer, { outcome: 'limited' }>, asked: RatesAsked | undefined): HoldRefusal {
  if (asked === undefined) throw new Error('the store refused for an unknown limit');
  return toLimited(asked, answer, answer.rates);
}

function exceeded(
  answer: Extract<HoldAnswer, { outcome: 'exceeded' }>,
  charges: Charges,
): Extract<HoldRefusal, { reason: 'exceeded' }> {
  const scope = charges.limited[answer.counter];
  const counter = charges.counters[answer.counter];
  if (scope === undefined || counter === undefined) throw new Error('the store refused for an unknown counter');
  return { reason: 'exceeded', scope, spent: answer.spent, limit: counter.limit, resetAt: counter.window.end };
}
