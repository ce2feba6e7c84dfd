// What does the upstream answer? Targets are tried in turn until one begins to answer; nothing has reached the client before that.
import type { Failure } from '#core/failure.ts';
import { MAX_REQUEST } from '#core/ledger/lease.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { HoldRefusal, Settlement } from '#core/ports/ledger.ts';
import { UpstreamBroke, type UpstreamRequest } from '#core/ports/serving.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type AttemptFailure, BROKEN, TIMED_OUT, UNREACHABLE, UNSENT, unspeakable } from './attempt-failure.ts';
import { type Deadline, openDeadline } from './deadline.ts';
import type { GatewayDeps } from './deps.ts';
import { limitOf } from './entry-limits.ts';
import { type Accepted, type Exchange, openExchange } from './exchange.ts';
import type { Health } from './health.ts';
import { settlementOfUnheard, withLost } from './meter.ts';
import type { Line } from './record.ts';
import { covers, outputLimit, type Reservation } from './reserve.ts';
import { FULL, type Target, type Targets } from './route.ts';
import type { Chat } from './wire/chat.ts';
import type { ReplyEnd } from './wire/stream-end.ts';

/** Why there is no exchange. `lost`: what the attempts cost that were taken all the same. */
export interface NoExchange {
  readonly failure: Failure;
  readonly lost: Settlement | undefined;
  /** Anybody was called at all. */
  readonly called: boolean;
}

export type CallUpstream = (
  targets: Targets,
  client: HttpExchange,
  line: Line,
) => Promise<Result<Exchange, NoExchange>>;

/** Before an upstream is tried again that was tried before; twice as long each time. */
const PAUSE = 100;

export function createCallUpstream(
  deps: Pick<GatewayDeps, 'upstream' | 'timer' | 'clock' | 'ledger'>,
  health: Health,
): CallUpstream {
  return async function callUpstream(targets, client, line) {
    const { chat, routing } = targets.reservation.grant;
    // A client that leaves ends a stream; a plain request is read to its end and charged in full.
    const leaving = chat.stream ? client : undefined;
    const deadline = openDeadline(deps.timer, Math.min(routing.timeouts.total, MAX_REQUEST), leaving);
    let left = [targets.first, ...targets.others];
    /** How often each has failed. */
    const failures = new Map<Target, number>();
    let last: Omit<NoExchange, 'lost'> | undefined;
    let lost: Settlement | undefined;
    let full: HoldRefusal | undefined;
    let tries = 0;
    while (tries <= routing.retries) {
      const next = nextOf(left, failures);
      if (next === undefined) break;
      const failed = failures.get(next) ?? 0;
      if (failed > 0) await deadline.sleep(PAUSE * 2 ** (failed - 1));
      if (client.hasLeft() || deadline.ended !== undefined) break;
      // Only the first has its room since the hold, and for one attempt; one that is full is passed over, and is no try.
      const moved = tries === 0 && next === targets.first ? ok(undefined) : await move(targets.reservation, next);
      if (!moved.ok) {
        full = moved.failure;
        line.skipped(next.entry.identifier, full.reason === 'limited' ? FULL : 'the store cannot say if it is full');
        left.splice(left.indexOf(next), 1);
        continue;
      }
      tries += 1;
      const target = lost === undefined ? next : { ...next, limit: outputLimit(targets.reservation, next, lost.cost) };
      targets.reservation.isCalled = true;
      const trying = { ...enter(targets.reservation, target, deadline), lost };
      const result = await exchange(trying);
      judge(result, { ...trying, isFirst: failed === 0 });
      line.attempt(target, result.ok ? undefined : result.failure);
      if (result.ok) return result;
      const { failure, unsent, said } = result.failure;
      last = { failure, called: last?.called === true || unsent !== true };
      if (said !== undefined) {
        const unheard = settlementOfUnheard(targets.reservation, target, said);
        lost = withLost(targets.reservation, unheard, lost);
      }
      if (deadline.ended !== undefined || result.failure.again === 'never') break;
      failures.set(next, failed + 1);
      if (result.failure.again === 'elsewhere') left.splice(left.indexOf(next), 1);
      // What was taken is paid for: only what the rest of the hold covers whole may follow it (LEDGER 10).
      const spent = lost?.cost ?? 0n;
      if (spent > 0n) left = left.filter((other) => covers(targets.reservation, other, spent));
    }
    deadline.close();
    return err({ ...outcome(last, { full, targets, client }), lost });
  };

  function move({ hold }: Reservation, { entry }: Target): Promise<Result<void, HoldRefusal>> {
    return deps.ledger.move(hold, limitOf(entry));
  }

  /** The one that this request has tried least; where all cool down, the one whose cooldown ends first. */
  function nextOf(left: ReadonlyArray<Target>, failures: ReadonlyMap<Target, number>): Target | undefined {
    const up = left.filter((target) => health.resting(target) === undefined);
    if (up.length === 0) return health.soonest(left);
    const tried = (target: Target) => failures.get(target) ?? 0;
    return up.reduce((least, target) => (tried(target) < tried(least) ? target : least));
  }

  function enter(reservation: Reservation, target: Target, deadline: Deadline): Omit<Trying, 'lost'> {
    const leave = health.enter(target.entry.identifier);
    const over = (end: ReplyEnd) => {
      leave();
      if (end === 'broken')
        health.failed(target, UNREACHABLE, { ...reservation.grant.routing.cooldown, isFirst: true });
    };
    return { reservation, target, deadline, leave, over };
  }

  function judge(
    result: Result<Exchange, AttemptFailure>,
    { reservation, target, deadline, leave, isFirst }: Trying & { readonly isFirst: boolean },
  ): void {
    if (!result.ok || result.value.type === 'plain') leave();
    if (result.ok) health.succeeded(target.entry.identifier);
    // Whose client has left before the answer has not failed; and what fails again in one request has failed once.
    else if (result.failure.blameless !== true && deadline.ended !== 'left') {
      health.failed(target, result.failure, { ...reservation.grant.routing.cooldown, isFirst });
    }
  }

  async function exchange({
    reservation,
    target,
    lost,
    deadline,
    over,
  }: Trying): Promise<Result<Exchange, AttemptFailure>> {
    const { chat, routing } = reservation.grant;
    const request = target.dialect.toRequest(chat, target);
    if (!request.ok) return err(unspeakable(request.failure));
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    const { timeout } = target.entry;
    const cancel = timeout === undefined ? () => {} : deps.timer(timeout, stop);
    deadline.onEnd(stop);
    let opened: Result<Exchange, AttemptFailure> | undefined;
    try {
      const { url, headers, body } = request.value;
      const { signal } = attempt;
      const response = await deps.upstream({
        url,
        headers,
        body,
        timeouts: timeoutsOf(chat, routing.timeouts),
        signal,
      });
      const { clock } = deps;
      const created = Math.floor(clock.now() / 1000);
      opened = await openExchange({ reservation, target, lost, deadline, stop, over, response, clock, created });
      return opened;
    } catch (error) {
      return err(toFailure(error, attempt.signal));
    } finally {
      cancel();
      // Whatever went wrong, nobody reads on: the connection goes.
      if (opened?.ok !== true) stop();
    }
  }
}

