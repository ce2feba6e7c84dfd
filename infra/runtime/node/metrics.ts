// The page of a process's metrics: on a port of its own in Pods, at the root in the local stack, nowhere on Workers
// (DESIGN 7).
import type { InstanceIdentity } from '#core/ports/backends.ts';
import type { HttpExchange, HttpHandler } from '#core/ports/http-exchange.ts';
import type { Metrics } from '#core/ports/telemetry.ts';
import type { Handler } from './serve.ts';

type Labels = Readonly<Record<string, string>>;
interface MetricsSource {
  render(): Promise<string>;
}
type Fetch<Rest extends readonly unknown[]> = (request: Request, ...rest: Rest) => Response | Promise<Response>;

const TEXT = 'text/plain; version=0.0.4';

/** Metrics of one instance, which they name: `gateway_instance="NAMESPACE/NAME"`. */
export function metricsOf(
  metrics: Metrics,
  { namespace, name }: Pick<InstanceIdentity, 'namespace' | 'name'>,
): Metrics {
  const instance: Labels = { gateway_instance: `${namespace}/${name}` };
  const known = new WeakMap<Labels, Labels>();
  const joined = (own: Labels | undefined): Labels => {
    if (own === undefined) return instance;
    const before = known.get(own);
    if (before !== undefined) return before;
    const both = { ...own, ...instance };
    known.set(own, both);
    return both;
  };
  return {
    add: (metric, own, by) => metrics.add(metric, joined(own), by),
    set: (metric, value, own) => metrics.set(metric, value, joined(own)),
    observe: (metric, seconds, own) => metrics.observe(metric, seconds, joined(own)),
  };
}

/** The handler with `GET /metrics` at its root, and below a prefix of its paths (admission's segment). */
export function withMetrics<Rest extends readonly unknown[]>(metrics: MetricsSource, fetch: Fetch<Rest>): Fetch<Rest> {
  return async (request, ...rest) => {
    const isAsked = request.method === 'GET' && new URL(request.url).pathname.endsWith('/metrics');
    if (!isAsked) return fetch(request, ...rest);
    return new Response(await metrics.render(), { headers: { 'content-type': TEXT } });
  };
}

/** Paths of the kubelet's probes. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/**
 * The handler of a port for metrics, and for the probes of a function whose clients may take all connections of its own
 * port.
 */
export function metricsOnly(metrics: MetricsSource, probed?: Handler): HttpHandler {
  return async (client) => {
    const { method, path } = client;
    if (probed !== undefined && PROBES.has(path)) return sendProbe(client, probed);
    const isAsked = method === 'GET' && path === '/metrics';
    client.begin(isAsked ? 200 : 404, { 'content-type': TEXT });
    client.end(isAsked ? await metrics.render() : 'GET /metrics is all there is here\n');
  };
}

async function sendProbe(client: HttpExchange, probed: Handler): Promise<void> {
  if ('handle' in probed) return probed.handle(client);
  const reply = await probed.fetch(new Request(`http://probe${client.path}`));
  client.begin(reply.status, { 'content-type': TEXT });
  client.end(await reply.text());
}
