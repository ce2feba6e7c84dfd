// Attributes of a request's span: the status of the reply, and the fields of the log line at the request's end.
import type { ServerResponse } from 'node:http';
import { type Attributes, type Span, SpanStatusCode } from '@opentelemetry/api';
import { createLru } from '#core/caches/lru.ts';

/**
 * Ends the span after the reply's last byte or when the client has left, and, where the reply has an id, with the line
 * of that request.
 */
export function followReply(outgoing: ServerResponse, span: Span, meeting: SpanMeeting): void {
  const writeHead = outgoing.writeHead.bind(outgoing) as (...head: unknown[]) => ServerResponse;
  let id: unknown;
  outgoing.writeHead = (...head: unknown[]) => {
    id = (head.at(-1) as Readonly<Record<string, unknown>>)[REQUEST_ID];
    return writeHead(...head);
  };
  outgoing.once('close', () => {
    if (outgoing.headersSent) {
      span.setAttribute('http.response.status_code', outgoing.statusCode);
      if (outgoing.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    }
    if (typeof id === 'string') meeting.meet(id, { span });
    else span.end();
  });
}

const REQUEST_ID = 'x-request-id';

/** One of the two halves of a complete span: the end of the reply, or the line of the request. */
interface Half {
  readonly span?: Span;
  readonly fields?: Fields;
}

export type SpanMeeting = ReturnType<typeof createMeeting>;

/** The maximum number of waiting halves; above it the oldest is dropped. */
const MAX_WAITING = 2_000;

/**
 * Spans whose request has no line yet, and lines whose reply is not over, by the id of the request. A stream's line is
 * written where its upstream's bytes arrive, in the asynchronous context of the request that opened that connection.
 */
export function createMeeting() {
  const waiting = createLru<Half>(MAX_WAITING, { onEvict: ({ span }) => span?.end() });
  return {
    meet: (id: string, half: Half): void => {
      const { span, fields } = { ...waiting.get(id), ...half };
      waiting.delete(id);
      if (span !== undefined && fields !== undefined) {
        addLine(span, 'request', fields);
        span.end();
        return;
      }
      waiting.set(id, half);
    },
    /** Ends the spans whose lines have not come. */
    end: (): void => {
      for (const { span } of waiting.values()) span?.end();
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The lines that a request, a review and a run end with, and the fields of each that its span has too: never an alias,
 * an address or free text.
 */
const LINES: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  [
    'request',
    [
      ...['requestId', 'key', 'model', 'stream', 'identifier', 'attempts', 'upstreamStatus'],
      ...['tokens', 'cost', 'estimated', 'code', 'end'],
    ],
  ],
  ['admission', ['kind', 'namespace', 'name', 'operation', 'dryRun', 'allowed', 'rules']],
  ['reconciled', ['observed', 'actions', 'failed']],
]);

/** Attributes that OpenTelemetry's conventions name; all others are `gateway_operator.` and the field's own name. */
const NAMES: Readonly<Record<string, string>> = {
  requestId: 'gateway_operator.request_id',
  namespace: 'k8s.namespace.name',
  model: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  'tokens.input': 'gen_ai.usage.input_tokens',
  'tokens.output': 'gen_ai.usage.output_tokens',
  identifier: 'gateway_operator.model_entry',
  cost: 'gateway_operator.cost_dollars',
  dryRun: 'gateway_operator.dry_run',
  code: 'error.type',
};

export function addLine(span: Span | undefined, message: string, fields: Fields): void {
  if (span === undefined) return;
  for (const name of LINES.get(message) ?? []) span.setAttributes(attributesOf(name, fields[name]));
  if (message === 'request' && (fields.end === 'broken' || fields.end === 'timeout'))
    span.setStatus({ code: SpanStatusCode.ERROR, message: fields.end });
}

/** A list of texts is one attribute, an object one for each of its members. */
function attributesOf(name: string, value: unknown): Attributes {
  if (value === undefined || value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) {
    return Object.assign({}, ...Object.entries(value).map(([member, one]) => attributesOf(`${name}.${member}`, one)));
  }
  return { [NAMES[name] ?? `gateway_operator.${name}`]: value as Attributes[string] };
}
