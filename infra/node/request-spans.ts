// What a span says of its request: the status of the reply, and what the request's log line says at its end.
import type { ServerResponse } from 'node:http';
import { type Attributes, type Span, SpanStatusCode } from '@opentelemetry/api';

/** Ends the span after the reply's last byte or when the client has left, and, where the reply has an id, with the line of that request. */
export function followReply(outgoing: ServerResponse, span: Span, meeting: Meeting): void {
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
    if (typeof id === 'string') meeting.replied(id, span);
    else span.end();
  });
}

const REQUEST_ID = 'x-request-id';

export interface Meeting {
  replied(id: string, span: Span): void;
  logged(id: string, fields: Fields): void;
  /** Ends the spans whose lines have not come. */
  end(): void;
}

/** The longest that one waits for the other: that many others. */
const MAX_WAITING = 1_000;

/**
 * Spans whose request has no line yet, and lines whose reply is not over, by the id of the request. A stream's line is written
 * where its upstream's bytes arrive, which Node counts to whichever request opened that connection.
 */
export function createMeeting(): Meeting {
  const spans = new Map<string, Span>();
  const lines = new Map<string, Fields>();
  return {
    replied: (id, span) => {
      const fields = lines.get(id);
      lines.delete(id);
      if (fields === undefined) {
        const first = keep(spans, id, span);
        first?.end();
      } else {
        addLine(span, 'request', fields);
        span.end();
      }
    },
    logged: (id, fields) => {
      const span = spans.get(id);
      spans.delete(id);
      if (span === undefined) keep(lines, id, fields);
      addLine(span, 'request', fields);
      span?.end();
    },
    end: () => {
      for (const span of spans.values()) span.end();
    },
  };
}

/** Answers what no longer has a place. */
function keep<T>(waiting: Map<string, T>, id: string, one: T): T | undefined {
  waiting.set(id, one);
  if (waiting.size <= MAX_WAITING) return undefined;
  const [[oldest, first] = []] = waiting;
  if (oldest !== undefined) waiting.delete(oldest);
  return first;
}

type Fields = Readonly<Record<string, unknown>>;

/** The lines that a request, a review and a run end with, and the fields of each that its span says too: never an alias, an address or a text of people. */
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
  identifier: 'gateway_operator.entry',
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
