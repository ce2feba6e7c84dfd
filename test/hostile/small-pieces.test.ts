// Does whatever reads a body or a reply keep no more than its bytes, when each byte comes alone and the end never comes?
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createFetchTransport } from '#adapters/kubernetes/fetch.ts';
import { createServiceAccountTransport } from '#adapters/kubernetes/node.ts';
import { openUpstash } from '#adapters/redis/upstash.ts';
import { readTokenReply } from '#adapters/upstream/token-reply.ts';
import { createUpstream } from '#adapters/upstream/undici.ts';
import { createBodyReader } from '../../functions/admission/body.ts';
import { toSse } from '../../functions/gateway/wire/streams/aws-event-stream.ts';
import { readText } from '../../functions/reconcile/body.ts';
import { toExchange } from '../../infra/runtime/fetch/http-exchange.ts';
import { type Handler, serve } from '../../infra/runtime/node/serve.ts';
import { memory } from '../gateway/memory.ts';
import { stage } from '../gateway/stage.ts';
import { SSE } from '../gateway/upstream.ts';

/** Bytes that may be kept for each: an array for each would take 200 or more. */
const MAX_KEPT = 16;
const MANY = 100_000;
/** As many as fit a bound of 64 KiB. */
const SOME = 60_000;

const never = new Promise<never>(() => {});
const ends: Array<() => unknown> = [];
/** What would be collected otherwise, because nothing else knows of it. */
const reading: unknown[] = [];
afterEach(async () => {
  reading.length = 0;
  for (const end of ends.splice(0).reverse()) await end();
});

/** Spaces, each alone; `taken` resolves when all of them have been read, and whoever reads asks for more. */
function spaces(count: number, first: string | Uint8Array<ArrayBuffer> = '') {
  const taken = Promise.withResolvers<void>();
  async function* each(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    if (first !== '') yield typeof first === 'string' ? new TextEncoder().encode(first) : first;
    for (let at = 0; at < count; at += 1) yield new Uint8Array([0x20]);
    taken.resolve();
    await never;
  }
  const body = each();
  return { body, taken: taken.promise };
}

function streamOf(count: number, first?: string) {
  const { body, taken } = spaces(count, first);
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: async (to) => to.enqueue((await body.next()).value),
  });
  reading.push(stream);
  return { stream, taken };
}

const posted = (body: ReadableStream) =>
  new Request('http://x/', { method: 'POST', body, duplex: 'half' } as RequestInit);

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const CHUNK = '1\r\n \r\n';
/** Clients that send many smaller chunks lose their connection. */
const ALLOWED_CHUNK = `100\r\n${' '.repeat(256)}\r\n`;
/** Chunks in one write: the reader gets many of them at a time. */
const AT_A_TIME = 1_000;

/** A server whose every answer is so many spaces, each in a chunk of its own. Resolves when all were written. */
async function answering(count: number) {
  const taken = Promise.withResolvers<void>();
  const address = await listen(({ socket }) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
    void write(socket, count).then(taken.resolve);
  });
  return { address, taken: taken.promise };
}

async function write(socket: NodeJS.WritableStream, count: number, chunk = CHUNK): Promise<void> {
  for (let at = 0; at < count; at += AT_A_TIME) {
    await new Promise((resolve) => socket.write(chunk.repeat(AT_A_TIME), resolve));
    await new Promise(setImmediate);
  }
  // What has been written is read.
  await new Promise((resolve) => setTimeout(resolve, 100));
}

/** Sends a body to one of our servers, in chunks of 256 bytes. */
async function send(handler: Handler, count: number): Promise<void> {
  const server = await serve({ ...handler, port: 0, host: '127.0.0.1' });
  const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
  ends.push(
    () => server.close(0),
    () => socket.destroy(),
  );
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  await write(socket, count, ALLOWED_CHUNK);
}

/** A gateway whose provider answers so. */
async function ask(count: number, headers: Readonly<Record<string, string>>, begin = ''): Promise<void> {
  const { body, taken } = spaces(count, begin);
  const { chat } = stage({ deps: { upstream: async () => ({ status: 200, headers, body }) } });
  const sent = { model: 'gpt', messages: [{ role: 'user', content: 'hello' }], stream: headers === SSE };
  reading.push(chat(sent));
  await taken;
}

