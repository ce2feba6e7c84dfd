// Which routes has a gateway? One instance, at its root; the same under /v1 for clients that insist on it.

import { type Context, Hono } from 'hono';
import type { Failure } from '#core/failure.ts';
import type { Connection } from '#core/ports/connection.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Result } from '#core/result.ts';
import { type Caller, createAuthenticate } from './authenticate.ts';
import type { Background, GatewayDeps, Visit } from './deps.ts';
import { createHandle } from './handle.ts';
import { createMemory } from './memory.ts';
import { createListModels } from './models.ts';
import { createOwnKey } from './own-key.ts';
import { createPolicyCache } from './policy-cache.ts';
import { nameHeaders, namesOf, toJson, toRefusal } from './respond.ts';
import { dialects } from './wire/dialects.ts';

/** What each path is asked with. */
const METHODS: ReadonlyMap<string, 'GET' | 'POST'> = new Map([
  ['/chat/completions', 'POST'],
  ['/models', 'GET'],
  ['/key', 'GET'],
]);

/** `waited`: for so long the database was asked who it is. */
type Answer = (caller: Caller, waited: Millis) => Promise<Result<unknown, Failure>>;

/** Where each request has I/O of its own (Workers), an app is made for each, and they share the memory. */
export function createGateway(deps: GatewayDeps, { policies, health } = createMemory(deps)): Hono {
  const authenticate = createAuthenticate(deps, createPolicyCache(deps, policies));
  const handle = createHandle(deps, authenticate, dialects, health);
  const listModels = createListModels(deps);
  const ownKey = createOwnKey(deps);
  const keep = createKeep();
  const app = new Hono();

  for (const base of ['', '/v1']) {
    app.post(`${base}/chat/completions`, (c) => keep(c, (visit) => handle(c.req.raw, visit)));
    app.get(`${base}/models`, (c) => tell(c, listModels));
    app.get(`${base}/key`, (c) => tell(c, ownKey));
  }
  app.get('/healthz', (c) => c.text('ok'));
  app.get('/readyz', (c) => (deps.snapshots.current() ? c.text('ok') : c.text('no configuration yet', 503)));
  // A route that would answer every method beside these costs each request of theirs a chain of handlers (Hono).
  app.notFound((c) => {
    const { path } = c.req;
    const allow = METHODS.get(path.replace(/^\/v1/, ''));
    return refuse(allow === undefined ? { code: 'not_found', path } : { code: 'method_not_allowed', allow }, c);
  });
  app.onError((error, c) => {
    const response = refuse({ code: 'internal_error' }, c);
    const requestId = response.headers.get('x-request-id');
    deps.log.error('a request failed for a reason of ours', { requestId, why: error.message, stack: error.stack });
    return response;
  });
  return app;

  async function tell(c: Context, answer: Answer): Promise<Response> {
    const arrived = deps.clock.now();
    const caller = await authenticate(c.req.raw);
    const told = caller.ok ? await answer(caller.value, deps.clock.now() - arrived) : caller;
    return told.ok ? toJson(200, told.value, nameHeaders(namesOf(c.req.raw, deps.ids))) : refuse(told.failure, c);
  }

  function refuse(failure: Failure, c: Context): Response {
    return toRefusal(failure, namesOf(c.req.raw, deps.ids)).response;
  }
}

/** Runs requests to their end also where the platform drops what has no response to give any more (Workers). */
function createKeep() {
  /** Hono throws where there is no execution context, and a platform either has one or it has not. */
  let resident = false;
  const stays: Background = (work) => void work.catch(() => {});
  return function keep(c: Context, run: (visit: Visit) => Promise<Response>): Promise<Response> {
    const background = resident ? stays : backgroundOf(c);
    const answer = run({ background, connection: connectionOf(c) });
    if (background !== stays) background(answer);
    return answer;
  };

  function backgroundOf(c: Context): Background {
    try {
      const { executionCtx } = c;
      return (work) => executionCtx.waitUntil(work);
    } catch {
      resident = true;
      return stays;
    }
  }
}

/** Lent by a platform that has connections. */
function connectionOf(c: Context): Connection | undefined {
  return typeof c.env?.openReply === 'function' ? c.env : undefined;
}
