// Metrics of a process on a port of their own: they are not a client's business (DESIGN 7).
import type { Metrics } from '#core/ports/clock.ts';
import { type Served, type ServeOptions, serve } from './serve.ts';

export function serveMetrics(metrics: Metrics, at: Pick<ServeOptions, 'port' | 'host'>): Promise<Served> {
  return serve({
    ...at,
    fetch: ({ url }) =>
      new URL(url).pathname === '/metrics'
        ? new Response(metrics.render(), { headers: { 'content-type': 'text/plain; version=0.0.4' } })
        : new Response('Use GET /metrics.', { status: 404 }),
  });
}
