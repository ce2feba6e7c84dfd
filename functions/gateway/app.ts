// Routes of a gateway. It serves one instance, at the root and also under /v1, which some clients require.

import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import type { HttpExchange, HttpHandler } from '#core/ports/http-exchange.ts';
import type { ProcessMemory } from '#core/ports/platform.ts';
import { type Caller, createAuthenticate } from './caller/authenticate.ts';
import { createKeyReport } from './caller/key-report.ts';
import { createModels } from './caller/models.ts';
import { withPerKeyBudgets } from './caller/per-key-budgets.ts';
import { createPolicyCache, createPolicyMemory, type PolicyMemory } from './caller/policy-cache.ts';
import { chargedScopesOf, createRemainingLimits, hasBudget } from './caller/remaining-limits.ts';
import type { GatewayDependencies } from './deps.ts';
import { createHandle, type SharedState } from './handle.ts';
import { sendFailure, sendJson, sendText } from './reply/respond.ts';
import { createInFlightCounter } from './request/in-flight.ts';
import { createMemoryBudget, limitsIn, type RequestMemory } from './request/memory-budget.ts';
import { type RequestContext, toRequestContext } from './request/request-context.ts';
import { createCooldowns } from './targets/cooldown.ts';
import type { Api } from './wire/api.ts';
import { APIS } from './wire/apis.ts';
import { toCountingApi } from './wire/counting.ts';
import { anthropicErrors, type ErrorFormat, openaiErrors } from './wire/dialects/error-format.ts';
import { toUsageReport } from './wire/messages/spend.ts';
import { bytesIn } from './wire/prompt/prompt.ts';

interface Route {
  readonly method: 'GET' | 'POST';
  readonly errors?: ErrorFormat;
  /** `path`: below the address of the gateway. */
  answer(client: HttpExchange, context: RequestContext, path: string): Promise<void>;
}

/**
 * State of a gateway that outlives a request. It lives as long as the process, or the isolate. It is plain data: on
 * Workers, I/O of one request cannot serve another.
 */
export function createSharedState(
  deps: Pick<GatewayDependencies, 'clock' | 'intervalClock' | 'log' | 'metrics' | 'memory'>,
): SharedState & { readonly policies: PolicyMemory } {
  return {
    policies: createPolicyMemory(),
    memoryBudget: createMemoryBudget(limitsIn(deps.memory ?? USUAL_MEMORY), deps.clock),
    access: new Map(),
    cooldowns: createCooldowns(deps),
    countInFlight: createInFlightCounter(deps),
  };
}

/** The assumed memory of a process without a limit: that of a usual Pod. */
const USUAL_MEMORY: ProcessMemory = { limit: 2 ** 30, own: 2 ** 27 };

/**
 * The gateway of a process. On Workers each request has its own I/O: there, each request creates a gateway, with the
 * shared state of the isolate.
 */
export function createGateway(deps: GatewayDependencies, state = createSharedState(deps)): HttpHandler {
  const routes = createRoutes(deps, state);

  return async function gateway(client, path = client.path) {
    if (path === '/healthz') return sendText(client, 200, 'ok');
    const snapshot = deps.snapshots.current();
    if (path === '/readyz') {
      if (snapshot === undefined) return sendText(client, 503, 'no configuration yet');
      return deps.hasVersionMismatch?.() ? sendText(client, 503, VERSION_MISMATCH) : sendText(client, 200, 'ok');
    }
    const route = routeAt(routes, path);
    const context = toRequestContext(client, deps.ids, {
      blockedMessage: snapshot?.blockedMessage,
      errors: route?.errors ?? errorsFor(client, path),
    });
    if (client.query.length > MAX_QUERY) return void sendFailure(client, LONG_QUERY, context);
    if (route === undefined) return void sendFailure(client, { code: 'not_found', path }, context);
    if (route.method !== client.method) return void sendFailure(client, methodFailure(client, route), context);
    try {
      await route.answer(client, context, path);
    } catch (error) {
      const { requestId } = context;
      const stack = error instanceof Error ? error.stack : undefined;
      deps.log.error('a request failed with an internal error', { requestId, why: reasonAndCausesOf(error), stack });
      // A reply that has begun can no longer become a refusal.
      if (client.hasBegun()) client.destroy();
      else sendFailure(client, { code: 'internal_error' }, context);
    }
  };
}

const VERSION_MISMATCH =
  'another version of the operator wrote the database or the counter store: the log of this Pod has the versions';

const OVERLOADED: Failure = { code: 'overloaded' };
/** Characters. The longest query of a provider's API has a tenth of this. */
const MAX_QUERY = 1_024;
const LONG_QUERY: Failure = {
  code: 'invalid_request',
  message: `The query of the address must have at most ${MAX_QUERY} characters. Send a shorter query.`,
};

