// What does the upstream answer? Targets are tried in turn until one begins to answer; nothing has reached the client before that.
import type { Failure } from '#core/failure.ts';
import { LONGEST } from '#core/ledger/lease.ts';
import type { HoldRefusal } from '#core/ports/ledger.ts';
import { UpstreamBroke } from '#core/ports/serving.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type AttemptFailure, TIMED_OUT, UNREACHABLE, UNSENT, unspeakable } from './attempt-failure.ts';
import { type Client, type Deadline, openDeadline } from './deadline.ts';
import type { GatewayDeps } from './deps.ts';
import { limitOf } from './entry-limits.ts';
import { type Accepted, type Exchange, openExchange } from './exchange.ts';
import type { Health } from './health.ts';
import type { Line, ReplyEnd } from './record.ts';
import type { Reservation } from './reserve.ts';
import { FULL, type Target, type Targets } from './route.ts';

/** Why there is no exchange. `consumed`: the provider may have read the prompt all the same, and has said so many bytes. */
export interface NoExchange {
  readonly failure: Failure;
  readonly target: Target;
  readonly consumed: number | undefined;
  /** Anybody was called at all. */
  readonly called: boolean;
}

export type CallUpstream = (targets: Targets, client: Client, line: Line) => Promise<Result<Exchange, NoExchange>>;

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
    const deadline = openDeadline(deps.timer, Math.min(routing.timeouts.total, LONGEST), leaving);
    const left = [targets.first, ...targets.others];
    /** How often each has failed. */
    const failures = new Map<Target, number>();
    let last: NoExchange | undefined;
    let full: HoldRefusal | undefined;
    let tries = 0;
    while (tries <= routing.retries) {
      const target = nextOf(left, failures);
      if (target === undefined) break;
      const failed = failures.get(target) ?? 0;
      if (failed > 0) await deadline.sleep(PAUSE * 2 ** (failed - 1));
      if (client.hasLeft() || deadline.ended !== undefined) break;
      // Only the first has its room since the hold, and for one attempt; one that is full is passed over, and is no try.
      const moved = tries === 0 && target === targets.first ? ok(undefined) : await move(targets.reservation, target);
      if (!moved.ok) {
        full = moved.failure;
        line.skipped(target.entry.identifier, full.reason === 'limited' ? FULL : 'the store cannot say if it is full');
        left.splice(left.indexOf(target), 1);
        continue;
      }
      tries += 1;
      line.step('call', target);
      const trying = enter(targets.reservation, target, deadline);
      const result = await exchange(trying);
      judge(result, { ...trying, isFirst: failed === 0 });
      line.attempt(target, result.ok ? undefined : result.failure);
      if (result.ok) return result;
      const { failure, status, unsent, said } = result.failure;
      const isRead = status === undefined && unsent !== true && deadline.ended === 'left';
      const consumed = said ?? (isRead ? 0 : undefined);
      last = { failure, target, consumed, called: last?.called === true || unsent !== true };
      if (deadline.ended !== undefined || result.failure.again === 'never') break;
      failures.set(target, failed + 1);
      if (result.failure.again === 'elsewhere') left.splice(left.indexOf(target), 1);
    }
    deadline.close();
    return err(outcome(last, { full, targets, client }));
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

  function enter(reservation: Reservation, target: Target, deadline: Deadline): Trying {
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

  async function exchange({ reservation, target, deadline, over }: Trying): Promise<Result<Exchange, AttemptFailure>> {
    const { chat, routing } = reservation.grant;
    const request = target.dialect.toRequest(chat, target);
    if (!request.ok) return err(unspeakable(request.failure));
    const endAttempt = deadline.limitAttempt(target.entry.timeout);
    let opened: Result<Exchange, AttemptFailure> | undefined;
    try {
      const { url, headers, body } = request.value;
      const { signal } = deadline;
      const response = await deps.upstream({ url, headers, body, timeouts: routing.timeouts, signal });
      const { clock } = deps;
      const created = Math.floor(clock.now() / 1000);
      opened = await openExchange({ reservation, target, deadline, over, response, clock, created });
      return opened;
    } catch (error) {
      return err(toFailure(error, deadline));
    } finally {
      endAttempt();
      // Whatever went wrong, nobody reads on: the connection goes.
      if (opened?.ok !== true) deadline.abort();
    }
  }
}

/** An attempt. `leave`: the entry has nothing to do with it any more. */
type Trying = Omit<Accepted, 'response' | 'created' | 'clock'> & { readonly leave: () => void };

interface Unanswered {
  /** Why the last entry that was passed over had no room. */
  readonly full: HoldRefusal | undefined;
  readonly targets: Targets;
  readonly client: Client;
}

function outcome(last: NoExchange | undefined, { full, targets, client }: Unanswered): NoExchange {
  const { first, reservation } = targets;
  const end = last ?? {
    failure: uncalled(full, reservation.grant.chat.model),
    target: first,
    consumed: undefined,
    called: false,
  };
  return client.hasLeft() ? { ...end, failure: { code: 'client_left' } } : end;
}

/** Nobody was called. */
function uncalled(full: HoldRefusal | undefined, model: string): Failure {
  if (full?.reason === 'unavailable') return { code: 'ledger_unavailable', why: full.why };
  if (full?.reason !== 'limited') return { code: 'upstream_timeout' };
  const { rate, limit, retryIn } = full;
  return { code: 'rate_limit_exceeded', model, rate, limit, retryIn };
}

function toFailure(error: unknown, { signal }: Deadline): AttemptFailure {
  const how = error instanceof UpstreamBroke ? error.how : undefined;
  if (how === 'unsent') return UNSENT;
  return signal.aborted || how === 'timeout' ? TIMED_OUT : UNREACHABLE;
}
