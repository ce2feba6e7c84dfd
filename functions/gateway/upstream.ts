// Attempts: targets are called in turn until one begins to answer; nothing has reached the client before that.
import type { Failure } from '#core/failure.ts';
import { MAX_REQUEST } from '#core/ledger/lease.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { HoldRefusal, Settlement } from '#core/ports/ledger.ts';
import { UpstreamBroke, type UpstreamRequest } from '#core/ports/serving.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type AttemptFailure, BROKEN, TIMED_OUT, UNREACHABLE, UNSENT, unsupported } from './attempt-failure.ts';
import type { Cooldowns } from './cooldown.ts';
import { type Deadline, openDeadline } from './deadline.ts';
import type { GatewayDeps } from './deps.ts';
import { settlementOfUnheard, withLost } from './meter.ts';
import type { RequestLog } from './request-log.ts';
import { outputLimit, type Reservation } from './reserve.ts';
import type { Target, Targets } from './targets.ts';
import { openReply, type PlainReply, type StreamReply } from './upstream-reply.ts';
import type { Chat } from './wire/chat.ts';
import type { ReplyEnd } from './wire/stream-end.ts';

const made: unique symbol = Symbol('Exchange');

/** An upstream that answers. Only `callUpstream` makes one. */
export type Exchange = PlainExchange | StreamExchange;

