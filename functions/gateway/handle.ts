// A chat completion on its way through the gateway: each step demands what only the step before it can make.
import type { Failure } from '#core/failure.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Result } from '#core/result.ts';
import type { Authenticate, Caller } from './authenticate.ts';
import { authorize } from './authorize.ts';
import { type Body, createBodies } from './body.ts';
import type { GatewayDeps } from './deps.ts';
import type { Health } from './health.ts';
import { createRank } from './rank.ts';
import { createOpenLine, type Line } from './record.ts';
import { createReserve, type Reservation } from './reserve.ts';
import { type RequestNames, refuse } from './respond.ts';
import { createRoute } from './route.ts';
import { createSettle } from './settle.ts';
import { createStream } from './stream.ts';
import { createCallUpstream } from './upstream.ts';
import { toChat } from './wire/chat.ts';

export type Handle = (client: HttpExchange, names: RequestNames) => Promise<void>;

/** Request → Caller → Grant → Reservation → Targets → Exchange → Settlement; the first failure is the answer. */
export function createHandle(deps: GatewayDeps, authenticate: Authenticate, health: Health): Handle {
  const openLine = createOpenLine(deps);
  const rank = createRank(deps, health);
  const reserve = createReserve(deps, rank);
  const route = createRoute(rank);
  const callUpstream = createCallUpstream(deps, health);
  const settle = createSettle(deps);
  const stream = createStream(deps, settle);
  const bodies = createBodies();

  return async function handle(client, names) {
    const body = bodies.open();
    const line = openLine(names, 'chat');
    try {
      const reservation = await admit(client, line, body);
      if (!reservation.ok)
        return line.refused(
          reservation.failure.failure,
          refuse(client, reservation.failure.failure, names, reservation.failure.rates),
        );
      await settle.owned(reservation.value, () => spend(reservation.value, client, line));
    } finally {
      body.close();
    }
  };

  /** Who asks, for what, and may they; can they pay. */
  async function admit(client: HttpExchange, line: Line, sent: Body) {
    const first = await identify(client);
    if (!first.caller.ok) return refused(first.caller.failure);
    line.caller(first.caller.value);

    const began = deps.clock.now();
    const body = await sent.read(client);
    if (!body.ok) return refused(body.failure);
    // A client may take minutes to send it: what its key may do is what it may do now.
    const { caller, waited } = deps.clock.now() === began ? first : await identify(client, first.waited);
    if (!caller.ok) return refused(caller.failure);
    const chat = toChat(body.value);
    if (!chat.ok) return refused(chat.failure);

    const snapshot = deps.snapshots.current();
    if (snapshot === undefined) return refused({ code: 'no_healthy_target', model: chat.value.model });
    const grant = authorize(caller.value, chat.value, snapshot);
    if (!grant.ok) return refused(grant.failure);
    line.model(chat.value.model, chat.value.stream);
    return reserve(grant.value, line, waited);
  }

  /** Who answers, what it says, and what that cost. */
  async function spend(reservation: Reservation, client: HttpExchange, line: Line): Promise<void> {
    const { rates } = reservation.hold;
    const fail = (failure: Failure) => line.refused(failure, refuse(client, failure, line.names, rates));
    const targets = route(reservation, line);
    if (!targets.ok) return fail(await settle.release(reservation, targets.failure));

    const exchange = await callUpstream(targets.value, client, line);
    if (!exchange.ok) return fail(await settle.withdraw(reservation, exchange.failure, line));
    if (exchange.value.type === 'stream') return stream(exchange.value, client, line);

    const settled = await settle.reply(exchange.value, client, line);
    if (!settled.ok) fail(settled.failure);
  }

  /** `waited`: for so long the database was asked. What the client takes for its body is the client's time. */
  async function identify(
    client: HttpExchange,
    before: Millis = 0,
  ): Promise<{ readonly caller: Result<Caller, Failure>; readonly waited: Millis }> {
    const asked = deps.clock.now();
    const known = authenticate(client);
    if (!(known instanceof Promise)) return { caller: known, waited: before };
    const caller = await known;
    return { caller, waited: before + deps.clock.now() - asked };
  }
}

function refused(failure: Failure) {
  return { ok: false, failure: { failure, rates: undefined } } as const;
}
