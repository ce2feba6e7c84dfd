// A request that spends on its way through the gateway: each step demands what only the step before it can make.
import type { Failure } from '#core/failure/failure.ts';
import type { Result } from '#core/failure/result.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import { createBudgetLeft } from './caller/budget-left.ts';
import type { GatewayDeps } from './deps.ts';
import { createReply } from './reply/reply.ts';
import { type RequestContext, refuse } from './reply/respond.ts';
import { type AdmitShared, createAdmit } from './request/admit.ts';
import type { Share } from './request/memory-budget.ts';
import { createRequestLogs, type RequestLog } from './request/request-log.ts';
import { createReserve, type ReservedGrant } from './spend/reserve.ts';
import { createSettle } from './spend/settle.ts';
import { createChooseTargets } from './targets/targets.ts';
import { noAttempts } from './upstream/attempts.ts';
import { type ClientContext, createCallUpstream } from './upstream/upstream.ts';
import type { Api } from './wire/api.ts';

/** Request → Caller → Grant → Reservation → Targets → Exchange → Settlement; the first failure is the answer. */
export function createHandle(deps: GatewayDeps, shared: AdmitShared, api: Api) {
  const openRequestLog = createRequestLogs(deps, api.name);
  const admit = createAdmit(deps, shared, api);
  const reserve = createReserve(deps);
  const chooseTargets = createChooseTargets(deps, shared.cooldowns);
  const callUpstream = createCallUpstream(deps, shared.cooldowns);
  const settle = createSettle(deps);
  const budgetLeft = createBudgetLeft(deps);
  const reply = createReply(deps, settle, budgetLeft);

  return async function handle(client: HttpExchange, context: RequestContext): Promise<void> {
    const share = shared.room.open();
    const log = openRequestLog(context);
    try {
      const reserved = await reserveFor(client, log, share);
      const replied = reserved.ok ? await spend(reserved.value, { client, log, share }) : reserved;
      if (replied.ok) return;
      await budgetLeft.learn(context, replied.failure);
      log.refused(replied.failure, refuse(client, replied.failure, context));
    } finally {
      share.leave();
    }
  };

  /** The grant, and money for it. */
  async function reserveFor(
    client: HttpExchange,
    log: RequestLog,
    share: Share,
  ): Promise<Result<ReservedGrant, Failure>> {
    const grant = await admit(client, log, share);
    return grant.ok ? reserve(grant.value, log.context) : grant;
  }

  /** Targets, the upstream's answer, and its settlement. */
  async function spend(reservation: ReservedGrant, asking: ClientContext): Promise<Result<void, Failure>> {
    const attempts = noAttempts(reservation);
    try {
      const targets = chooseTargets(reservation, asking.log);
      const exchange = targets.ok ? await callUpstream(targets.value, attempts, asking) : targets;
      if (exchange.ok) return await reply(exchange.value, asking);
      await settle.unanswered(attempts, asking.log);
      return exchange;
    } catch (error) {
      await settle.afterError(attempts);
      throw error;
    }
  }
}
