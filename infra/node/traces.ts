// Traces of a function on Node: a span for each request, review or run, made around its handler.
import type { Log } from '#core/ports/clock.ts';
import type { TracesEnvironment } from '../config/environments.ts';
import type { Traces } from './otel.ts';

/** The requests of each function that are traced. */
const ROUTES = {
  admission: ['/mutate', '/validate'],
  reconcile: ['/'],
  gateway: ['/chat/completions'],
};

const NO_TRACES: Traces = {
  request: (_, __, handle) => handle(),
  logged: (log) => log,
  sent: (send) => send,
  close: async () => undefined,
};

/** Without an endpoint in the environment nothing is loaded, and nothing is traced. */
export async function openTraces(environment: TracesEnvironment, name: keyof typeof ROUTES, log: Log): Promise<Traces> {
  const url = environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? below(environment.OTEL_EXPORTER_OTLP_ENDPOINT);
  if (url === undefined) return NO_TRACES;
  const { createTraces } = await import('./otel.ts');
  return createTraces({
    url,
    service: `gateway-operator-${name}`,
    sampler: environment.OTEL_TRACES_SAMPLER,
    share: environment.OTEL_TRACES_SAMPLER_ARG,
    routes: ROUTES[name],
    log,
  });
}

/** As the specification of OTLP over HTTP has it. */
const below = (endpoint: string | undefined): string | undefined =>
  endpoint === undefined ? undefined : `${endpoint.replace(/\/+$/, '')}/v1/traces`;
