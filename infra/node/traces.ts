// Where do spans go, as the environment says?
import type { OtelTracer } from '#adapters/otel.ts';
import type { Log } from '#core/ports/clock.ts';
import type { TracesEnvironment } from '../config/environments.ts';

/** Undefined where no endpoint is configured: then nothing is loaded, and nothing is traced. */
export async function openTraces(
  environment: TracesEnvironment,
  name: string,
  log: Log,
): Promise<OtelTracer | undefined> {
  const url = environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? below(environment.OTEL_EXPORTER_OTLP_ENDPOINT);
  if (url === undefined) return undefined;
  const { createOtelTracer } = await import('#adapters/otel.ts');
  return createOtelTracer({
    url,
    service: `gateway-operator-${name}`,
    sampler: environment.OTEL_TRACES_SAMPLER,
    share: environment.OTEL_TRACES_SAMPLER_ARG,
    log,
  });
}

/** As the specification of OTLP over HTTP has it. */
const below = (endpoint: string | undefined): string | undefined =>
  endpoint === undefined ? undefined : `${endpoint.replace(/\/+$/, '')}/v1/traces`;
