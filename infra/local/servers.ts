// Where do the stack's functions listen, and what do they answer at their roots?
import { Hono } from 'hono';
import { type Failure, toReply } from '#core/failure.ts';
import type { Metrics } from '#core/ports/clock.ts';
import type { Connection } from '#core/ports/connection.ts';
import type { GatewayRuntime } from './gateway-runtime.ts';
import type { Gateways } from './gateways.ts';

/** As much of the running gateways as is needed to pass requests on. */
interface Instances {
  find(...at: Parameters<Gateways['find']>): Promise<Pick<GatewayRuntime, 'fetch'> | 'absent' | 'unavailable'>;
}

/** One server for all instances: `/{namespace}/{name}/…` is the instance's own gateway; health and metrics stand at the root. */
export function gatewayServer(gateways: Instances, metrics: Metrics): Hono<{ Bindings: Connection }> {
  const app = new Hono<{ Bindings: Connection }>();
  app.get('/healthz', (c) => c.text('ok'));
  app.get('/readyz', (c) => c.text('ok'));
  app.get('/metrics', (c) => c.text(metrics.render()));
  app.all('/:namespace/:name/*', async (c) => {
    const { namespace, name } = c.req.param();
    const runtime = await gateways.find(namespace, name);
    // A key of an instance that is not there is a key nobody knows (DESIGN 10, Keys); not knowing is another thing.
    if (runtime === 'absent') return refuse({ code: 'invalid_api_key' });
    if (runtime === 'unavailable') return refuse({ code: 'ledger_unavailable', why: 'the gateway is not up' });
    const url = new URL(c.req.url);
    url.pathname = url.pathname.slice(`/${namespace}/${name}`.length);
    return runtime.fetch(at(url.href, c.req.raw), c.env);
  });
  app.notFound((c) => refuse({ code: 'not_found', path: c.req.path }));
  return app;
}

/** The same request at another address. A new `Request` made of it would begin to read the body, which is the instance's to read from the connection. */
function at(url: string, request: Request): Request {
  const get = (of: Request, name: string | symbol): unknown => {
    if (name === 'url') return url;
    const member: unknown = Reflect.get(of, name, of);
    return typeof member === 'function' ? member.bind(of) : member;
  };
  return new Proxy(request, { get });
}

function refuse(failure: Failure): Response {
  const { status, error, headers } = toReply(failure);
  return Response.json({ error }, { status, headers });
}
