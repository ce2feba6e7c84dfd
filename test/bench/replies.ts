// Replies of the bench's provider: the same bytes every time, plain, as a stream of a few packets, or one event per packet.

export type Kind = 'plain' | 'streamed' | 'paced';

const WORDS: Readonly<Record<Kind, number>> = { plain: 20, streamed: 20, paced: 200 };
/** Milliseconds between two paced events. */
export const PACE = 20;
const FRAME = { id: 'chatcmpl-bench', created: 0, model: 'sample-small' };

const usage = (words: number) => ({ prompt_tokens: 24, completion_tokens: words, total_tokens: 24 + words });
export const USAGE_OF = { plain: usage(WORDS.plain), streamed: usage(WORDS.streamed), paced: usage(WORDS.paced) };

export const WHOLE = answer(
  'application/json',
  JSON.stringify({
    ...FRAME,
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'word '.repeat(WORDS.plain) }, finish_reason: 'stop' },
    ],
    usage: USAGE_OF.plain,
  }),
);

export const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
/** Events as chunks of HTTP/1.1; the last one ends the body. */
export const PACKETS = { streamed: packetsOf('streamed'), paced: packetsOf('paced') };
export const EVENTS_OF: Readonly<Record<Kind, number>> = {
  plain: 0,
  streamed: PACKETS.streamed.length,
  paced: PACKETS.paced.length,
};

function packetsOf(kind: Kind): ReadonlyArray<string> {
  const event = (data: object) => `data: ${JSON.stringify({ ...FRAME, object: 'chat.completion.chunk', ...data })}\n\n`;
  const choice = (delta: object, finish: string | null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] });
  const events = [
    ...Array.from({ length: WORDS[kind] }, () => event(choice({ content: 'word ' }, null))),
    event(choice({}, 'stop')),
    event({ choices: [], usage: USAGE_OF[kind] }),
    'data: [DONE]\n\n',
  ];
  const last = events.length - 1;
  return events.map((text, at) => {
    const size = Buffer.byteLength(text).toString(16);
    return `${size}\r\n${text}\r\n${at === last ? '0\r\n\r\n' : ''}`;
  });
}

function answer(type: string, body: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
