// Where do the stack's functions listen, and what do they answer at their roots?
import { Hono } from 'hono';
import type { Metrics } from '#core/ports/clock.ts';
import type { Gateways } from './gateways.ts';

/** One server for all instances: `/{namespace}/{name}/…` is the instance's own gateway; health and metrics stand at the root. */
export function gatewayServer(gateways: Gateways, metrics: Metrics): Hono {
  const app = new Hono();
  app.get('/healthz', (c) => c.text('ok'));
  app.get('/readyz', (c) => c.text('ok'));
  app.get('/metrics', (c) => c.text(metrics.render()));
  app.all('/:namespace/:name/*', async (c) => {
    const { namespace, name } = c.req.param();
    const runtime = await gateways.find(namespace, name);
    if (runtime === undefined) return c.json(unknownInstance, 401);
    const url = new URL(c.req.url);
    url.pathname = url.pathname.slice(`/${namespace}/${name}`.length);
    return runtime.fetch(new Request(url, c.req.raw));
  });
  app.notFound((c) => c.json(nothingHere, 404));
  return app;
}

/** A key of an instance that is not there is a key nobody knows (DESIGN 10, Keys). */
const unknownInstance = {
  error: {
    message:
      'This key is not valid here. Check the key and the base address; `kubectl get gatewayinstances -A` shows the addresses.',
    type: 'authentication_error',
    param: null,
    code: 'invalid_api_key',
  },
};

const nothingHere = {
  error: {
    message:
      'Nothing is served at this path. An instance is at /{namespace}/{name}; `kubectl get gatewayinstances -A` shows the addresses.',
    type: 'invalid_request_error',
    param: null,
    code: 'not_found',
  },
};
