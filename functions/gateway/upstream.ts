// Attempts: targets are called in turn until one begins to answer; nothing has reached the client before that.
import type { Failure } from '#core/failure.ts';
import { MAX_REQUEST } from '#core/ledger/ends.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { HoldRefusal } from '#core/ports/ledger.ts';
import { err, ok, type Result } from '#core/result.ts';
import { markOf } from './affinity.ts';
import type { Body } from './body.ts';
import type { Cooldowns } from './cooldown.ts';
import { Deadline } from './deadline.ts';
import type { GatewayDeps } from './deps.ts';
import { settlementOfUnheard } from './meter.ts';
import type { ReplyEnd, RequestLog } from './request-log.ts';
import { outputLimit, type Reservation } from './reserve.ts';
import { toMarkedId } from './stored-responses.ts';
import type { Target, Targets } from './targets.ts';
import { type AttemptFailure, failureOf, openReply, type PlainReply, type StreamReply } from './upstream-reply.ts';
import type { Made } from './wire/codec.ts';

const made: unique symbol = Symbol('Exchange');

/** An upstream that answers. Only `callUpstream` makes one. */
export type Exchange = PlainExchange | StreamExchange;

interface Answered {
  readonly [made]: true;
  readonly reservation: Reservation;
  readonly target: Target;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PlainExchange extends Answered, PlainReply {}

export interface StreamExchange extends Answered, StreamReply {
  readonly deadline: Deadline;
  /** Stops the call of the upstream. */
  stop(): void;
  /** Records how the stream ended. Called once. */
  over(end: ReplyEnd): void;
}

/** The pause before an upstream is called again; twice as long each time. */
const PAUSE = 100;
const UNLIMITED = ok(undefined);
const FULL = 'full: its requests or tokens per minute are used up';

/** The attempts of a request so far. */
interface Attempts {
  left: ReadonlyArray<Target>;
  /** Failures of each target. */
  readonly failures: Map<Target, number>;
  last: Failure | undefined;
  /** The refusal of the passed-over entry that has room first. */
  full: HoldRefusal | undefined;
  /** Ends the count of the latest attempt at its entry, unless it has ended. */
  leave(): void;
}

/** One attempt. `leave`: ends the attempt's count at the entry. */
interface Attempt {
  readonly reservation: Reservation;
  readonly target: Target;
  readonly deadline: Deadline;
  readonly room: Asking['room'];
  leave(): void;
}

/** The client that asks, and room for a plain reply. */
export interface Asking {
  readonly client: HttpExchange;
  readonly log: RequestLog;
  readonly room: Pick<Body, 'accept' | 'close'>;
}

export function createCallUpstream(
  deps: Pick<GatewayDeps, 'upstream' | 'timer' | 'clock' | 'ledger' | 'mac'>,
  cooldowns: Cooldowns,
) {
  return async function callUpstream(
    { reservation, order }: Targets,
    asking: Asking,
  ): Promise<Result<Exchange, Failure>> {
    const { client } = asking;
    const { request, routing } = reservation.grant;
    // A client that leaves ends a stream; a plain request is read to its end and charged in full.
    const leaving = request.stream ? client : undefined;
    const deadline = new Deadline(deps.timer, Math.min(routing.timeouts.total, MAX_REQUEST), leaving);
    const attempts: Attempts = { left: order, failures: new Map(), last: undefined, full: undefined, leave: () => {} };
    try {
      return await callInTurn({ reservation, deadline }, attempts, asking);
    } catch (error) {
      attempts.leave();
      deadline.close();
      throw error;
    }
  };

  async function callInTurn(
    { reservation, deadline }: Pick<Attempt, 'reservation' | 'deadline'>,
    attempts: Attempts,
    { client, log, room }: Asking,
  ): Promise<Result<Exchange, Failure>> {
    const { request, routing } = reservation.grant;
    for (let tries = 0; tries <= routing.retries; ) {
      const next = nextOf(attempts);
      if (next === undefined) break;
      const failed = attempts.failures.get(next) ?? 0;
      if (failed > 0) await deadline.sleep(PAUSE * 2 ** (failed - 1));
      if (client.hasLeft() || deadline.ended !== undefined) break;
      const { identifier } = next.entry;
      // The entry counts as busy with this request from here on, for all requests that choose their targets meanwhile.
      const leave = cooldowns.enter(identifier);
      attempts.leave = leave;
      const moved = reservation.grant.isLimited ? await deps.ledger.move(reservation.hold, next.rate) : UNLIMITED;
      if (!moved.ok) {
        leave();
        passOver(attempts, next, moved.failure, log);
        continue;
      }
      tries += 1;
      const { isCalled, lost } = reservation;
      const target = lost === undefined ? next : { ...next, limit: outputLimit(reservation, next) };
      const attempt = { reservation, target, deadline, room, leave };
      const result = await exchange(attempt);
      log.attempt(identifier, result.ok ? undefined : result.failure);
      if (result.ok) {
        cooldowns.succeeded(identifier);
        return result;
      }
      leave();
      if (result.failure.unsent === true) reservation.isCalled = isCalled;
      note(attempts, next, { ...attempt, failed: result.failure });
      if (deadline.ended !== undefined || result.failure.again === 'never') break;
    }
    deadline.close();
    if (client.hasLeft()) return err({ code: 'client_left' });
    return err(attempts.last ?? uncalled(attempts.full, request.model));
  }

  /** The target that this request has tried least; where all cool down, the one whose cooldown ends first. */
  function nextOf({ left, failures }: Attempts): Target | undefined {
    const ready = left.filter(({ endpoint }) => cooldowns.of(endpoint) === undefined);
    if (ready.length === 0) return cooldowns.soonest(left);
    const tried = (target: Target) => failures.get(target) ?? 0;
    return ready.reduce((least, target) => (tried(target) < tried(least) ? target : least));
  }

  function note(
    attempts: Attempts,
    next: Target,
    { reservation, target, deadline, failed }: Attempt & { readonly failed: AttemptFailure },
  ): void {
    const { failure, outputBytes, usage, again, retryAfter, blameless } = failed;
    const { grant, hold } = reservation;
    const failures = attempts.failures.get(next) ?? 0;
    attempts.last = failure;
    attempts.failures.set(next, failures + 1);
    if (again === 'elsewhere') attempts.left = attempts.left.filter((other) => other !== next);
    // An attempt whose client has left before the answer has not failed.
    if (blameless !== true && deadline.ended !== 'left') {
      const isRateLimited = failure.code === 'upstream_rate_limited';
      cooldowns.failed(target.endpoint, grant.routing.cooldown, { isFirst: failures === 0, retryAfter, isRateLimited });
    }
    const heard = usage ?? outputBytes;
    if (heard === undefined) return;
    reservation.lost = settlementOfUnheard(reservation, target, heard);
    // An attempt that the provider took is charged: only targets that the rest of the hold covers whole may follow (LEDGER 10).
    const { cost } = reservation.lost;
    if (cost > 0n) attempts.left = attempts.left.filter(({ maxCost }) => cost + maxCost <= hold.amount);
  }

  function marksOf({ grant, options }: Reservation, { entry }: Target): Pick<Made, 'by' | 'markId'> {
    const by = markOf(entry);
    const markId = (id: string) => toMarkedId(deps.mac, grant.caller, { id, by });
    return { by: options.length > 1 ? by : undefined, markId: grant.storeResponses ? markId : undefined };
  }

  async function exchange(attempt: Attempt): Promise<Result<Exchange, AttemptFailure>> {
    const { reservation, target, deadline, room } = attempt;
    const { request, routing } = reservation.grant;
    const { endpoint } = target;
    const call = endpoint.codec.toCall(request, target);
    // The dialect of the entry cannot express this request.
    if (!call.ok) return err({ failure: call.failure, again: 'elsewhere', blameless: true });
    reservation.isCalled = true;
    const controller = new AbortController();
    const stop = () => controller.abort();
    const { timeout } = target.entry;
    const cancel = timeout === undefined ? () => {} : deps.timer(timeout, stop);
    deadline.onEnd(stop);
    let isOpen = false;
    try {
      const { connect, firstByte, idle, total } = routing.timeouts;
      // A plain reply comes in one piece: its first byte may be its last.
      const timeouts = request.stream ? { connect, firstByte, idle } : { connect, firstByte: total, idle: total };
      const response = await deps.upstream({ ...call.value, timeouts, signal: controller.signal });
      const opened = await openReply(response, {
        ...{ endpoint, stream: request.stream, clock: deps.clock, room },
        marks: marksOf(reservation, target),
      });
      if (!opened.ok) return opened;
      isOpen = true;
      const { headers } = response;
      if (opened.value.type === 'stream') {
        const ends = { deadline, stop, over: (end: ReplyEnd) => over(end, attempt) };
        return ok({ [made]: true, reservation, target, headers, ...opened.value, ...ends });
      }
      deadline.close();
      attempt.leave();
      const { type, reply } = opened.value;
      return ok({ [made]: true, reservation, target, headers, type, reply });
    } catch (error) {
      return err(failureOf(error, controller.signal));
    } finally {
      cancel();
      // The connection is closed after every failure, because nothing reads on.
      if (!isOpen) {
        stop();
        room.close();
      }
    }
  }

  function over(end: ReplyEnd, { reservation, target, leave }: Attempt): void {
    leave();
    if (end === 'broken' || end === 'failed')
      cooldowns.failed(target.endpoint, reservation.grant.routing.cooldown, { isFirst: true });
  }
}

/** Passes over an entry that is full. That does not count as an attempt. */
function passOver(attempts: Attempts, target: Target, full: HoldRefusal, log: RequestLog): void {
  const known = attempts.full;
  const isLater = known?.reason === 'limited' && !(full.reason === 'limited' && full.retryIn < known.retryIn);
  if (!isLater) attempts.full = full;
  log.skipped(target.entry.identifier, full.reason === 'limited' ? FULL : 'the store cannot say if it is full');
  attempts.left = attempts.left.filter((other) => other !== target);
}

/** The failure of a request for which no provider was called. */
function uncalled(full: HoldRefusal | undefined, model: string): Failure {
  if (full?.reason === 'unavailable') return { code: 'ledger_unavailable', why: full.why };
  if (full?.reason !== 'limited') return { code: 'upstream_timeout' };
  const { rate, limit, retryIn } = full;
  return { code: 'rate_limit_exceeded', model, rate, limit, retryIn };
}
