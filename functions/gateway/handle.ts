// A request that spends on its way through the gateway: each step demands what only the step before it can make.
import { err, ok, type Result } from '#core/failure/result.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Grant } from './caller/access.ts';
import { createBudgetLeft, type RequestFailure } from './caller/budget-left.ts';
import type { GatewayDeps } from './deps.ts';
import { createReply } from './reply/reply.ts';
import { type RequestContext, refuse } from './reply/respond.ts';
import { type AdmitShared, createAdmit } from './request/admit.ts';
import { type ClientContext, createRequestLogs } from './request/request-log.ts';
import { createReserve, limitsOf, type ReservedGrant, toFree } from './spend/reserve.ts';
import { createSettle, SETTLED } from './spend/settle.ts';
import { unchanged } from './targets/cooldown.ts';
import { createChooseTargets } from './targets/targets.ts';
import { noAttempts } from './upstream/attempts.ts';
import { createCallUpstream } from './upstream/upstream.ts';
import type { Api } from './wire/api.ts';

/** Request → Caller → Grant → Reservation or Free → Targets → Exchange → Settlement; the first failure is the answer. */
export function createHandle(deps: GatewayDeps, shared: AdmitShared, api: Api) {
  const isFree = api.estimate !== undefined;
  const cooldowns = isFree ? unchanged(shared.cooldowns) : shared.cooldowns;
  const budgetLeft = createBudgetLeft(deps);
  const openRequestLog = createRequestLogs(deps, api.route);
  const admit = createAdmit(deps, shared, api);
  const reserve = isFree ? async (grant: Grant) => ok(toFree(grant)) : createReserve(deps);
  const chooseTargets = createChooseTargets(deps, cooldowns);
  const callUpstream = createCallUpstream(deps, cooldowns);
  const settle = isFree ? SETTLED : createSettle(deps);
  const { reply, estimate } = createReply(deps, settle, isFree ? budgetLeft.learn : budgetLeft.look);

  return async function handle(client: HttpExchange, context: RequestContext): Promise<void> {
    const share = shared.room.open(client);
    const log = openRequestLog(context);
    const asking = { client, log, share };
    try {
      const grant = await admit(asking);
      const reserved = grant.ok ? await reserve(grant.value, context.requestId) : grant;
      const replied = reserved.ok ? await spend(reserved.value, asking) : reserved;
      if (replied.ok) return;
      const { failure } = replied.failure;
      log.refused(failure, refuse(client, failure, { ...context, ...(await budgetLeft.learn(replied.failure)) }));
    } finally {
      share.leave();
    }
  };

  /** Targets, the upstream's answer, and its settlement. */
  async function spend(reservation: ReservedGrant, asking: ClientContext): Promise<Result<void, RequestFailure>> {
    const attempts = noAttempts(reservation);
    try {
      const targets = chooseTargets(reservation, asking.log);
      const exchange = targets.ok ? await callUpstream(targets.value, attempts, asking) : targets;
      if (!exchange.ok) await settle.unanswered(attempts, asking.log);
      const replied = exchange.ok ? await reply(exchange.value, asking) : exchange;
      if (replied.ok) return replied;
      const { failure } = replied;
      // A provider that refuses the request itself is right about that, also where its reply would be free.
      const instead = failure.code === 'upstream_refused' ? undefined : api.estimate?.(reservation.grant.request);
      if (instead === undefined) return err({ failure, ...limitsOf(reservation) });
      return ok(await estimate(reservation, asking, instead));
    } catch (error) {
      await settle.afterError(attempts);
      throw error;
    }
  }
}
