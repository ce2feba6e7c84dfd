// Take the money or say why not, within a second: store first, then the outbox, then the caller may spend (LEDGER 4, 6, 9).
import type { Clock, Ids, Metrics } from '../ports/clock.ts';
import type { Hold, HoldRefusal, HoldRequest } from '../ports/ledger.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import { err, ok, type Result } from '../result.ts';
import type { Ending } from './ending.ts';
import type { Lives } from './lives.ts';
import type { Membership } from './membership.ts';
import { openPatience, patiently } from './patience.ts';
import type { Attempt, Busy, Take } from './take.ts';
import { Silence } from './within.ts';

export interface HoldDependencies {
  readonly lives: Lives;
  readonly take: Take;
  readonly ending: Ending;
  readonly membership: Membership;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly timer: Timer;
  readonly metrics: Metrics;
}

/** `written`: the outbox may have it. */
type WrittenAttempt = Attempt & { written: boolean };

const UNTRIED = { over: false, asked: undefined, busy: undefined, written: false } as const;

type Outcome = 'held' | HoldRefusal['reason'];

/** Labels that come in the same object cost nothing (ports/clock.ts). */
const OUTCOMES: Readonly<Record<Outcome, { readonly outcome: Outcome }>> = {
  held: { outcome: 'held' },
  exceeded: { outcome: 'exceeded' },
  busy: { outcome: 'busy' },
  limited: { outcome: 'limited' },
  unavailable: { outcome: 'unavailable' },
};

export function createHold(deps: HoldDependencies): (request: HoldRequest) => Promise<Result<Hold, HoldRefusal>> {
  return async (request) => {
    const patience = openPatience(deps, request.waited);
    const attempt: WrittenAttempt = { ...UNTRIED, id: deps.ids.next(), request, patience };
    let result: Result<Hold, HoldRefusal>;
    try {
      result = await patiently(deps, patience, holdOnce(deps, attempt));
    } catch (error) {
      attempt.over = true;
      // It may have been taken: given back until the store says that it heard.
      if (attempt.asked !== undefined) deps.ending.abandon(attempt.asked, attempt.written);
      result = err(
        isHeld(deps, attempt, error) ? attempt.busy.refusal : { reason: 'unavailable', why: reasonOf(error) },
      );
    }
    deps.metrics.add('gateway_operator_ledger_holds_total', OUTCOMES[result.ok ? 'held' : result.failure.reason]);
    return result;
  };
}

async function holdOnce(deps: HoldDependencies, attempt: WrittenAttempt): Promise<Result<Hold, HoldRefusal>> {
  const taken = await deps.take(attempt);
  if (!taken.ok) return taken;
  if (attempt.over) throw new Error('patience ended');
  const { id } = attempt;
  const { amount, operation, at, rates, entry } = taken.value;
  const { note, counters } = operation;
  const since = deps.clock.now();
  // From here on: should the store forget it, it is registered anew.
  deps.lives.set(id, {
    id,
    amount,
    note,
    counters,
    since,
    at,
    tokens: operation.rates?.tokens,
    entry: attempt.request.entries?.[entry ?? 0],
    known: undefined,
    written: undefined,
    isCounted: false,
    isMoved: false,
    isEnded: false,
    outcome: undefined,
    ending: undefined,
  });
  attempt.written = true;
  const { charges, model, identifier } = note;
  await deps.outbox.append({ type: 'hold', id, amount, charges, model, identifier });
  if (attempt.over) throw new Error('patience ended');
  const told = { ...(rates === undefined ? {} : { rates }), ...(entry === undefined ? {} : { entry }) };
  return ok({ id, amount, charges: note.charges, ...told });
}

/** It waited for live holds as long as anybody does, and only the answer to its last question is missing. */
const isHeld = (
  { clock, membership }: HoldDependencies,
  attempt: WrittenAttempt,
  error: unknown,
): attempt is WrittenAttempt & { readonly busy: Busy } =>
  error instanceof Silence &&
  attempt.busy !== undefined &&
  clock.now() >= attempt.busy.until &&
  membership.isIn(attempt.patience.epoch);

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reasonOf(error.cause)}`;
}