/** An attempt. `leave`: the entry has nothing to do with it any more. */
type Trying = Omit<Accepted, 'response' | 'created' | 'clock' | 'stop'> & { readonly leave: () => void };

/** A plain reply comes in one piece: its first byte may be its last. */
function timeoutsOf({ stream }: Chat, { connect, firstByte, idle, total }: Timeouts): UpstreamRequest['timeouts'] {
  return stream ? { connect, firstByte, idle } : { connect, firstByte: total, idle: total };
}

type Timeouts = Reservation['grant']['routing']['timeouts'];

interface Unanswered {
  /** Why the last entry that was passed over had no room. */
  readonly full: HoldRefusal | undefined;
  readonly targets: Targets;
  readonly client: HttpExchange;
}

function outcome(
  last: Omit<NoExchange, 'lost'> | undefined,
  { full, targets, client }: Unanswered,
): Omit<NoExchange, 'lost'> {
  const end = last ?? { failure: uncalled(full, targets.reservation.grant.chat.model), called: false };
  return client.hasLeft() ? { ...end, failure: { code: 'client_left' } } : end;
}

/** Nobody was called. */
function uncalled(full: HoldRefusal | undefined, model: string): Failure {
  if (full?.reason === 'unavailable') return { code: 'ledger_unavailable', why: full.why };
  if (full?.reason !== 'limited') return { code: 'upstream_timeout' };
  const { rate, limit, retryIn } = full;
  return { code: 'rate_limit_exceeded', model, rate, limit, retryIn };
}

function toFailure(error: unknown, signal: AbortSignal): AttemptFailure {
  const how = error instanceof UpstreamBroke ? error.how : undefined;
  if (how === 'unsent') return UNSENT;
  if (signal.aborted || how === 'timeout') return TIMED_OUT;
  return how === 'refused' ? UNREACHABLE : BROKEN;
}
