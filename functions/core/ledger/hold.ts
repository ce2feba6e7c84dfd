// A hold: the money, or the reason for a refusal, within a second. Store first, then the outbox, then the caller may spend (LEDGER 4, 6, 9).
import type { Hold, HoldRefusal, HoldRequest } from '../ports/ledger.ts';
import { reasonAndCausesOf } from '../reason.ts';
import { err, ok, type Result } from '../result.ts';
import type { Acquire, Attempt, Busy, Taken } from './acquire.ts';
import type { LedgerDependencies } from './deps.ts';
import type { LiveHolds } from './live-holds.ts';
import type { Membership } from './membership.ts';
import { ratesOf } from './rates.ts';
import { openRequestDeadline, type Watch } from './request-deadline.ts';
import type { Settlements } from './settlements.ts';
import { TimeoutError } from './timeout.ts';

export interface HoldDependencies extends Pick<LedgerDependencies, 'outbox' | 'clock' | 'ids' | 'metrics'> {
  readonly liveHolds: LiveHolds;
  readonly acquire: Acquire;
  readonly settlements: Settlements;
  readonly membership: Membership;
  readonly watch: Watch;
}

interface WrittenAttempt extends Attempt {
  /** Whether the outbox may contain the hold. */
  written: boolean;
  readonly resolve: (result: Result<Hold, HoldRefusal>) => void;
}

type Outcome = 'held' | HoldRefusal['reason'];

/** Labels that come in the same object cost nothing (ports/clock.ts). */
const OUTCOMES: Readonly<Record<Outcome, { readonly outcome: Outcome }>> = {
  held: { outcome: 'held' },
  exceeded: { outcome: 'exceeded' },
  busy: { outcome: 'busy' },
  limited: { outcome: 'limited' },
  unavailable: { outcome: 'unavailable' },
};

/** Always resolves: an error becomes a refusal. */
export function createHold(deps: HoldDependencies): (request: HoldRequest) => Promise<Result<Hold, HoldRefusal>> {
  return (request) =>
    new Promise((resolve) => {
      const attempt: WrittenAttempt = {
        id: request.id ?? deps.ids.next(),
        request,
        rates: ratesOf(request),
        requestDeadline: openRequestDeadline(deps, request.waited),
        resolve,
        over: false,
        asked: undefined,
        busy: undefined,
        written: false,
      };
      deps.watch.begin(attempt.requestDeadline, (timeout) => giveUp(deps, attempt, timeout));
      void holdOnce(deps, attempt);
    });
}

async function holdOnce(deps: HoldDependencies, attempt: WrittenAttempt): Promise<void> {
  try {
    const asked = deps.acquire.ask(attempt);
    const answer = await asked.answer;
    const isHeld = answer.outcome === 'held';
    const result = isHeld
      ? ok(deps.acquire.taken(attempt, asked, answer))
      : await deps.acquire.acquireWithRetry(attempt, asked);
    if (attempt.over) return;
    if (!result.ok) return finish(deps, attempt, result);
    await write(deps, attempt, result.value);
    if (!attempt.over) finish(deps, attempt, ok(toHold(attempt.id, result.value)));
  } catch (error) {
    giveUp(deps, attempt, error);
  }
}

function finish(deps: HoldDependencies, attempt: WrittenAttempt, result: Result<Hold, HoldRefusal>): void {
  deps.watch.end(attempt.requestDeadline);
  deps.metrics.add('gateway_operator_ledger_holds_total', OUTCOMES[result.ok ? 'held' : result.failure.reason]);
  attempt.resolve(result);
}

function giveUp(deps: HoldDependencies, attempt: WrittenAttempt, error: unknown): void {
  if (attempt.over) return;
  attempt.over = true;
  // The hold may have been taken: its release is repeated until the store acknowledges it.
  if (attempt.asked !== undefined) deps.settlements.releaseUnknown(attempt.asked.operation, attempt.written);
  const refusal = isHeld(deps, attempt, error) ? attempt.busy.refusal : unavailable(error);
  finish(deps, attempt, err(refusal));
}

function write(deps: HoldDependencies, attempt: WrittenAttempt, taken: Taken): Promise<void> {
  const { id, request } = attempt;
  const { amount, operation, at, entry } = taken;
  const { note, counters } = operation;
  // A live hold is registered again when the store forgets it.
  deps.liveHolds.set(id, {
    id,
    amount,
    note,
    counters,
    since: deps.clock.now(),
    at,
    tokens: operation.rates?.tokens,
    entry: request.entries?.[entry ?? 0],
    known: undefined,
    lost: undefined,
    written: undefined,
    isSettledInStore: false,
    isReRegistered: false,
    isExpiredBefore: false,
    outcome: undefined,
    ending: undefined,
  });
  attempt.written = true;
  const { charges, model, identifier } = note;
  return deps.outbox.append({ type: 'hold', id, amount, charges, model, identifier });
}

function toHold(id: string, { amount, operation, rates, entry }: Taken): Hold {
  const hold = { id, amount, charges: operation.note.charges };
  if (rates === undefined && entry === undefined) return hold;
  return { ...hold, ...(rates === undefined ? {} : { rates }), ...(entry === undefined ? {} : { entry }) };
}

/** The request waited for live holds for its full second, and only the answer to its last question is missing. */
const isHeld = (
  { clock, membership }: HoldDependencies,
  attempt: WrittenAttempt,
  error: unknown,
): attempt is WrittenAttempt & { readonly busy: Busy } =>
  error instanceof TimeoutError &&
  attempt.busy !== undefined &&
  clock.now() >= attempt.busy.until &&
  membership.isIn(attempt.requestDeadline.epoch);

const unavailable = (error: unknown): HoldRefusal => ({ reason: 'unavailable', why: reasonAndCausesOf(error) });
