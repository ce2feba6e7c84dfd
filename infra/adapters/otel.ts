// How do spans reach an OpenTelemetry collector? By OpenTelemetry's own SDK, as OTLP over HTTP in JSON, in batches, behind everybody's back.
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from '#core/ports/clock.ts';
import type { Attributes, OpenSpan, Origin, Tracer } from '#core/ports/tracer.ts';
import { reasonOf } from './reason.ts';

export interface OtelDependencies {
  /** Where spans go: with `/v1/traces` at its end. Headers, compression and certificates are what the SDK reads from the environment. */
  readonly url: string;
  /** What spans call the process where `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` do not. */
  readonly service: string;
  /** As `OTEL_TRACES_SAMPLER` names them. */
  readonly sampler: `${'' | 'parentbased_'}${'always_on' | 'always_off' | 'traceidratio'}`;
  /** The share that is followed, where the sampler asks for one. */
  readonly share: number;
  readonly log: Log;
}

export interface OtelTracer extends Tracer {
  /** Sends what is left; waits at most two seconds. */
  close(): Promise<void>;
}

/** Milliseconds. Beyond 2048 spans that wait, the SDK drops what comes: a collector that is away costs no memory. */
const GATHER = 1_000;
const GIVE_UP_AFTER = 2_000;
/** Of one attribute: names are long, nothing else is. */
const LONGEST = 1_024;

const propagator = new W3CTraceContextPropagator();

export function createOtelTracer({ url, service, sampler, share, log }: OtelDependencies): OtelTracer {
  const tell = (error: unknown) => log.warn('spans were not taken', { why: reasonOf(error) });
  setGlobalErrorHandler(tell);
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: GIVE_UP_AFTER });
  const batches = new BatchSpanProcessor({ exporter, scheduledDelayMillis: GATHER });
  const provider = new TracerProvider({
    // The later wins.
    resource: resourceFromAttributes({ 'service.name': service }).merge(detectResources({ detectors: [envDetector] })),
    sampler: toSampler(sampler, share),
    spanLimits: { attributeValueLengthLimit: LONGEST },
    spanProcessors: [batches],
  });
  const tracer = provider.getTracer('gateway-operator');

  const tracerAt = (above: Context | undefined): Tracer => {
    const begin = (name: string, attributes: Attributes, origin: Origin = {}): OpenSpan => {
      const from = above ?? contextOf(origin.parent);
      const kind =
        origin.kind === 'client' ? SpanKind.CLIENT : above === undefined ? SpanKind.SERVER : SpanKind.INTERNAL;
      const span = tracer.startSpan(name, { kind, attributes: { ...attributes } }, from);
      const at = trace.setSpan(from, span);
      const place = placeOf(at);
      let ended = false;
      return {
        ...tracerAt(at),
        ...(place === undefined ? {} : { place }),
        add: (more) => void span.setAttributes({ ...more }),
        fail: (why) => void span.setStatus({ code: SpanStatusCode.ERROR, message: why.slice(0, LONGEST) }),
        end: () => {
          if (!ended) span.end();
          ended = true;
        },
      };
    };
    return {
      begin,
      span: async (name, attributes, work, origin) => {
        const span = begin(name, attributes, origin);
        try {
          return await work(span);
        } catch (error) {
          span.fail(reasonOf(error));
          throw error;
        } finally {
          span.end();
        }
      },
    };
  };

  return { ...tracerAt(undefined), close: () => within(GIVE_UP_AFTER, provider.shutdown().catch(tell)) };
}

/** Ends with the work, or without it. */
async function within(millis: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, millis);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

function toSampler(name: OtelDependencies['sampler'], share: number): Sampler {
  if (name.startsWith('parentbased_')) return new ParentBasedSampler({ root: rootOf(name.slice(12), share) });
  return rootOf(name, share);
}

function rootOf(name: string, share: number): Sampler {
  if (name === 'traceidratio') return new TraceIdRatioBasedSampler(share);
  return name === 'always_off' ? new AlwaysOffSampler() : new AlwaysOnSampler();
}

function contextOf(traceparent: string | undefined): Context {
  if (traceparent === undefined) return ROOT_CONTEXT;
  return propagator.extract(ROOT_CONTEXT, traceparent, {
    get: (text, name) => (name === 'traceparent' ? text : undefined),
    keys: () => [],
  });
}

function placeOf(context: Context): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagator.inject(context, carrier, {
    set: (to, name, value) => {
      if (name === 'traceparent') to.traceparent = value;
    },
  });
  return carrier.traceparent;
}
