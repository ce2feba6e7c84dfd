// A request that spends on its way through the gateway: each step demands what only the step before it can make.
import type { Failure } from '#core/failure.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import { err, type Result } from '#core/result.ts';
import { type AccessMemory, createAuthorize } from './access.ts';
import type { Authenticate } from './authenticate.ts';
import type { Bodies, Body } from './body.ts';
import type { Cooldowns } from './cooldown.ts';
import type { GatewayDeps } from './deps.ts';
import { createReply } from './reply.ts';
import { createRequestLogs, type RequestLog } from './request-log.ts';
import { createReserve, type Reservation } from './reserve.ts';
import { type RequestContext, refuse } from './respond.ts';
import { createSettle } from './settle.ts';
import { createChooseTargets } from './targets.ts';
import { createCallUpstream } from './upstream.ts';
import type { Api } from './wire/api.ts';

/** State that outlives a request, and that all APIs share. */
export interface RequestMemory {
  readonly bodies: Bodies;
  readonly access: AccessMemory;
  readonly cooldowns: Cooldowns;
}

/** Request → Caller → Grant → Reservation → Targets → Exchange → Settlement; the first failure is the answer. */
export function createHandle(
  deps: GatewayDeps,
  memory: RequestMemory & { readonly authenticate: Authenticate },
  api: Api,
) {
  const { authenticate, bodies } = memory;
  const openRequestLog = createRequestLogs(deps, api.name);
  const authorize = createAuthorize(memory.access, api);
  const reserve = createReserve(deps);
  const chooseTargets = createChooseTargets(deps, memory.cooldowns);
  const callUpstream = createCallUpstream(deps, memory.cooldowns);
  const settle = createSettle(deps);
  const reply = createReply(deps, settle);

  return async function handle(client: HttpExchange, context: RequestContext): Promise<void> {
    const body = bodies.open();
    const log = openRequestLog(context);
    let reservation: Reservation | undefined;
    try {
      const admitted = await admit(client, log, body);
      if (admitted.ok) reservation = admitted.value;
      const replied = admitted.ok ? await spend(admitted.value, client, log) : admitted;
      if (!replied.ok) log.refused(replied.failure, refuse(client, replied.failure, context));
    } catch (error) {
      if (reservation !== undefined) await settle.afterError(reservation);
      throw error;
    } finally {
      body.close();
    }
  };

  /** Caller, body, grant and money; the first refusal is the answer. */
  async function admit(client: HttpExchange, log: RequestLog, sent: Body): Promise<Result<Reservation, Failure>> {
    const first = await authenticate(client);
    if (!first.ok) return first;
    log.caller(first.value);

    const body = await sent.read(client);
    if (!body.ok) return body;
    // A client may take minutes to send the body: then the key's policy is read again, and counts as it is now.
    const isFresh = deps.clock.now() < first.value.freshUntil;
    const caller = isFresh ? first : await authenticate(client, first.value.waited);
    if (!caller.ok) return caller;
    const request = api.toRequest(body.value, client);
    if (!request.ok) return request;

    const snapshot = deps.snapshots.current();
    if (snapshot === undefined) return err({ code: 'no_healthy_target', model: request.value.model });
    const grant = authorize(caller.value, request.value, snapshot);
    if (!grant.ok) return grant;
    log.model(request.value.model, request.value.stream);
    return reserve(grant.value, log.context);
  }

  /** Targets, the upstream's answer, and its settlement. */
  async function spend(
    reservation: Reservation,
    client: HttpExchange,
    log: RequestLog,
  ): Promise<Result<void, Failure>> {
    const targets = chooseTargets(reservation, log);
    const exchange = targets.ok ? await callUpstream(targets.value, client, log) : targets;
    if (exchange.ok) return reply(exchange.value, client, log);
    await settle.unanswered(reservation, log);
    return exchange;
  }
}
