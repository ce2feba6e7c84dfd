// Is there money for this request? Asks the store until it knows: with the right windows, loaded counters, and patience for holds that end.
import type { Clock } from '../ports/clock.ts';
import type { HoldRefusal, HoldRequest } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { HoldAnswer, HoldOperation } from '../ports/store.ts';
import { err, ok, type Result } from '../result.ts';
import type { Batch } from './batch.ts';
import { type Charges, createCharges } from './charges.ts';
import type { Loads } from './loads.ts';
import type { StoreClock } from './store-clock.ts';

/** One request's way to its hold. Whoever loses patience sets `over`: then no further call is made for it. */
export interface Attempt {
  readonly id: string;
  readonly request: HoldRequest;
  /** On our clock. */
  readonly patientUntil: Millis;
  over: boolean;
  /** What the store was last asked. */
  asked: HoldOperation | undefined;
}

export interface Taken {
  readonly amount: Nano;
  readonly operation: HoldOperation;
}

export interface TakeDependencies {
  readonly batch: Batch;
  readonly loads: Loads;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly timer: Timer;
}

/** The store says that live holds stand in the way for so long at most. */
const BUSY: Millis = 1000;
/** Another process may have freed something without our knowing. */
const LOOK_AGAIN: Millis = 100;
/** 60 s, renewed every 15 s (DESIGN 10). */
export const LEASE: Millis = 60_000;

export interface Take {
  /** Throws when store or database keep silent. */
  take(attempt: Attempt): Promise<Result<Taken, HoldRefusal>>;
  /** Holds ended: those who wait try again, first come first. */
  freed(): void;
}

export function createTake(deps: TakeDependencies): Take {
  const chargesOf = createCharges();
  const waiters = new Set<() => void>();

  const freedOr = (millis: Millis): Promise<void> =>
    new Promise((resolve) => {
      const go = (): void => {
        waiters.delete(go);
        cancel();
        resolve();
      };
      const cancel = deps.timer(millis, go);
      waiters.add(go);
    });

  return {
    freed() {
      for (const go of [...waiters]) go();
    },
    async take(attempt) {
      let busyUntil: Millis | undefined;
      while (!attempt.over) {
        const charges = chargesOf(attempt.request.scopes, deps.storeClock.now());
        const operation = toOperation(attempt, charges, deps);
        attempt.asked = operation;
        const answer = await deps.batch.hold(operation);
        if (answer.outcome === 'held') return ok({ amount: answer.amount, operation });
        if (answer.outcome === 'exceeded') return err(exceeded(answer, charges));
        if (answer.outcome === 'absent') {
          await deps.loads.load(operation.counters.filter((_, index) => answer.counters.includes(index)));
        }
        if (answer.outcome !== 'busy') continue;
        const now = deps.clock.now();
        busyUntil ??= now + BUSY;
        const scope = charges.limited[answer.counter];
        if (now >= busyUntil && scope !== undefined) return err({ reason: 'busy', scope });
        await freedOr(Math.min(LOOK_AGAIN, Math.max(0, busyUntil - now)));
      }
      throw new Error('patience ended');
    },
  };
}

function toOperation(attempt: Attempt, charges: Charges, deps: TakeDependencies): HoldOperation {
  const { amount, least, model, identifier } = attempt.request;
  return {
    id: attempt.id,
    amount,
    least,
    counters: charges.counters,
    note: { charges: charges.all, model, identifier },
    deadline: deps.storeClock.now() + Math.max(0, attempt.patientUntil - deps.clock.now()),
    lease: LEASE,
  };
}

function exceeded(answer: Extract<HoldAnswer, { outcome: 'exceeded' }>, charges: Charges): HoldRefusal {
  const scope = charges.limited[answer.counter];
  const counter = charges.counters[answer.counter];
  if (scope === undefined || counter === undefined) throw new Error('the store refused for a counter nobody named');
  return { reason: 'exceeded', scope, spent: answer.spent, limit: counter.limit, resetAt: counter.window.end };
}
