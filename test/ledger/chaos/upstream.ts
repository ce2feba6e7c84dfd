// A provider that streams completions of different sizes, and records what it would bill for each.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

/** The prompt that makes the provider fail. */
export const FAILING = 'Fail.';

export interface Delivery {
  readonly input: number;
  readonly output: number;
}

export interface BillingUpstream {
  readonly url: string;
  /** Completions by the name in the reply. */
  readonly reported: ReadonlyMap<string, Delivery>;
  close(): void;
}

const FRAME = { created: 0, model: 'fault' };

/** `wordPause`: milliseconds after each word of a stream. `host`: the address on which it listens. */
export async function startUpstream(wordPause = 8, host = '127.0.0.1'): Promise<BillingUpstream> {
  const reported = new Map<string, Delivery>();
  let made = 0;
  const server = createServer(async (request, response) => {
    // A gateway that is killed breaks off its request.
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const { stream, max_tokens: maxTokens = 40 } = JSON.parse(body) as { stream?: boolean; max_tokens?: number };
    if (body.includes(FAILING)) return void response.writeHead(500).end('{}');
    made += 1;
    const id = `reply-${made}`;
    const size = { input: 5 + (made % 7), output: Math.min(maxTokens, 2 + ((made * 7) % 19)) };
    response.on('error', () => undefined);
    reported.set(id, size);
    if (stream === true) await streamTo(response, { id, size, wordPause });
    else await answerTo(response, id, size);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}/v1`,
    reported,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const usageOf = ({ input, output }: Delivery) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});

async function answerTo(response: ServerResponse, id: string, size: Delivery): Promise<void> {
  await pause(10 + size.output * 4);
  const message = { role: 'assistant', content: 'word '.repeat(size.output) };
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({ id, ...FRAME, choices: [{ index: 0, message, finish_reason: 'stop' }], usage: usageOf(size) }),
  );
}

interface Stream {
  readonly id: string;
  readonly size: Delivery;
  readonly wordPause: number;
}

async function streamTo(response: ServerResponse, { id, size, wordPause }: Stream): Promise<void> {
  response.setHeader('content-type', 'text/event-stream');
  const say = (data: object): unknown => response.write(`data: ${JSON.stringify({ id, ...FRAME, ...data })}\n\n`);
  for (let word = 0; word < size.output; word += 1) {
    if (response.destroyed) return;
    say({ choices: [{ index: 0, delta: { content: 'word ' }, finish_reason: null }] });
    await pause(wordPause);
  }
  say({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  say({ choices: [], usage: usageOf(size) });
  response.end('data: [DONE]\n\n');
}