const READERS: ReadonlyArray<readonly [string, number, (count: number) => Promise<void>]> = [
  [
    'the body of a request, in a Worker',
    MANY,
    async (count) => {
      const { stream, taken } = streamOf(count);
      reading.push(toExchange(posted(stream)).exchange.readBody(() => undefined));
      await taken;
    },
  ],
  [
    'the body of a request to the reconciler',
    SOME,
    async (count) => {
      const { stream, taken } = streamOf(count);
      reading.push(readText(posted(stream), () => () => {}));
      await taken;
    },
  ],
  [
    'a review',
    MANY,
    async (count) => {
      const { stream, taken } = streamOf(count, '{"kind":"AdmissionReview"}');
      reading.push(createBodyReader()(posted(stream), new AbortController().signal, async () => {}));
      await taken;
    },
  ],
  ['a reply of a provider', MANY, (count) => ask(count, { 'content-type': 'application/json' })],
  ['an event of a provider', MANY, (count) => ask(count, SSE, 'data: ')],
  [
    'an event of AWS',
    MANY,
    async (count) => {
      // The beginning of a message of 2 MiB, with its checksum.
      const prelude = Buffer.alloc(12);
      prelude.writeUInt32BE(2 ** 21, 0);
      prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
      const { body, taken } = spaces(count, prelude);
      reading.push(toSse(body).next());
      await taken;
    },
  ],
  [
    'an answer of a provider that nobody reads yet',
    SOME,
    async (count) => {
      const { address, taken } = await answering(count);
      const upstream = createUpstream();
      ends.push(upstream.close);
      const timeouts = { connect: 1000, firstByte: 60_000, idle: 60_000 };
      const { signal } = new AbortController();
      reading.push(await upstream({ url: address, headers: {}, body: ['{}'], timeouts, signal }));
      await taken;
    },
  ],
  [
    'an answer of the API server',
    MANY,
    async (count) => {
      const folder = mkdtempSync(join(tmpdir(), 'small-pieces-'));
      for (const name of ['token', 'ca.crt']) writeFileSync(join(folder, name), '');
      const { address, taken } = await answering(count);
      const transport = createServiceAccountTransport({ address, folder });
      ends.push(transport.close, () => rmSync(folder, { recursive: true }));
      const { signal } = new AbortController();
      reading.push(transport.request({ method: 'GET', path: '/', signal }).catch(() => undefined));
      await taken;
    },
  ],
  [
    'an answer of the API server, in a Worker',
    MANY,
    async (count) => {
      const { stream, taken } = streamOf(count);
      const fetch = async () => new Response(stream);
      const { signal } = new AbortController();
      const transport = createFetchTransport({ address: 'http://x', token: 'x', fetch });
      reading.push(transport({ method: 'GET', path: '/', signal }));
      await taken;
    },
  ],
  [
    'a reply of Upstash',
    SOME,
    async (count) => {
      const { address, taken } = await answering(count);
      const { evaluate } = openUpstash({ type: 'upstash', url: address, token: 'x' });
      reading.push(evaluate('script', 'key', []).catch(() => undefined));
      await taken;
    },
  ],
  [
    'an access token',
    SOME,
    async (count) => {
      const { stream, taken } = streamOf(count);
      reading.push(readTokenReply(new Response(stream)));
      await taken;
    },
  ],
];

describe('of bytes that come one by one, and not to their end, no more is kept than their number:', () => {
  test.each(READERS)('%s', async (_, count, keep) => {
    // Whatever is loaded for the first time.
    await keep(AT_A_TIME);
    const before = await memory();
    await keep(count);
    expect(((await memory()) - before) / count).toBeLessThan(MAX_KEPT);
  });
});

describe('of a body that comes in chunks of 256 bytes, and not to its end, little more is kept than the bytes:', () => {
  test.each<readonly [string, Handler]>([
    ['read by a handler', { handle: async (client) => void (await client.readBody(() => undefined)) }],
    ['read whole by fetch', { fetch: async (request) => new Response(await request.arrayBuffer()) }],
  ])('%s', async (_, handler) => {
    await send(handler, AT_A_TIME);
    const before = await memory();
    await send(handler, SOME);
    expect(((await memory()) - before) / SOME).toBeLessThan(256 + 2 * MAX_KEPT);
  });
});