/** The failure of a wrong method. Clients that first try a WebSocket continue by POST only after a 426. */
function methodFailure(client: HttpExchange, { method }: Route): Failure {
  const isUpgrade = method === 'POST' && client.header('upgrade')?.toLowerCase() === 'websocket';
  return isUpgrade ? { code: 'upgrade_not_supported' } : { code: 'method_not_allowed', allow: method };
}

/**
 * The error format of a request outside of every API. Anthropic's clients send `anthropic-version` in nearly every
 * request.
 */
function errorsFor(client: HttpExchange, path: string): ErrorFormat {
  const isAnthropic = client.header('anthropic-version') !== undefined || /^(\/v1)?\/messages\//.test(path);
  return isAnthropic ? anthropicErrors : openaiErrors;
}

/** Routes by path, with and without `/v1`. A route that spends belongs to an API; the other routes are free. */
export function createRoutes(deps: GatewayDependencies, state = createSharedState(deps)): ReadonlyMap<string, Route> {
  const policies = withPerKeyBudgets(deps.policies, deps.hash);
  const authenticate = createAuthenticate(deps, createPolicyCache({ ...deps, policies }, state.policies));
  const shared = { ...state, authenticate };
  const remainingLimits = createRemainingLimits(deps);
  const models = createModels(deps);
  const routes: ReadonlyArray<readonly [string, Route]> = [
    ...APIS.flatMap((api) => routesOf(api)),
    ['/models', { method: 'GET', answer: report((caller, client) => models(caller, client)) }],
    [ONE_MODEL, { method: 'GET', answer: report((caller, client, path) => models(caller, client, modelIn(path))) }],
    ['/key', { method: 'GET', answer: report(createKeyReport(deps)) }],
    ['/api/oauth/usage', { method: 'GET', answer: report(usage) }],
  ];
  return new Map([...routes, ...routes.map(([path, route]) => [`/v1${path}`, route] as const)]);

  function routesOf(api: Api): ReadonlyArray<readonly [string, Route]> {
    const { path, errors, counting } = api;
    const handle = lazy(() => createHandle(deps, shared, api));
    const route: Route = { method: 'POST', errors, answer: (client, context) => handle()(client, context) };
    return [[path, route], ...(counting === undefined ? [] : routesOf(toCountingApi(api, counting)))];
  }

  /** The usage report of Claude Code. */
  async function usage(caller: Caller): Promise<Result<unknown, Failure>> {
    const chargedScopes = chargedScopesOf(caller);
    const { budget } = await remainingLimits.fromStore({ chargedScopes });
    const isKnown = budget !== undefined || !hasBudget(chargedScopes);
    return isKnown ? ok(toUsageReport(budget)) : err({ code: 'ledger_unavailable', why: 'the spend is unknown' });
  }

  /** Sends a report. Its memory share stays until the client has taken it. */
  function report(read: ReadReport): Route['answer'] {
    return async (client, context, path) => {
      const share = state.memoryBudget.open();
      try {
        await sendReport(read, { client, context, path, share });
        await client.drained();
      } finally {
        share.leave();
      }
    };
  }

  async function sendReport(read: ReadReport, { client, context, path, share }: ReportRequest): Promise<void> {
    const caller = await authenticate(client);
    if (caller.ok && !share.enter(caller.value.key)) return void sendFailure(client, OVERLOADED, context);
    const result = caller.ok ? await read(caller.value, client, path) : err(caller.failure.failure);
    const failure = result.ok ? undefined : result.failure;
    const limits = caller.ok
      ? await remainingLimits.fromStore({ chargedScopes: chargedScopesOf(caller.value), failure })
      : remainingLimits.fromMemory(caller.failure);
    const replyContext = { ...context, ...limits };
    if (!result.ok) return void sendFailure(client, result.failure, replyContext);
    const json = JSON.stringify(result.value);
    if (share.take(bytesIn(json))) sendJson(client, replyContext, json);
    else sendFailure(client, OVERLOADED, replyContext);
  }
}

type ReadReport = (caller: Caller, client: HttpExchange, path: string) => Promise<Result<unknown, Failure>>;

interface ReportRequest {
  readonly client: HttpExchange;
  readonly context: RequestContext;
  readonly path: string;
  readonly share: RequestMemory;
}

/** A value that is created at its first use: on Workers a request needs one route. */
function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The beginning of the path of one model. Model names may contain slashes. */
const ONE_MODEL = '/models/';

function routeAt(routes: ReadonlyMap<string, Route>, path: string): Route | undefined {
  const [beginning] = /^(\/v1)?\/models\/(?=.)/.exec(path) ?? [path];
  return routes.get(beginning);
}

/** The model that a path names. A name with broken escapes stays as written. */
function modelIn(path: string): string {
  const name = path.slice(path.indexOf(ONE_MODEL) + ONE_MODEL.length);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
