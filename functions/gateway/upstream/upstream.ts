// Calls of upstreams: targets are called in turn until one begins to answer. Until then the client has received
// nothing.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { MAX_REQUEST_TIME } from '#core/ledger/settlement.ts';
import type { GatewayDependencies } from '../deps.ts';
import { Deadline } from '../request/deadline.ts';
import { bytesToTranslate, type RequestMemory } from '../request/memory-budget.ts';
import type { ClientContext, RequestLog } from '../request/request-log.ts';
import { toMarkedId } from '../request/stored-responses.ts';
import type { ChargedCall } from '../spend/charge.ts';
import { modelEntryEstimatesOf, outputLimit, type ReservedGrant } from '../spend/reserve.ts';
import { modelEntryMarkOf } from '../targets/affinity.ts';
import type { Cooldowns } from '../targets/cooldown.ts';
import type { Target, Targets } from '../targets/targets.ts';
import type { Call, ReplyOptions } from '../wire/codec.ts';
import type { RequestBody } from '../wire/request.ts';
import { type AttemptFailure, failureOf } from './attempt-failure.ts';
import { type Attempts, createNextAttempt, failureOfRequest, skipModelEntry } from './attempts.ts';
import { CallStop } from './call-stop.ts';
import { openReply, type PlainReply, type StreamReply } from './upstream-reply.ts';

const ticket: unique symbol = Symbol('Exchange');

/** An upstream that has begun to answer. Only `callUpstream` makes one. */
export type Exchange = PlainExchange | StreamExchange;

