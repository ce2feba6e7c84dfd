// How do spans reach an OpenTelemetry collector? As OTLP over HTTP in JSON, in batches, behind everybody's back.
import { randomBytes } from 'node:crypto';
import type { Log } from '../../functions/core/ports/clock.ts';
import type { Attributes, Span, Tracer } from '../../functions/core/ports/tracer.ts';

export interface OtlpDependencies {
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`: spans go to `/v1/traces` below it. */
  readonly endpoint: string;
  /** `OTEL_EXPORTER_OTLP_HEADERS`, such as a token. */
  readonly headers: Readonly<Record<string, string>>;
  readonly service: string;
  readonly fetch: typeof globalThis.fetch;
  readonly log: Log;
}

export interface OtlpTracer extends Tracer {
  /** Sends what is left; waits at most two seconds. */
  close(): Promise<void>;
}

/** Milliseconds that spans wait for others. */
const GATHER = 1_000;
/** More than this many waiting are dropped: a collector that is away costs no memory. */
const MOST = 4_096;
const BATCH = 512;
const GIVE_UP_AFTER = 2_000;

interface Ended {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: 1 | 2;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: ReadonlyArray<object>;
  readonly status: { readonly code: 0 | 2; readonly message?: string };
}

interface Place {
  readonly traceId: string;
  readonly spanId: string;
}

export function createOtlpTracer(deps: OtlpDependencies): OtlpTracer {
  let waiting: Ended[] = [];
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let sending = Promise.resolve();

  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const spans = waiting;
    waiting = [];
    for (let from = 0; from < spans.length; from += BATCH) {
      const batch = spans.slice(from, from + BATCH);
      sending = sending.then(() => send(deps, batch));
    }
    if (dropped > 0) deps.log.warn('spans were dropped', { dropped });
    dropped = 0;
    return sending;
  };
  const keep = (span: Ended) => {
    if (waiting.length >= MOST) {
      dropped += 1;
      return;
    }
    waiting.push(span);
    timer ??= setTimeout(() => void flush(), GATHER).unref();
  };

  const tracerAt = (above: Place | undefined): Tracer => ({
    span: async (name, attributes, work, parent) => {
      const from = above ?? readParent(parent);
      const at = { traceId: from?.traceId ?? hex(16), spanId: hex(8) };
      const began = nanos();
      const learned = { ...attributes };
      let failure: string | undefined;
      const span: Span = {
        ...tracerAt(at),
        add: (more) => void Object.assign(learned, more),
        fail: (why) => {
          failure = why;
        },
      };
      try {
        return await work(span);
      } catch (error) {
        failure = error instanceof Error ? error.message : String(error);
        throw error;
      } finally {
        keep({
          ...at,
          ...(from === undefined ? {} : { parentSpanId: from.spanId }),
          name,
          kind: above === undefined ? 2 : 1,
          startTimeUnixNano: began,
          endTimeUnixNano: nanos(),
          attributes: toAttributes(learned),
          status: failure === undefined ? { code: 0 } : { code: 2, message: failure },
        });
      }
    },
  });

  return { ...tracerAt(undefined), close: flush };
}

async function send({ endpoint, headers, service, fetch, log }: OtlpDependencies, spans: ReadonlyArray<Ended>) {
  const resource = { attributes: toAttributes({ 'service.name': service }) };
  const body = { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'gateway-operator' }, spans }] }] };
  try {
    const answer = await fetch(`${endpoint.replace(/\/+$/, '')}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(GIVE_UP_AFTER),
    });
    await answer.text();
    if (!answer.ok) log.warn('spans were not taken', { status: answer.status, spans: spans.length });
  } catch (error) {
    log.warn('spans were not taken', { why: String(error), spans: spans.length });
  }
}

/** `00-<trace>-<span>-<flags>`; anything else begins a trace of our own. */
function readParent(text: string | undefined): Place | undefined {
  const found = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/.exec(text ?? '');
  const [, traceId = '', spanId = ''] = found ?? [];
  return /[1-9a-f]/.test(traceId) && /[1-9a-f]/.test(spanId) ? { traceId, spanId } : undefined;
}

const hex = (bytes: number): string => randomBytes(bytes).toString('hex');

/** A 64-bit integer is a text in OTLP's JSON. */
const nanos = (): string =>
  (BigInt(Math.round(performance.timeOrigin * 1000 + performance.now() * 1000)) * 1000n).toString();

function toAttributes(attributes: Attributes): ReadonlyArray<object> {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === 'string'
        ? { stringValue: value }
        : typeof value === 'boolean'
          ? { boolValue: value }
          : Number.isInteger(value)
            ? { intValue: String(value) }
            : { doubleValue: value },
  }));
}
