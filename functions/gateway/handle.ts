// How does a chat completion go through the gateway? Each step demands what only the step before it can make.
import type { Failure } from '#core/failure.ts';
import type { RateView } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import type { DialectName } from '#core/providers.ts';
import type { Result } from '#core/result.ts';
import type { Authenticate, Caller } from './authenticate.ts';
import { authorize } from './authorize.ts';
import { type Body, createBodies } from './body.ts';
import { toChat } from './chat.ts';
import type { Client } from './deadline.ts';
import type { GatewayDeps, Visit } from './deps.ts';
import type { Health } from './health.ts';
import { createRank } from './rank.ts';
import { createOpenLine, type Line } from './record.ts';
import { createReserve, type Reservation } from './reserve.ts';
import { namesOf, toRefusal } from './respond.ts';
import { createRoute } from './route.ts';
import { createSettle } from './settle.ts';
import { traceLines } from './traced.ts';
import { createCallUpstream } from './upstream.ts';
import type { Dialect } from './wire/dialect.ts';

export type Handle = (request: Request, visit: Visit) => Promise<Response>;

/** Request → Caller → Grant → Reservation → Targets → Exchange → settled answer; the first failure is the answer. */
export function createHandle(
  deps: GatewayDeps,
  authenticate: Authenticate,
  dialects: ReadonlyMap<DialectName, Dialect>,
  health: Health,
): Handle {
  const openLine = traceLines(deps, createOpenLine(deps));
  const rank = createRank(deps, health, dialects);
  const reserve = createReserve(deps, rank);
  const route = createRoute(rank);
  const callUpstream = createCallUpstream(deps, health);
  const settle = createSettle(deps);

  const bodies = createBodies();

  return async function handle(request, visit) {
    const body = bodies.open();
    try {
      return await answer(request, visit, body);
    } finally {
      body.close();
    }
  };

  async function answer(request: Request, visit: Visit, sent: Body): Promise<Response> {
    const line = openLine(namesOf(request, deps.ids), 'chat', request);
    const known = identify(request);
    const first = known instanceof Promise ? await known : known;
    if (!first.caller.ok) return refuse(first.caller.failure, line);
    line.caller(first.caller.value);

    const began = deps.clock.now();
    const body = await sent.read(request, visit);
    if (!body.ok) return refuse(body.failure, line);
    // A client may take minutes to send it: what its key may do is what it may do now.
    const judged = deps.clock.now() === began ? first : identify(request, first.waited);
    const { caller, waited } = judged instanceof Promise ? await judged : judged;
    if (!caller.ok) return refuse(caller.failure, line);
    const chat = toChat(body.value);
    if (!chat.ok) return refuse(chat.failure, line);

    const snapshot = deps.snapshots.current();
    if (snapshot === undefined) return refuse({ code: 'no_healthy_target', model: chat.value.model }, line);
    const grant = authorize(caller.value, chat.value, snapshot);
    if (!grant.ok) return refuse(grant.failure, line);
    line.model(chat.value.model, chat.value.stream);

    line.step('hold');
    const reservation = await reserve(grant.value, line, waited);
    if (!reservation.ok) return refuse(reservation.failure.failure, line, reservation.failure.rates);
    try {
      return await spend(reservation.value, { request, visit, line });
    } catch (error) {
      await settle.abandon(reservation.value);
      throw error;
    }
  }

  async function spend(reservation: Reservation, { request, visit, line }: Spending): Promise<Response> {
    const { rates } = reservation.hold;
    const targets = route(reservation, line);
    if (!targets.ok) return refuse(await settle.release(reservation, targets.failure), line, rates);

    const exchange = await callUpstream(targets.value, clientOf(request, visit), line);
    if (!exchange.ok) return refuse(await settle.withdraw(reservation, exchange.failure, line), line, rates);

    const answer = await settle.answer(exchange.value, line, visit);
    return answer.ok ? answer.value : refuse(answer.failure, line, rates);
  }

  function identify(request: Request, waited: Millis = 0): Identified | Promise<Identified> {
    const known = authenticate(request);
    if (!(known instanceof Promise)) return { caller: known, waited };
    const asked = deps.clock.now();
    return known.then((caller) => ({ caller, waited: waited + deps.clock.now() - asked }));
  }
}

interface Spending {
  readonly request: Request;
  readonly visit: Visit;
  readonly line: Line;
}

/** `waited`: for so long the database was asked. What the client takes for its body is the client's time. */
interface Identified {
  readonly caller: Result<Caller, Failure>;
  readonly waited: Millis;
}

function clientOf(request: Request, { connection }: Visit): Client {
  if (connection?.hasLeft !== undefined && connection.onLeave !== undefined) return connection as Client;
  return {
    hasLeft: () => request.signal.aborted,
    onLeave: (listener) => request.signal.addEventListener('abort', listener, { once: true }),
  };
}

function refuse(failure: Failure, line: Line, rates?: RateView): Response {
  const { response, reply } = toRefusal(failure, line.names, rates);
  line.refused(failure, reply);
  return response;
}