interface AnsweredCall extends ChargedCall {
  readonly [ticket]: true;
  readonly target: Target;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PlainExchange extends AnsweredCall, PlainReply {}

export interface StreamExchange extends AnsweredCall, StreamReply {
  readonly deadline: Deadline;
  /** Stops the call of the upstream. */
  stop(): void;
  /**
   * Reports the end of the stream, once. `hasFailed`: the provider broke it off, or ended it with an error that the
   * request did not cause.
   */
  reportEnd(hasFailed: boolean): void;
}

/** Milliseconds before an upstream is called again; twice as many each time. */
const PAUSE = 100;
const NO_ROOM: AttemptFailure = { failure: { code: 'overloaded' }, retry: 'never', fault: 'none' };
const ENDED: AttemptFailure = { failure: { code: 'upstream_timeout' }, retry: 'never', fault: 'none' };
const UNLIMITED = ok(undefined);
/** Marks of a reply that needs none. */
const UNMARKED = { modelEntryMark: undefined, markId: undefined };

/** One attempt. `leaveModelEntry`: ends the count of the attempt at the model entry. */
interface Attempt {
  readonly attempts: Attempts;
  readonly target: Target;
  readonly deadline: Deadline;
  readonly share: RequestMemory;
  leaveModelEntry(): void;
}

export function createCallUpstream(
  deps: Pick<GatewayDependencies, 'upstream' | 'timer' | 'clock' | 'ledger' | 'mac'>,
  cooldowns: Cooldowns,
) {
  const { chooseNext, recordFailure, growReservation } = createNextAttempt(deps, cooldowns);

  /** `attempts`: those of a new request. */
  return async function callUpstream(
    { reserved, order }: Targets,
    attempts: Attempts,
    clientContext: ClientContext,
  ): Promise<Result<Exchange, Failure>> {
    const { client } = clientContext;
    const { request, routing } = reserved.grant;
    // A client that leaves ends its stream. A plain request is read to its end and charged in full.
    const leavingClient = request.stream ? client : undefined;
    const deadline = new Deadline(deps.timer, Math.min(routing.timeouts.total, MAX_REQUEST_TIME), leavingClient);
    attempts.targets = order;
    try {
      return await callInTurn(attempts, deadline, clientContext);
    } catch (error) {
      attempts.leaveModelEntry();
      deadline.close();
      throw error;
    }
  };

  async function callInTurn(
    attempts: Attempts,
    deadline: Deadline,
    { client, log, share }: ClientContext,
  ): Promise<Result<Exchange, Failure>> {
    const { grant, reservation } = attempts.reserved;
    const { request, routing, isLimited } = grant;
    for (let tries = 0; tries <= routing.retries; ) {
      const next = chooseNext(attempts);
      if (next === undefined) break;
      const failed = attempts.failures.get(next) ?? 0;
      if (failed > 0) await deadline.sleep(PAUSE * 2 ** (failed - 1));
      if (client.hasLeft() || deadline.ended !== undefined) break;
      if (attempts.unreserved > 0n && !(await growReservation(attempts, next))) continue;
      // The model entry counts as busy from here on, for all requests that choose their targets meanwhile.
      const leaveModelEntry = cooldowns.enter(next.entry.identifier);
      attempts.leaveModelEntry = leaveModelEntry;
      const moved = isLimited
        ? await deps.ledger.moveToModelEntry(reservation, next.limits, modelEntryEstimatesOf(request))
        : UNLIMITED;
      if (!moved.ok) {
        leaveModelEntry();
        skipModelEntry(attempts, next, moved.failure, log);
        continue;
      }
      tries += 1;
      const result = await attemptAt(next, { attempts, deadline, share, leaveModelEntry }, log);
      if (result.ok) return result;
      recordFailure(attempts, next, { ...result.failure, deadline });
      if (deadline.ended !== undefined || result.failure.failed.retry === 'never') break;
    }
    deadline.close();
    return err(client.hasLeft() ? { code: 'client_left' } : failureOfRequest(attempts, request.model));
  }

  /** Calls the model entry with the output limit that the rest of the reservation covers. */
  async function attemptAt(
    next: Target,
    attempt: Omit<Attempt, 'target'>,
    log: RequestLog,
  ): Promise<Result<Exchange, { readonly target: Target; readonly failed: AttemptFailure }>> {
    const { attempts, leaveModelEntry } = attempt;
    const { reserved, isCalled, failedCharge } = attempts;
    const spent = failedCharge?.cost;
    const target = spent === undefined ? next : { ...next, limit: outputLimit(reserved, next, spent) };
    const { identifier } = next.entry;
    const result = await callTarget({ ...attempt, target });
    log.addAttempt(identifier, result.ok ? undefined : result.failure);
    if (result.ok) {
      cooldowns.recordSuccess(identifier);
      return result;
    }
    leaveModelEntry();
    if (result.failure.unsent === true) attempts.isCalled = isCalled;
    return err({ target, failed: result.failure });
  }

  function marksOf(
    { grant, candidates }: ReservedGrant,
    { entry }: Target,
  ): Pick<ReplyOptions, 'modelEntryMark' | 'markId'> {
    if (candidates.length === 1 && !grant.storeResponses) return UNMARKED;
    const by = modelEntryMarkOf(entry);
    const markId = (id: string) => toMarkedId(deps.mac, grant.caller, { id, modelEntryMark: by });
    return {
      modelEntryMark: candidates.length > 1 ? by : undefined,
      markId: grant.storeResponses ? markId : undefined,
    };
  }

  async function callTarget(attempt: Attempt): Promise<Result<Exchange, AttemptFailure>> {
    const { attempts, target, deadline, share } = attempt;
    const { reserved, failedCharge } = attempts;
    const { request, routing } = reserved.grant;
    const { endpoint } = target;
    // A translated body takes memory before it is created, and waits for a turn if it is long.
    const { bytes } = request.body;
    const room = endpoint.codec.isTranslated ? bytesToTranslate(bytes, await share.sizeOf(bytes)) : 0;
    const call = callOf(attempt, room);
    if (!call.ok) return call;
    const copied = copiedBytesOf(call.value, request.body);
    if (!share.take(copied, 'increased')) return err(NO_ROOM);
    const before = share.bytes;
    attempts.isCalled = true;
    const signal = new CallStop();
    const stop = () => signal.abort();
    const { timeout } = target.entry;
    const cancel = timeout === undefined ? () => {} : deps.timer(timeout, stop);
    const forget = deadline.onEnd(stop);
    let isOpen = false;
    try {
      const { connect, firstByte, idle, total } = routing.timeouts;
      // A plain reply may arrive in one piece: its first byte may be its last.
      const timeouts = request.stream ? { connect, firstByte, idle } : { connect, firstByte: total, idle: total };
      const response = await deps.upstream({ ...call.value, timeouts, signal });
      const opened = await openReply(response, {
        endpoint,
        stream: request.stream,
        clock: deps.clock,
        signal,
        share,
        marks: marksOf(reserved, target),
      });
      if (!opened.ok) return opened;
      isOpen = true;
      request.body.release();
      share.giveBack(before);
      const answered = { [ticket]: true as const, reserved, target, failedCharge, headers: response.headers };
      if (opened.value.type === 'stream') {
        const ends = { deadline, stop, reportEnd: (hasFailed: boolean) => reportEnd(hasFailed, attempt) };
        return ok({ ...answered, ...opened.value, ...ends });
      }
      deadline.close();
      attempt.leaveModelEntry();
      const { type, reply } = opened.value;
      return ok({ ...answered, type, reply });
    } catch (error) {
      return err(failureOf(error, signal));
    } finally {
      cancel();
      forget();
      // A failed call closes its connection, because nothing reads the rest.
      if (!isOpen) {
        stop();
        share.giveBack(copied + share.bytes - before);
      }
    }
  }

  function reportEnd(hasFailed: boolean, { attempts, target, leaveModelEntry }: Attempt): void {
    leaveModelEntry();
    const { caller, routing } = attempts.reserved.grant;
    if (hasFailed)
      cooldowns.recordFailure(target.endpoint, routing.cooldown, { isFirst: true, causingKey: caller.key });
  }
}

/** The call. `room`: bytes of memory for the translation of its body. */
function callOf({ attempts, target, deadline, share }: Attempt, room: number): Result<Call, AttemptFailure> {
  const { request } = attempts.reserved.grant;
  const { codec } = target.endpoint;
  if (deadline.ended !== undefined) return err(ENDED);
  if (!share.take(room, 'increased')) return err(NO_ROOM);
  const call = codec.toCall(request, target);
  request.body.releaseText();
  share.giveBack(room);
  // A failure: the dialect of the model entry cannot express this request.
  return call.ok ? call : err({ failure: call.failure, retry: 'elsewhere', fault: 'none' });
}

/** Bytes of a call beside the request's own body: a translated body, or the copy for a signature. */
function copiedBytesOf({ body, signing }: Call, { bytes }: RequestBody): number {
  let copied = 0;
  for (const part of body)
    if (signing !== undefined || typeof part === 'string' || part.buffer !== bytes.buffer) copied += part.length;
  return copied;
}
