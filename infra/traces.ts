// Where do spans go, as the environment says?
import type { OtlpTracer } from '#adapters/otlp.ts';
import type { Log } from '#core/ports/clock.ts';

interface Environment {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
  readonly OTEL_EXPORTER_OTLP_HEADERS: string;
  readonly OTEL_SERVICE_NAME?: string | undefined;
}

/** Undefined where no endpoint is configured: then nothing is loaded, and nothing is traced. */
export async function openTraces(environment: Environment, name: string, log: Log): Promise<OtlpTracer | undefined> {
  const endpoint = environment.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return undefined;
  const { createOtlpTracer } = await import('#adapters/otlp.ts');
  const pairs = environment.OTEL_EXPORTER_OTLP_HEADERS.split(',').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at < 1 ? [] : [[pair.slice(0, at).trim(), decode(pair.slice(at + 1).trim())] as const];
  });
  const service = environment.OTEL_SERVICE_NAME ?? name;
  return createOtlpTracer({ endpoint, headers: Object.fromEntries(pairs), service, fetch, log });
}

/** Values are percent-encoded; one that is not is taken as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
