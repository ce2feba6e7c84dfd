// Routes of a gateway: one instance at its root, and the same under /v1 for clients that insist on it.
import type { Failure } from '#core/failure.ts';
import type { HttpExchange, HttpHandler } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import { reasonOf } from '#core/reason.ts';
import type { Result } from '#core/result.ts';
import { type Caller, createAuthenticate } from './authenticate.ts';
import { createCooldowns } from './cooldown.ts';
import type { GatewayDeps } from './deps.ts';
import { createHandle, type RequestMemory } from './handle.ts';
import { createListModels } from './models.ts';
import { createOwnKey } from './own-key.ts';
import { createPolicyCache, createPolicyMemory, type PolicyMemory } from './policy-cache.ts';
import { contextOf, type RequestContext, refuse, sendJson, sendText } from './respond.ts';

interface Route {
  readonly method: 'GET' | 'POST';
  answer(client: HttpExchange, context: RequestContext): Promise<void>;
}

/** State of a gateway that outlives a request. Plain data: on Workers, I/O of one request cannot serve another. */
export interface GatewayMemory extends RequestMemory {
  readonly policies: PolicyMemory;
}

/** One for as long as the process, or the isolate, lives. */
export function createMemory(deps: Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>): GatewayMemory {
  return { policies: createPolicyMemory(), access: new WeakMap(), cooldowns: createCooldowns(deps) };
}

/** One gateway for a process; on Workers, where each request has I/O of its own, one for each request over a shared memory. */
export function createGateway(deps: GatewayDeps, memory = createMemory(deps)): HttpHandler {
  const authenticate = createAuthenticate(deps, createPolicyCache(deps, memory.policies));
  const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
    ['/chat/completions', { method: 'POST', answer: createHandle(deps, authenticate, memory) }],
    ['/models', { method: 'GET', answer: report(createListModels(deps)) }],
    ['/key', { method: 'GET', answer: report(createOwnKey(deps)) }],
  ]);

  return async function gateway(client, path = client.path) {
    if (path === '/healthz') return sendText(client, 200, 'ok');
    if (path === '/readyz') return sendReadiness(client);
    const context = contextOf(client, deps.ids, deps.snapshots.current()?.blockedMessage);
    try {
      await answer(client, path, context);
    } catch (error) {
      const { requestId } = context;
      deps.log.error('a request failed for a reason of ours', {
        requestId,
        why: reasonOf(error),
        stack: stackOf(error),
      });
      fail(client, context);
    }
  };

  /** A reply that has begun cannot become a refusal any more. */
  function fail(client: HttpExchange, context: RequestContext): void {
    if (client.hasBegun()) client.destroy();
    else refuse(client, { code: 'internal_error' }, context);
  }

  function sendReadiness(client: HttpExchange): void {
    if (deps.snapshots.current() === undefined) sendText(client, 503, 'no configuration yet');
    else sendText(client, 200, 'ok');
  }

  async function answer(client: HttpExchange, path: string, context: RequestContext): Promise<void> {
    const route = routes.get(path.replace(/^\/v1(?=\/)/, ''));
    if (route === undefined) return void refuse(client, { code: 'not_found', path }, context);
    if (route.method !== client.method)
      return void refuse(client, { code: 'method_not_allowed', allow: route.method }, context);
    await route.answer(client, context);
  }

  /** `waited`: for so long the database was asked who calls. */
  function report(read: (caller: Caller, waited: Millis) => Promise<Result<unknown, Failure>>): Route['answer'] {
    return async (client, context) => {
      const arrived = deps.clock.now();
      const caller = await authenticate(client);
      const answer = caller.ok ? await read(caller.value, deps.clock.now() - arrived) : caller;
      if (answer.ok) sendJson(client, context, answer.value);
      else refuse(client, answer.failure, context);
    };
  }
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
