// Requests and replies of the bench: the same bytes every time, plain, as a stream of a few packets, or one event per packet.

export type Kind = 'plain' | 'streamed' | 'paced' | 'short' | 'longPlain' | 'longStreamed';

interface Shape {
  readonly words: number;
  readonly isStream: boolean;
  /** Each event is a packet of its own, at the pace of a model. */
  readonly isPaced: boolean;
  readonly promptBytes: number;
  readonly promptTokens: number;
}

const PROMPT = 'Name three things that a gateway in front of a language model has to get right.';
const PLAIN: Shape = {
  ...{ words: 20, isStream: false, isPaced: false },
  ...{ promptBytes: PROMPT.length, promptTokens: 24 },
};
const LONG = { promptBytes: 300_000, promptTokens: 75_000 };
const SHAPES: Readonly<Record<Kind, Shape>> = {
  plain: PLAIN,
  streamed: { ...PLAIN, isStream: true },
  paced: { ...PLAIN, isStream: true, isPaced: true, words: 200 },
  short: { ...PLAIN, isStream: true, isPaced: true },
  longPlain: { ...PLAIN, ...LONG },
  longStreamed: { ...PLAIN, ...LONG, isStream: true },
};
/** Milliseconds between two paced events. */
export const PACE = 20;
const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const FRAME = { id: 'chatcmpl-bench', created: 0, model: 'sample-small' };

/** The body of a request. `user` names the kind of the reply, near the start. */
export function bodyOf(kind: Kind): string {
  const { isStream, promptBytes } = SHAPES[kind];
  // Lines, as documents have them: each ends with an escape.
  const prompt = `${PROMPT}\n`.repeat(Math.ceil(promptBytes / (PROMPT.length + 1))).slice(0, promptBytes);
  return JSON.stringify({
    user: kind,
    model: 'sample-small',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: prompt },
    ],
    max_completion_tokens: 256,
    ...(isStream ? { stream: true } : {}),
  });
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
  return (/"user":"(\w+)"/.exec(body.toString('latin1', 0, 256))?.[1] ?? 'plain') as Kind;
}

function replyOf({ words, isStream, isPaced, promptTokens }: Shape): Reply {
  const usage = { prompt_tokens: promptTokens, completion_tokens: words, total_tokens: promptTokens + words };
  if (!isStream) return { isPaced, events: 0, packets: [whole(words, usage)], usage };
  const chunks = chunksOf(words, usage);
  return { isPaced, events: chunks.length, packets: [STREAM_HEAD, ...chunks], usage };
}

function whole(words: number, usage: object): string {
  const message = { role: 'assistant', content: 'word '.repeat(words) };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  const body = JSON.stringify({ ...FRAME, object: 'chat.completion', choices, usage });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

function chunksOf(words: number, usage: object): ReadonlyArray<string> {
  const event = (data: object) => `data: ${JSON.stringify({ ...FRAME, object: 'chat.completion.chunk', ...data })}\n\n`;
  const choice = (delta: object, finish: string | null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] });
  const events = [
    ...Array.from({ length: words }, () => event(choice({ content: 'word ' }, null))),
    event(choice({}, 'stop')),
    event({ choices: [], usage }),
    'data: [DONE]\n\n',
  ];
  const last = events.length - 1;
  return events.map((text, at) => `${text.length.toString(16)}\r\n${text}\r\n${at === last ? '0\r\n\r\n' : ''}`);
}
