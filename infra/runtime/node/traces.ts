// Traces of a function on Node: a span for each request, review or run, made around its handler.
import type { createTraces, Traces } from './otel.ts';

const NO_TRACES: Traces = {
  request: (_, __, handle) => handle(),
  logged: (log) => log,
  sent: (send) => send,
  close: async () => undefined,
};

/** Without an endpoint in the environment nothing is loaded, and nothing is traced. */
export async function openTraces(...of: Parameters<typeof createTraces>): Promise<Traces> {
  const [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole }] = of;
  return endpoint === undefined && whole === undefined ? NO_TRACES : (await import('./otel.ts')).createTraces(...of);
}
