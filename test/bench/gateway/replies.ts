// Requests and replies of the bench: the same bytes every time, plain, as a stream of a few packets, or one event per
// packet.
import { DIALECTS, type Route } from './dialects.ts';

export type Kind = 'plain' | 'streamed' | 'paced' | 'short' | 'longPlain' | 'longStreamed' | OfRoute;

/** A route other than chat completions, plain and streamed. */
type OfRoute = Exclude<Route, 'chat'> | `${Exclude<Route, 'chat' | 'embeddings'>}Streamed`;

interface Shape {
  readonly route: Route;
  readonly words: number;
  readonly isStream: boolean;
  /** Each event is a packet of its own, at the pace of a model. */
  readonly isPaced: boolean;
  readonly promptBytes: number;
  readonly promptTokens: number;
}

const PROMPT = 'Name three things that a gateway in front of a language model has to get right.';
const PLAIN: Shape = {
  route: 'chat',
  words: 20,
  isStream: false,
  isPaced: false,
  promptBytes: PROMPT.length,
  promptTokens: 24,
};
const LONG = { promptBytes: 300_000, promptTokens: 75_000 };
const SHAPES: Readonly<Record<Kind, Shape>> = {
  plain: PLAIN,
  streamed: { ...PLAIN, isStream: true },
  paced: { ...PLAIN, isStream: true, isPaced: true, words: 200 },
  short: { ...PLAIN, isStream: true, isPaced: true },
  longPlain: { ...PLAIN, ...LONG },
  longStreamed: { ...PLAIN, ...LONG, isStream: true },
  messages: { ...PLAIN, route: 'messages' },
  messagesStreamed: { ...PLAIN, route: 'messages', isStream: true },
  translated: { ...PLAIN, route: 'translated' },
  translatedStreamed: { ...PLAIN, route: 'translated', isStream: true },
  responses: { ...PLAIN, route: 'responses' },
  responsesStreamed: { ...PLAIN, route: 'responses', isStream: true },
  embeddings: { ...PLAIN, route: 'embeddings', words: 0 },
};
/** Milliseconds between two paced events. */
export const PACE = 20;
const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

/** The path and the body of a request. The prompt names the kind of the reply, near the start. */
export function requestOf(kind: Kind): { readonly path: string; readonly body: string } {
  const { route, isStream, promptBytes } = SHAPES[kind];
  const { path, body } = DIALECTS[route];
  // Lines, as documents have them: each ends with an escape.
  const prompt = `${PROMPT}\n`.repeat(Math.ceil(promptBytes / (PROMPT.length + 1))).slice(0, promptBytes);
  const asked = body(`bench:${kind} ${prompt}`);
  return { path, body: JSON.stringify({ ...asked, ...(isStream ? { stream: true } : {}) }) };
}

export interface Reply {
  readonly isPaced: boolean;
  /** Events, 0 for plain replies. */
  readonly events: number;
  /** The whole reply, or the head of a stream and its events as chunks of HTTP/1.1; the last one ends the body. */
  readonly packets: ReadonlyArray<string>;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

export const REPLIES = Object.fromEntries(
  Object.entries(SHAPES).map(([kind, shape]) => [kind, replyOf(shape)]),
) as unknown as Readonly<Record<Kind, Reply>>;

/** The kind that a request asks for. */
export function kindOf(body: Buffer): Kind {
  return (/bench:(\w+)/.exec(body.toString('latin1', 0, 256))?.[1] ?? 'plain') as Kind;
}

function replyOf({ route, isStream, isPaced, ...size }: Shape): Reply {
  const { whole, events } = DIALECTS[route];
  const usage = { prompt_tokens: size.promptTokens, completion_tokens: size.words };
  if (!isStream || events === undefined) {
    const body = JSON.stringify(whole(size));
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    return { isPaced, events: 0, packets: [head + body], usage };
  }
  const chunks = toChunks(events(size));
  return { isPaced, events: chunks.length, packets: [STREAM_HEAD, ...chunks], usage };
}

function toChunks(events: ReadonlyArray<string>): ReadonlyArray<string> {
  const last = events.length - 1;
  return events.map((text, at) => `${text.length.toString(16)}\r\n${text}\r\n${at === last ? '0\r\n\r\n' : ''}`);
}
