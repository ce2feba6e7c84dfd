// Spans of served requests, sent by OpenTelemetry's own SDK: OTLP over HTTP in JSON, in batches, beside the requests.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Context, defaultTextMapGetter, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Log } from '#core/ports/telemetry.ts';
import type { TracesEnvironment } from '../config/environments.ts';
import { addLine, createMeeting, followReply } from './request-spans.ts';

export type Traces = ReturnType<typeof createTraces>;

type Send = (request: Request) => Promise<Response>;

/**
 * Ends of the paths whose POST requests are traced. Path segments before them (an instance, a secret) are in no span.
 */
const ROUTES = {
  admission: ['/mutate', '/validate'],
  reconcile: ['/'],
  gateway: ['/chat/completions', '/messages', '/messages/count_tokens', '/responses', '/embeddings'],
};

/** Milliseconds. The SDK drops spans beyond 2048 that wait: a collector that is away costs no memory. */
const SEND_EVERY = 1_000;
const TIMEOUT = 2_000;
/** Characters of one attribute. */
const MAX_LENGTH = 1_024;

const propagator = new W3CTraceContextPropagator();

/** The SDK itself reads headers, compression, certificates and another name of the process from the environment. */
export function createTraces(environment: TracesEnvironment, name: keyof typeof ROUTES, log: Log) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = environment;
  // The specification of OTLP over HTTP adds this path to the general endpoint.
  const url = whole ?? `${endpoint?.replace(/(?<!\/)\/+$/, '')}/v1/traces`;
  const report = (error: unknown) => log.warn('traces: the collector refused spans', { why: reasonOf(error) });
  setGlobalErrorHandler(report);
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: TIMEOUT });
  const provider = new TracerProvider({
    // Attributes from the environment win.
    resource: resourceFromAttributes({ 'service.name': `gateway-operator-${name}` }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: toSampler(environment),
    spanLimits: { attributeValueLengthLimit: MAX_LENGTH },
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: SEND_EVERY })],
  });
  const tracer = provider.getTracer('gateway-operator');
  const contexts = new AsyncLocalStorage<Context>();
  const meeting = createMeeting();

  return {
    /**
     * Runs `handle` in a span that lasts from the request to the last byte of its reply. A caller's `traceparent` is
     * continued.
     */
    request: <T>(incoming: IncomingMessage, outgoing: ServerResponse, handle: () => T): T => {
      const path = incoming.url?.replace(/\?.*$/s, '') ?? '';
      const route = incoming.method === 'POST' ? ROUTES[name].find((end) => path.endsWith(end)) : undefined;
      if (route === undefined) return handle();
      const caller = propagator.extract(ROOT_CONTEXT, incoming.headers, defaultTextMapGetter);
      const attributes = { 'http.request.method': 'POST', 'http.route': route };
      const span = tracer.startSpan(`POST ${route}`, { kind: SpanKind.SERVER, attributes }, caller);
      if (span.isRecording()) followReply(outgoing, span, meeting);
      return contexts.run(trace.setSpan(caller, span), handle);
    },
    /** The log, whose line at the end of a request also goes to the request's span. */
    logged: (inner: Log): Log => {
      const write =
        (level: keyof Log) =>
        (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
          const { requestId } = fields;
          if (message === 'request' && typeof requestId === 'string') meeting.meet(requestId, { fields });
          else addLine(trace.getSpan(contexts.getStore() ?? ROOT_CONTEXT), message, fields);
          inner[level](message, fields);
        };
      return { info: write('info'), warn: write('warn'), error: write('error') };
    },
    /** The given `send`, with the `traceparent` of the request that is being served. */
    sent:
      (send: Send): Send =>
      (request) => {
        const context = contexts.getStore();
        if (context !== undefined)
          propagator.inject(context, request.headers, { set: (headers, ...header) => headers.set(...header) });
        return send(request);
      },
    /** Sends the remaining spans; waits at most two seconds. */
    close: (): Promise<void> => {
      meeting.end();
      // The end of a process does not wait for a collector that is away; nor does the timer wait.
      return Promise.race([provider.shutdown().catch(report), pause(TIMEOUT, undefined, { ref: false })]);
    },
  };
}

/** The sampler of the environment: `always_on` and `always_off` are the shares 1 and 0. */
function toSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share }: TracesEnvironment) {
  const always = name.endsWith('always_on') ? 1 : 0;
  const root = new TraceIdRatioBasedSampler(name.endsWith('traceidratio') ? share : always);
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}