interface Answered {
  readonly [made]: true;
  readonly reservation: Reservation;
  readonly target: Target;
  /** The cost of earlier attempts that were taken and came to nothing. */
  readonly lost: Settlement | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PlainExchange extends Answered, PlainReply {}

export interface StreamExchange extends Answered, StreamReply {
  readonly deadline: Deadline;
  /** Stops what the upstream is doing. */
  stop(): void;
  /** To be told once how the stream ended. */
  over(end: ReplyEnd): void;
}

/** Why there is no exchange. `lost`: what the attempts cost that were taken all the same. */
export interface NoExchange {
  readonly failure: Failure;
  readonly lost: Settlement | undefined;
  /** Any provider was called at all. */
  readonly called: boolean;
}

export type CallUpstream = (
  targets: Targets,
  client: HttpExchange,
  log: RequestLog,
) => Promise<Result<Exchange, NoExchange>>;

/** Before an upstream is called again; twice as long each time. */
const PAUSE = 100;
const FULL = 'full: its requests or tokens per minute are used up';

/** The attempts of a request so far. */
interface Attempts {
  left: ReadonlyArray<Target>;
  /** Failures of each. */
  readonly failures: Map<Target, number>;
  last: Omit<NoExchange, 'lost'> | undefined;
  lost: Settlement | undefined;
  /** Why an entry that was passed over had no room: of the one that has room first. */
  full: HoldRefusal | undefined;
}

/** One attempt. `leave`: the entry has nothing to do with it any more. */
interface Attempt {
  readonly reservation: Reservation;
  readonly target: Target;
  readonly lost: Settlement | undefined;
  readonly deadline: Deadline;
  readonly isFirst: boolean;
  leave(): void;
}

export function createCallUpstream(
  deps: Pick<GatewayDeps, 'upstream' | 'timer' | 'clock' | 'ledger'>,
  cooldowns: Cooldowns,
): CallUpstream {
  return async function callUpstream({ reservation, order }, client, log) {
    const { chat, routing } = reservation.grant;
    // A client that leaves ends a stream; a plain request is read to its end and charged in full.
    const leaving = chat.stream ? client : undefined;
    const deadline = openDeadline(deps.timer, Math.min(routing.timeouts.total, MAX_REQUEST), leaving);
    const attempts: Attempts = { left: order, failures: new Map(), last: undefined, lost: undefined, full: undefined };
    for (let tries = 0; tries <= routing.retries; ) {
      const next = nextOf(attempts);
      if (next === undefined) break;
      const failed = attempts.failures.get(next) ?? 0;
      if (failed > 0) await deadline.sleep(PAUSE * 2 ** (failed - 1));
      if (client.hasLeft() || deadline.ended !== undefined) break;
      // From here on the entry counts as busy with this request, for whichever request chooses its targets meanwhile.
      const leave = cooldowns.enter(next.entry.identifier);
      const room = await deps.ledger.move(reservation.hold, next.rate);
      if (!room.ok) {
        leave();
        passOver(attempts, next, room.failure, log);
        continue;
      }
      tries += 1;
      reservation.isCalled = true;
      const { lost } = attempts;
      const target = lost === undefined ? next : { ...next, limit: outputLimit(reservation, next, lost.cost) };
      const attempt = { reservation, target, lost, deadline, isFirst: failed === 0, leave };
      const result = await exchange(attempt);
      report(result, attempt);
      log.attempt(target.entry.identifier, result.ok ? undefined : result.failure);
      if (result.ok) return result;
      note(attempts, next, { ...attempt, failure: result.failure });
      if (deadline.ended !== undefined || result.failure.again === 'never') break;
    }
    deadline.close();
    const { lost } = attempts;
    return err({ ...outcome(attempts, chat.model, client), lost });
  };

  /** The target that this request has tried least; where all cool down, the one whose cooldown ends first. */
  function nextOf({ left, failures }: Attempts): Target | undefined {
    const ready = left.filter((target) => cooldowns.of(target) === undefined);
    if (ready.length === 0) return cooldowns.soonest(left);
    const tried = (target: Target) => failures.get(target) ?? 0;
    return ready.reduce((least, target) => (tried(target) < tried(least) ? target : least));
  }

  function report(
    result: Result<Exchange, AttemptFailure>,
    { reservation, target, deadline, ...attempt }: Attempt,
  ): void {
    if (!result.ok || result.value.type === 'plain') attempt.leave();
    if (result.ok) cooldowns.succeeded(target.entry.identifier);
    // An attempt whose client has left before the answer has not failed.
    if (result.ok || result.failure.blameless === true || deadline.ended === 'left') return;
    const { retryAfter, failure } = result.failure;
    const isRateLimited = failure.code === 'upstream_rate_limited';
    const { cooldown } = reservation.grant.routing;
    cooldowns.failed(target, { ...cooldown, retryAfter, isRateLimited, isFirst: attempt.isFirst });
  }

  async function exchange(attempt: Attempt): Promise<Result<Exchange, AttemptFailure>> {
    const { reservation, target, lost, deadline } = attempt;
    const { chat, routing } = reservation.grant;
    const request = target.dialect.toRequest(chat, target);
    if (!request.ok) return err(unsupported(request.failure));
    const controller = new AbortController();
    const { signal } = controller;
    const stop = () => controller.abort();
    const { timeout } = target.entry;
    const cancel = timeout === undefined ? () => {} : deps.timer(timeout, stop);
    deadline.onEnd(stop);
    let isOpen = false;
    try {
      const response = await deps.upstream({ ...request.value, timeouts: timeoutsOf(chat, routing.timeouts), signal });
      const opened = await openReply(response, { endpoint: target, stream: chat.stream, clock: deps.clock });
      if (!opened.ok) return opened;
      isOpen = true;
      const answered: Answered = { [made]: true, reservation, target, lost, headers: response.headers };
      if (opened.value.type === 'stream') {
        return ok({ ...answered, ...opened.value, deadline, stop, over: (end) => over(end, attempt) });
      }
      deadline.close();
      return ok({ ...answered, ...opened.value });
    } catch (error) {
      return err(toFailure(error, signal));
    } finally {
      cancel();
      // The connection goes, whatever went wrong: nothing reads on.
      if (!isOpen) stop();
    }
  }

  function over(end: ReplyEnd, { reservation, target, leave }: Attempt): void {
    leave();
    if (end !== 'broken') return;
    const { cooldown } = reservation.grant.routing;
    cooldowns.failed(target, { ...cooldown, isFirst: true, retryAfter: undefined, isRateLimited: false });
  }
}

/** An entry that is full is passed over, and is no try. */
function passOver(attempts: Attempts, target: Target, full: HoldRefusal, log: RequestLog): void {
  const isSooner = (other: HoldRefusal | undefined) =>
    other?.reason !== 'limited' || (full.reason === 'limited' && full.retryIn < other.retryIn);
  if (isSooner(attempts.full)) attempts.full = full;
  log.skipped(target.entry.identifier, full.reason === 'limited' ? FULL : 'the store cannot say if it is full');
  attempts.left = attempts.left.filter((other) => other !== target);
}

function note(
  attempts: Attempts,
  next: Target,
  { reservation, target, failure: failed }: Attempt & { readonly failure: AttemptFailure },
): void {
  const { failure, unsent, outputBytes, again } = failed;
  attempts.last = { failure, called: attempts.last?.called === true || unsent !== true };
  attempts.failures.set(next, (attempts.failures.get(next) ?? 0) + 1);
  if (again === 'elsewhere') attempts.left = attempts.left.filter((other) => other !== next);
  if (outputBytes === undefined) return;
  attempts.lost = withLost(reservation, settlementOfUnheard(reservation, target, outputBytes), attempts.lost);
  // An attempt that was taken is paid for: only targets that the rest of the hold covers whole may follow (LEDGER 10).
  const { cost } = attempts.lost;
  if (cost > 0n) attempts.left = attempts.left.filter(({ maxCost }) => cost + maxCost <= reservation.hold.amount);
}

function outcome({ last, full }: Attempts, model: string, client: HttpExchange): Omit<NoExchange, 'lost'> {
  const end = last ?? { failure: uncalled(full, model), called: false };
  return client.hasLeft() ? { ...end, failure: { code: 'client_left' } } : end;
}

/** No provider was called. */
function uncalled(full: HoldRefusal | undefined, model: string): Failure {
  if (full?.reason === 'unavailable') return { code: 'ledger_unavailable', why: full.why };
  if (full?.reason !== 'limited') return { code: 'upstream_timeout' };
  const { rate, limit, retryIn } = full;
  return { code: 'rate_limit_exceeded', model, rate, limit, retryIn };
}

/** A plain reply comes in one piece: its first byte may be its last. */
function timeoutsOf(
  { stream }: Chat,
  { connect, firstByte, idle, total }: Reservation['grant']['routing']['timeouts'],
): UpstreamRequest['timeouts'] {
  return stream ? { connect, firstByte, idle } : { connect, firstByte: total, idle: total };
}

function toFailure(error: unknown, signal: AbortSignal): AttemptFailure {
  const how = error instanceof UpstreamBroke ? error.how : undefined;
  if (how === 'unsent') return UNSENT;
  if (signal.aborted || how === 'timeout') return TIMED_OUT;
  return how === 'refused' ? UNREACHABLE : BROKEN;
}
