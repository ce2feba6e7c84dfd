// A provider that costs next to nothing: a fixed completion, whole or streamed, with usage. It counts what it has reported.
import { createServer, type Socket } from 'node:net';
import { createSplitter } from './messages.ts';

export const USAGE = { prompt_tokens: 24, completion_tokens: 20, total_tokens: 44 };
export interface Reported {
  readonly requests: number;
}

const WORDS = 20;
const FRAME = { id: 'chatcmpl-bench', created: 0, model: 'sample-small' };

const WHOLE = answer(
  'application/json',
  JSON.stringify({
    ...FRAME,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(WORDS) }, finish_reason: 'stop' }],
    usage: USAGE,
  }),
);

const event = (data: object) => `data: ${JSON.stringify({ ...FRAME, object: 'chat.completion.chunk', ...data })}\n\n`;
const choice = (delta: object, finish: string | null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] });
const EVENTS = [
  ...Array.from({ length: WORDS }, () => event(choice({ content: 'word ' }, null))),
  event(choice({}, 'stop')),
  event({ choices: [], usage: USAGE }),
  'data: [DONE]\n\n',
];
const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const CHUNKS = EVENTS.map((text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);

let requests = 0;
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  const split = createSplitter((_, body) => {
    requests += 1;
    if (body.includes('"stream":true')) void stream(socket);
    else socket.write(WHOLE);
  });
  socket.on('data', split);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
process.on('message', () => process.send?.({ requests } satisfies Reported));
process.on('disconnect', () => process.exit(0));

/** Several writes, as a provider sends it: the first word, the words, the end. */
async function stream(socket: Socket): Promise<void> {
  socket.write(STREAM_HEAD + CHUNKS[0]);
  for (let at = 1; at < CHUNKS.length; at += 5) {
    await new Promise(setImmediate);
    socket.write(CHUNKS.slice(at, at + 5).join('') + (at + 5 >= CHUNKS.length ? '0\r\n\r\n' : ''));
  }
}

function answer(type: string, body: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
