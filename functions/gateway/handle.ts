// A request that spends, as a sequence of steps. Each step needs a value that only the previous step can make.
import { err, ok, type Result } from '#core/failure/result.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { AccessMemory, Grant } from './caller/access.ts';
import type { Authenticate } from './caller/authenticate.ts';
import { createRemainingLimits, type RequestFailure } from './caller/remaining-limits.ts';
import type { GatewayDependencies } from './deps.ts';
import { createReply } from './reply/reply.ts';
import { sendFailure } from './reply/respond.ts';
import { createAdmit } from './request/admit.ts';
import type { CountInFlight } from './request/in-flight.ts';
import type { MemoryBudget } from './request/memory-budget.ts';
import type { RequestContext } from './request/request-context.ts';
import { type ClientContext, createRequestLogs } from './request/request-log.ts';
import { createReserve, type ReservedGrant, requestLimitsOf, toFreeGrant } from './spend/reserve.ts';
import { createSettle, FREE_SETTLE } from './spend/settle.ts';
import { type Cooldowns, toReadOnlyCooldowns } from './targets/cooldown.ts';
import { createChooseTargets } from './targets/targets.ts';
import { createAttempts } from './upstream/attempts.ts';
import { createCallUpstream } from './upstream/upstream.ts';
import type { Api } from './wire/api.ts';

/** State that outlives a request, and that all APIs share. */
export interface SharedState {
  readonly memoryBudget: MemoryBudget;
  readonly access: AccessMemory;
  readonly cooldowns: Cooldowns;
  readonly countInFlight: CountInFlight;
}

/**
 * Steps: Request → Caller → Grant → ReservedGrant or FreeGrant → Targets → Exchange → Settlement. The first failure is
 * the answer.
 */
export function createHandle(
  deps: GatewayDependencies,
  shared: SharedState & { readonly authenticate: Authenticate },
  api: Api,
) {
  const isUncharged = api.estimate !== undefined;
  const cooldowns = isUncharged ? toReadOnlyCooldowns(shared.cooldowns) : shared.cooldowns;
  const remainingLimits = createRemainingLimits(deps);
  const openRequestLog = createRequestLogs(deps, api.route);
  const { authenticate, access, memoryBudget, countInFlight } = shared;
  const admit = createAdmit({ ...deps, authenticate, access, limits: memoryBudget.limits }, api);
  const reserve = isUncharged ? async (grant: Grant) => ok(toFreeGrant(grant)) : createReserve(deps);
  const chooseTargets = createChooseTargets(deps, cooldowns);
  const callUpstream = createCallUpstream(deps, cooldowns);
  const settle = isUncharged ? FREE_SETTLE : createSettle(deps);
  const { reply, estimate } = createReply(
    deps,
    settle,
    isUncharged ? remainingLimits.fromStore : remainingLimits.fromMemory,
  );

  return async function handle(client: HttpExchange, context: RequestContext): Promise<void> {
    const share = memoryBudget.open(client);
    const end = countInFlight();
    const log = openRequestLog(context);
    const clientContext = { client, log, share };
    try {
      const grant = await admit(clientContext);
      const reserved = grant.ok ? await reserve(grant.value, context.requestId) : grant;
      const result = reserved.ok ? await serve(reserved.value, clientContext) : reserved;
      if (result.ok) return;
      const { failure } = result.failure;
      // From memory: requests that are refused before a reservation are limited by nothing.
      const limits = remainingLimits.fromMemory(result.failure);
      log.writeRefusal(failure, sendFailure(client, failure, { ...context, ...limits }));
    } finally {
      share.leave();
      end();
    }
  };

  /** Chooses targets, calls them, replies and settles. */
  async function serve(reserved: ReservedGrant, clientContext: ClientContext): Promise<Result<void, RequestFailure>> {
    const attempts = createAttempts(reserved);
    try {
      const targets = chooseTargets(reserved, clientContext.log);
      const exchange = targets.ok ? await callUpstream(targets.value, attempts, clientContext) : targets;
      if (!exchange.ok) await settle.settleUnanswered(attempts, clientContext.log);
      const replied = exchange.ok ? await reply(exchange.value, clientContext) : exchange;
      if (replied.ok) return replied;
      const { failure } = replied;
      // A request that its provider refused gets that refusal, also on a route with free estimates.
      const estimatedBody = failure.code === 'upstream_refused' ? undefined : api.estimate?.(reserved.grant.request);
      if (estimatedBody === undefined) return err({ failure, ...requestLimitsOf(reserved) });
      return ok(await estimate(reserved, clientContext, estimatedBody));
    } catch (error) {
      await settle.settleAfterError(attempts);
      throw error;
    }
  }
}
