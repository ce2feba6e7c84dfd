// The address of all gateways of the stack: `/{namespace}/{name}/…` is the instance's own.
import { type Context, Hono } from 'hono';
import type { Failure } from '../../../functions/core/failure.ts';
import type { Ids, Log } from '../../../functions/core/ports/clock.ts';
import type { Connection } from '../../../functions/core/ports/connection.ts';
import { namesOf, toRefusal } from '../../../functions/gateway/respond.ts';
import type { OpenGateway } from '../../node/gateway.ts';
import type { Gateways } from './gateways.ts';

export interface FrontDependencies {
  /** As much of the running gateways as is needed to pass requests on. */
  readonly gateways: {
    find(...at: Parameters<Gateways['find']>): Promise<Pick<OpenGateway, 'fetch'> | 'absent' | 'unavailable'>;
  };
  readonly ids: Ids;
  readonly log: Log;
}

/** One server for all instances: `/{namespace}/{name}/…` is the instance's own gateway; health stands at the root. What it refuses itself reads as a gateway's own refusals do. */
export function gatewayServer({ gateways, ids, log }: FrontDependencies): Hono<{ Bindings: Connection }> {
  const app = new Hono<{ Bindings: Connection }>();
  app.get('/healthz', (c) => c.text('ok'));
  app.get('/readyz', (c) => c.text('ok'));
  app.all('/:namespace/:name/*', async (c) => {
    const { namespace, name } = c.req.param();
    if (namesNone(c.req.path)) return refuse(c, nothingAt(c));
    const runtime = await gateways.find(namespace, name);
    // A key of an instance that is not there is a key nobody knows (DESIGN 10, Keys); not knowing is another thing.
    if (runtime === 'absent') return refuse(c, { code: 'invalid_api_key' });
    if (runtime === 'unavailable') return refuse(c, { code: 'ledger_unavailable', why: 'the gateway is not up' });
    const url = new URL(c.req.url);
    // A client may have written the names with escapes: what was read of them is shorter.
    url.pathname = `/${url.pathname.split('/').slice(3).join('/')}`;
    return runtime.fetch(at(url.href, c.req.raw), c.env);
  });
  app.notFound((c) => refuse(c, nothingAt(c)));
  app.onError((error, c) => {
    const response = refuse(c, { code: 'internal_error' });
    const requestId = response.headers.get('x-request-id');
    log.error('a request failed for a reason of ours', { requestId, why: error.message, stack: error.stack });
    return response;
  });
  return app;

  function refuse(c: Context, failure: Failure): Response {
    return toRefusal(failure, namesOf(c.req.raw, ids)).response;
  }
}

const nothingAt = (c: Context): Failure => ({ code: 'not_found', path: c.req.path, base: '/{namespace}/{name}' });

/** A base address without its instance: as it stands it would be one whose key nobody knows. */
const namesNone = (path: string): boolean =>
  path.split('/').slice(3).join('') === '' || path === '/v1/chat/completions';

/**
 * The same request at another address. Hono's `mount` makes a new `Request`, which begins to read the body, but the body is the
 * instance's to read from the connection; Hono's `route` leaves the 404s and 405s of the instance's gateway behind.
 */
function at(url: string, request: Request): Request {
  const get = (of: Request, name: string | symbol): unknown => {
    if (name === 'url') return url;
    const member: unknown = Reflect.get(of, name, of);
    return typeof member === 'function' ? member.bind(of) : member;
  };
  return new Proxy(request, { get });
}
