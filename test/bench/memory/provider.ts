// A provider that takes its time: it reads whole requests, answers plain ones when it is told to, and streams a word
// every 20 ms until then.
import { createServer, type ServerResponse } from 'node:http';

/** What it has been asked so far. */
export interface ProviderRequest {
  readonly plain: number;
  readonly streams: number;
}

/**
 * Milliseconds between two words; where it is told to be slow, a hundred times as many. Each is a packet of its own, of
 * about 250 bytes.
 */
const PACE = 20;
const SLOW = 100;
const WORD = { id: `chatcmpl-${'x'.repeat(29)}`, object: 'chat.completion.chunk', created: 1_780_000_000, model: 'm' };
const USAGE = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };

const asked = { plain: 0, streams: 0 };
const waiting = new Set<ServerResponse>();
const streams = new Set<ServerResponse>();

const server = createServer((incoming, outgoing) => {
  outgoing.on('close', () => {
    waiting.delete(outgoing);
    streams.delete(outgoing);
  });
  outgoing.socket?.setNoDelay(true);
  const isStream = incoming.headers.accept === 'text/event-stream';
  incoming.resume().on('end', () => {
    asked[isStream ? 'streams' : 'plain'] += 1;
    (isStream ? streams : waiting).add(outgoing);
    if (isStream) outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
  });
});

let [every, turn] = [1, 0];
const timer = setInterval(() => {
  turn += 1;
  if (turn % every !== 0) return;
  const choices = [{ index: 0, delta: { content: ' word' }, logprobs: null, finish_reason: null }];
  const word = `data: ${JSON.stringify({ ...WORD, system_fingerprint: 'fp', choices, usage: null })}\n\n`;
  for (const stream of streams) stream.write(word);
}, PACE);

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
process.on('message', (order) => {
  if (order === 'slow' || order === 'fast') every = order === 'slow' ? SLOW : 1;
  if (order === 'answer') for (const outgoing of waiting) answer(outgoing);
  if (order === 'end') for (const stream of streams) end(stream);
  process.send?.(asked satisfies ProviderRequest);
});
process.on('disconnect', () => {
  clearInterval(timer);
  process.exit(0);
});

function answer(outgoing: ServerResponse): void {
  const isMessage = outgoing.req.url?.includes('/messages') === true;
  const message = {
    id: 'msg',
    type: 'message',
    role: 'assistant',
    model: 'm',
    stop_reason: 'end_turn',
    stop_sequence: null,
    content: [{ type: 'text', text: 'done' }],
    usage: { input_tokens: 10, output_tokens: 10 },
  };
  const choices = [{ index: 0, message: { role: 'assistant', content: 'done' }, finish_reason: 'stop' }];
  const completion = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage: USAGE };
  outgoing.writeHead(200, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify(isMessage ? message : completion));
}

function end(stream: ServerResponse): void {
  streams.delete(stream);
  const choices = [{ index: 0, delta: {}, finish_reason: 'stop' }];
  stream.write(`data: ${JSON.stringify({ ...WORD, choices })}\n\n`);
  stream.end(`data: ${JSON.stringify({ ...WORD, choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`);
}
