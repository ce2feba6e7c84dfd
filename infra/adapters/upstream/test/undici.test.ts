import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSocketServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { type Upstream, UpstreamError } from '#core/ports/upstream.ts';
import { createUpstream } from '../undici.ts';
import { promisesOfUpstream } from './upstream.promises.ts';

promisesOfUpstream('undici', createUpstream());

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

describe('an upstream over undici', () => {
  let server: Server | undefined;

  async function ask(listener: RequestListener) {
    const listening = createServer(listener);
    server = listening;
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const address = listening.address();
    const upstream = createUpstream();
    const port = typeof address === 'object' ? address?.port : 0;
    const timeouts = { connect: 1000, firstByte: 2000, idle: 60_000 };
    const signal = new AbortController().signal;
    return upstream({ url: `http://127.0.0.1:${port}/`, headers: {}, body: ['x'], timeouts, signal });
  }

  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  test('that breaks in the middle delivers the bytes before the break', async () => {
    const { body } = await ask((_, response) => {
      response.write('one');
      setImmediate(() => response.socket?.end());
    });
    const iterator = body[Symbol.asyncIterator]();
    await expect.poll(() => server?.listening && connections(server)).toBe(0);
    expect(Buffer.from((await iterator.next()).value).toString()).toBe('one');
    await expect(iterator.next()).rejects.toThrow('the upstream failed');
    await expect(iterator.next()).rejects.toThrow('the upstream failed');
  });

  test('reports that its whole reply has arrived before it is read, unless it must be decoded', async () => {
    let finish: () => void = () => {};
    const { body, hasEnded } = await ask((_, response) => {
      response.write('one ');
      finish = () => response.end('two');
    });
    expect(hasEnded?.()).toBe(false);
    finish();
    await expect.poll(() => hasEnded?.()).toBe(true);
    expect(await textOf(body)).toBe('one two');
    server?.close();
    const packed = await ask((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('three'));
    });
    expect([packed.hasEnded, await textOf(packed.body)]).toEqual([undefined, 'three']);
  });

  test.each(['br', 'zstd', 'gzip, gzip'])(
    'that answers in the content-encoding %s, which was not requested, is broken',
    async (encoding) => {
      const asked = ask((_, response) => response.writeHead(200, { 'content-encoding': encoding }).end('x'));
      await expect(asked).rejects.toMatchObject({ name: 'UpstreamError', kind: 'broken' });
    },
  );

  test('that is aborted while it connects has certainly received nothing', async () => {
    const sockets: Socket[] = [];
    // The server takes connections and never shows a certificate.
    const mute = createSocketServer((socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const address = mute.address();
    const url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
    const client = new AbortController();
    const upstream = createUpstream();
    const timeouts = { connect: 60_000, firstByte: 60_000, idle: 60_000 };
    const asked = upstream({ url, headers: {}, body: ['x'], timeouts, signal: client.signal });
    const failure = asked.catch((error: unknown) => error);
    await expect.poll(() => sockets.length).toBe(1);
    client.abort();
    expect(await failure).toMatchObject({ kind: 'unsent' });
    expect(await failure).toBeInstanceOf(UpstreamError);
    await upstream.close();
    for (const socket of sockets) socket.destroy();
    mute.close();
  });

  test.each([
    ['resets the connection while it shakes hands', 'https', (socket: Socket) => void socket.resetAndDestroy()],
    ['closes the connection while it shakes hands', 'https', (socket: Socket) => void socket.end()],
    ['speaks another protocol', 'http', (socket: Socket) => void socket.write('SSH-2.0-OpenSSH_9.2\r\n')],
    ['speaks HTTP/2 only', 'http', (socket: Socket) => void socket.write(Buffer.from('00000004000000000007', 'hex'))],
  ])('that %s never took the request: it is refused', async (_, scheme, onData) => {
    const server = createSocketServer((socket) =>
      socket.on('error', () => undefined).once('data', () => onData(socket)),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const url = `${scheme}://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
    const upstream = createUpstream();
    const timeouts = { connect: 1000, firstByte: 2000, idle: 2000 };
    const signal = new AbortController().signal;
    const asked = upstream({ url, headers: {}, body: ['x'], timeouts, signal });
    expect(await asked.catch((error: unknown) => error)).toMatchObject({ kind: 'refused' });
    await upstream.close();
    server.close();
  });

  test('delivers the chunks of one packet as one piece', async () => {
    let say: (text: string) => void = () => {};
    const { body } = await ask((_, response) => {
      say = (text) => void response.socket?.write(text);
      say('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n');
    });
    const iterator = body[Symbol.asyncIterator]();
    const text = async () => Buffer.from((await iterator.next()).value ?? []).toString();
    expect(await text()).toBe('ab');
    const waiting = text();
    say('1\r\nc\r\n1\r\nd\r\n1\r\ne\r\n');
    expect(await waiting).toBe('cde');
    const last = text();
    say('1\r\nf\r\n1\r\ng\r\n0\r\n\r\n');
    expect(await last).toBe('fg');
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  test('that sends faster than it is read waits, and loses nothing', async () => {
    const piece = Buffer.alloc(1024 * 1024, 'x');
    const pieces = 64;
    let sent = 0;
    const { body } = await ask(async (_, response) => {
      for (; sent < pieces; sent += 1) await new Promise((written) => response.write(piece, written));
      response.end();
    });
    const rests = async () => {
      const before = sent;
      await pause(50);
      return before === sent;
    };
    await expect.poll(rests).toBe(true);
    expect(sent).toBeLessThan(pieces / 2);
    let bytes = 0;
    for await (const some of body) bytes += some.length;
    expect(bytes).toBe(pieces * piece.length);
  });
});

describe('connection pools', () => {
  const servers: Server[] = [];
  const timeouts = { connect: 1000, firstByte: 2000, idle: 60_000 };

  /** A provider that streams until a call ends its stream. */
  async function provider() {
    const streams: ServerResponse[] = [];
    const listening = createServer((incoming, outgoing) => {
      incoming.resume();
      outgoing.write(`${incoming.url}:begin `);
      streams.push(outgoing);
    });
    servers.push(listening);
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const address = listening.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/v1`;
    return { url, streams, end: () => streams.shift()?.end('end'), open: () => connections(listening) };
  }
  const call = (upstream: Upstream, url: string, query?: string) =>
    upstream({ url, query, headers: {}, body: ['x'], timeouts, signal: new AbortController().signal });

  afterEach(() => {
    for (const one of servers.splice(0)) {
      one.closeAllConnections();
      one.close();
    }
  });

  test('that were used longest ago are closed, each after the whole reply of its last call', async () => {
    const upstream = createUpstream({ maxPools: 2 });
    const [first, second, third] = [await provider(), await provider(), await provider()];
    const early = await call(upstream, first.url, '?client=1');
    const others = [await call(upstream, second.url), await call(upstream, third.url)];
    const again = await call(upstream, first.url);
    expect(await first.open()).toBe(2);
    for (const { end } of [first, second, third]) end();
    expect(await textOf(early.body)).toBe('/v1?client=1:begin end');
    expect(await Promise.all(others.map(({ body }) => textOf(body)))).toEqual(Array(2).fill('/v1:begin end'));
    // The pool of the first call was dropped. When the first server was called again, that of the second was the
    // oldest.
    await expect.poll(async () => [await first.open(), await second.open()]).toEqual([1, 0]);
    first.end();
    expect(await textOf(again.body)).toBe('/v1:begin end');
    await upstream.close();
  });

  test('are destroyed with their running calls at the end, also those that were being closed', async () => {
    const upstream = createUpstream({ maxPools: 1 });
    const [first, second] = [await provider(), await provider()];
    const running = [await call(upstream, first.url), await call(upstream, second.url)];
    const broken = running.map(({ body }) => textOf(body).catch((error: unknown) => error));
    await upstream.close();
    for (const error of await Promise.all(broken)) expect(error).toBeInstanceOf(UpstreamError);
  });
});

function connections(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}
