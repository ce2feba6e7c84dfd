// Routes of a gateway: one instance at its root, and the same under /v1 for clients that insist on it.
import type { Failure } from '#core/failure.ts';
import type { HttpExchange, HttpHandler } from '#core/ports/http-exchange.ts';
import { reasonOf } from '#core/reason.ts';
import type { Result } from '#core/result.ts';
import { type Caller, createAuthenticate } from './authenticate.ts';
import { createBodies } from './body.ts';
import { createCooldowns } from './cooldown.ts';
import type { GatewayDeps } from './deps.ts';
import { createHandle, type RequestMemory } from './handle.ts';
import { createListModels, createOwnKey } from './own-key.ts';
import { createPolicyCache, createPolicyMemory, type PolicyMemory } from './policy-cache.ts';
import { contextOf, type RequestContext, refuse, sendJson, sendText } from './respond.ts';
import type { Api } from './wire/api.ts';
import { APIS } from './wire/apis.ts';
import type { ErrorFormat } from './wire/error-format.ts';

interface Route {
  readonly method: 'GET' | 'POST';
  readonly errors?: ErrorFormat;
  answer(client: HttpExchange, context: RequestContext): Promise<void>;
}

/**
 * State of a gateway that outlives a request: one for as long as the process, or the isolate, lives. Plain data: on Workers, I/O of one
 * request cannot serve another.
 */
export function createMemory(
  deps: Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>,
): RequestMemory & { readonly policies: PolicyMemory } {
  return {
    policies: createPolicyMemory(),
    bodies: createBodies(),
    access: new Map(),
    cooldowns: createCooldowns(deps),
  };
}

/** One gateway for a process; on Workers, where each request has I/O of its own, one for each request over a shared memory. */
export function createGateway(deps: GatewayDeps, memory = createMemory(deps)): HttpHandler {
  const routes = createRoutes(deps, memory);

  return async function gateway(client, path = client.path) {
    if (path === '/healthz') return sendText(client, 200, 'ok');
    const snapshot = deps.snapshots.current();
    if (path === '/readyz') {
      return snapshot === undefined ? sendText(client, 503, 'no configuration yet') : sendText(client, 200, 'ok');
    }
    const route = routes.get(path);
    const context = contextOf(client, deps.ids, { blockedMessage: snapshot?.blockedMessage, errors: route?.errors });
    if (route === undefined) return void refuse(client, { code: 'not_found', path }, context);
    if (route.method !== client.method)
      return void refuse(client, { code: 'method_not_allowed', allow: route.method }, context);
    try {
      await route.answer(client, context);
    } catch (error) {
      const { requestId } = context;
      const stack = error instanceof Error ? error.stack : undefined;
      deps.log.error('a request failed for a reason of ours', { requestId, why: reasonOf(error), stack });
      // A reply that has begun cannot become a refusal any more.
      if (client.hasBegun()) client.destroy();
      else refuse(client, { code: 'internal_error' }, context);
    }
  };
}

/** Routes by path, with and without `/v1`: those that spend, each an API, and those that only report. */
export function createRoutes(deps: GatewayDeps, memory = createMemory(deps)): ReadonlyMap<string, Route> {
  const authenticate = createAuthenticate(deps, createPolicyCache(deps, memory.policies));
  const routes: ReadonlyArray<readonly [string, Route]> = [
    ...APIS.map((api) => [api.path, spending(api)] as const),
    ['/models', { method: 'GET', answer: report(createListModels(deps)) }],
    ['/key', { method: 'GET', answer: report(createOwnKey(deps)) }],
  ];
  return new Map([...routes, ...routes.map(([path, route]) => [`/v1${path}`, route] as const)]);

  function spending(api: Api): Route {
    return { method: 'POST', errors: api.errors, answer: createHandle(deps, { ...memory, authenticate }, api) };
  }

  function report(read: (caller: Caller) => Promise<Result<unknown, Failure>>): Route['answer'] {
    return async (client, context) => {
      const caller = await authenticate(client);
      const answer = caller.ok ? await read(caller.value) : caller;
      if (answer.ok) sendJson(client, context, answer.value);
      else refuse(client, answer.failure, context);
    };
  }
}
