// Promises of all upstreams, whichever library speaks HTTP, tested against real servers.
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createSocketServer, type Socket } from 'node:net';
import { constants, createGzip, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { type Upstream, UpstreamError, type UpstreamRequest } from '#core/ports/upstream.ts';
import { issue, issueAuthority } from '../../certificates/x509.ts';

const TIMEOUTS = { connect: 1000, firstByte: 2000, idle: 2000 };

export function promisesOfUpstream(name: string, upstream: Upstream): void {
  const servers: Server[] = [];
  const sockets: ReturnType<typeof createSocketServer>[] = [];

  const serve = (listener: RequestListener): Promise<string> => listen(createServer(listener), 'http');

  async function listen(server: Server, scheme: string): Promise<string> {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    return `${scheme}://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1/chat`;
  }

  /** A server without a protocol, which does this with the first bytes of a connection. */
  async function serveBytes(onData: (socket: Socket) => void): Promise<string> {
    const server = createSocketServer((socket) =>
      socket.on('error', () => undefined).once('data', () => onData(socket)),
    );
    sockets.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1/chat`;
  }

  const ask = (url: string, more: Partial<UpstreamRequest> = {}) =>
    upstream({
      url,
      headers: { 'content-type': 'application/json', authorization: 'Bearer key' },
      body: [new TextEncoder().encode('{"é'), '":1}'],
      timeouts: TIMEOUTS,
      signal: new AbortController().signal,
      ...more,
    });

  async function failure(asked: Promise<unknown>): Promise<UpstreamError> {
    const error: unknown = await asked.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error instanceof UpstreamError) return error;
    throw new Error('did not break', { cause: error });
  }

  async function text(body: AsyncIterable<Uint8Array>): Promise<string> {
    const pieces: Uint8Array[] = [];
    for await (const piece of body) pieces.push(piece);
    return Buffer.concat(pieces).toString('utf8');
  }

  afterEach(async () => {
    for (const server of sockets.splice(0)) server.close();
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  describe(`an upstream over ${name}`, () => {
    test('gets the given bytes and headers, and its answer comes back unchanged', async () => {
      const url = await serve(async (request, response) => {
        let body = '';
        for await (const piece of request) body += piece;
        const { method, url: path, headers } = request;
        response.writeHead(418, { 'Content-Type': 'application/json', 'X-Request-Id': 'r1' });
        response.end(
          JSON.stringify({ method, path, body, key: headers.authorization, length: headers['content-length'] }),
        );
      });
      const reply = await ask(`${url}?api-version=1`);
      expect(reply).toMatchObject({
        status: 418,
        headers: { 'content-type': 'application/json', 'x-request-id': 'r1' },
      });
      expect(JSON.parse(await text(reply.body))).toEqual({
        method: 'POST',
        path: '/v1/chat?api-version=1',
        body: '{"é":1}',
        key: 'Bearer key',
        length: '8',
      });
    });

    test('gets a long body unchanged, with its length, whatever its parts', async () => {
      const url = await serve(async (request, response) => {
        const digest = createHash('sha256');
        for await (const piece of request) digest.update(piece);
        const { 'content-length': length, 'transfer-encoding': encoding = 'none' } = request.headers;
        response.end(JSON.stringify({ digest: digest.digest('hex'), length, encoding }));
      });
      const body = [randomBytes(300_000), '"é"', randomBytes(17), ',', randomBytes(5_000_000), '}'];
      const sent = Buffer.concat(body.map((part) => Buffer.from(part as string)));
      const digest = createHash('sha256').update(sent).digest('hex');
      for (let time = 0; time < 3; time += 1) {
        const reply = await ask(url, { body });
        expect(JSON.parse(await text(reply.body))).toEqual({ digest, length: `${sent.length}`, encoding: 'none' });
      }
    });

    test('that answers before it has read a long body has its answer read', async () => {
      const url = await serve((_, response) => void response.writeHead(413).end('too long'));
      const reply = await ask(url, { body: [new Uint8Array(20_000_000)] }).catch((error: unknown) => error);
      // A client that still writes when the connection closes may miss the answer.
      if (reply instanceof UpstreamError) expect(reply.kind).toBe('broken');
      else expect(reply).toMatchObject({ status: 413 });
    });

    test('is read piece by piece, as it sends', async () => {
      let speak: () => void = () => {};
      const url = await serve((_, response) => {
        response.write('one');
        speak = () => response.end('two');
      });
      const { body } = await ask(url);
      const iterator = body[Symbol.asyncIterator]();
      expect(Buffer.from((await iterator.next()).value).toString()).toBe('one');
      speak();
      expect(Buffer.from((await iterator.next()).value).toString()).toBe('two');
      expect((await iterator.next()).done).toBe(true);
    });

    test('that compresses without a request for it is decoded', async () => {
      const url = await serve((_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' });
        response.end(gzipSync('hello'));
      });
      expect(await text((await ask(url)).body)).toBe('hello');
    });

    test('that compresses a stream is also read piece by piece', async () => {
      let speak: () => void = () => {};
      const url = await serve((_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'text/event-stream' });
        const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
        gzip.pipe(response);
        gzip.write('data: grüß\n\n');
        speak = () => gzip.end('data: [DONE]\n\n');
      });
      const iterator = (await ask(url)).body[Symbol.asyncIterator]();
      expect(Buffer.from((await iterator.next()).value).toString()).toBe('data: grüß\n\n');
      speak();
      expect(Buffer.from((await iterator.next()).value).toString()).toBe('data: [DONE]\n\n');
      expect((await iterator.next()).done).toBe(true);
    });

    test('that compresses and breaks in the middle is distinguished from one that ends', async () => {
      const whole = gzipSync(randomBytes(100_000).toString('hex'));
      const url = await serve((_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': whole.length });
        response.write(whole.subarray(0, 50_000));
        setImmediate(() => response.socket?.end());
      });
      expect((await failure(text((await ask(url)).body))).kind).toBe('broken');
    });

    test('that redirects is not followed: the key is sent to no other address', async () => {
      const url = await serve((_, response) => {
        response.writeHead(307, { location: 'http://127.0.0.1:1/' });
        response.end();
      });
      expect((await ask(url)).status).toBe(307);
    });

    test('that sends an informational response first is read to its answer', async () => {
      const url = await serve((_, response) => {
        response.writeEarlyHints({ link: '</style.css>; rel=preload' });
        response.end('hello');
      });
      const reply = await ask(url);
      expect([reply.status, await text(reply.body)]).toEqual([200, 'hello']);
    });

    test('that repeats a header gives the joined values', async () => {
      const url = await serve((_, response) => void response.writeHead(200, { 'x-twice': ['one', 'two'] }).end());
      expect((await ask(url)).headers['x-twice']).toBe('one, two');
    });

    test('is not called when the signal was aborted before', async () => {
      const called: unknown[] = [];
      const url = await serve((request, response) => {
        called.push(request.url);
        response.end();
      });
      expect((await failure(ask(url, { signal: AbortSignal.abort() }))).kind).toBe('unsent');
      await ask(`${url}/next`);
      expect(called).toEqual(['/v1/chat/next']);
    });

    test('without a listener is refused', async () => {
      const url = await serve(() => {});
      const [server] = servers.splice(0);
      await new Promise((resolve) => server?.close(resolve));
      expect((await failure(ask(url))).kind).toBe('refused');
    });

    test('with a certificate that is not trusted is refused: nothing was sent', async () => {
      const [from, until] = [Date.now() - 1000, Date.now() + 3_600_000];
      const authority = await issueAuthority({ name: 'nobody', from, until });
      const { key, cert } = await issue({ authority, names: ['127.0.0.1'], from, until });
      let called = 0;
      const server = createTlsServer({ key, cert }, (_, response) => {
        called += 1;
        response.end();
      });
      expect((await failure(ask(await listen(server, 'https')))).kind).toBe('refused');
      expect(called).toBe(0);
    });

    test('that speaks no TLS at an https address is refused', async () => {
      const url = await serve((_, response) => void response.end());
      expect((await failure(ask(url.replace('http:', 'https:')))).kind).toBe('refused');
    });

    test('that takes the request and closes without an answer is broken', async () => {
      for (const end of [(socket: Socket) => void socket.end(), (socket: Socket) => void socket.resetAndDestroy()])
        expect((await failure(ask(await serveBytes(end)))).kind).toBe('broken');
    });

    test('that takes too long to start is a timeout', async () => {
      const url = await serve(() => {});
      expect((await failure(ask(url, { timeouts: { ...TIMEOUTS, connect: 50, firstByte: 50 } }))).kind).toBe('timeout');
    });

    test('that stops sending in the middle is a timeout', async () => {
      const url = await serve((_, response) => void response.write('one'));
      const { body } = await ask(url, { timeouts: { ...TIMEOUTS, idle: 50 } });
      expect((await failure(text(body))).kind).toBe('timeout');
    });

    test('that breaks in the middle is distinguished from one that ends', async () => {
      const url = await serve((_, response) => {
        response.write('one');
        setImmediate(() => response.socket?.end());
      });
      const { body } = await ask(url);
      expect((await failure(text(body))).kind).toBe('broken');
    });

    test('is stopped immediately when the signal aborts, before and after its first byte', async () => {
      let closed = 0;
      let begun = 0;
      const url = await serve((request, response) => {
        begun += 1;
        response.on('close', () => {
          closed += 1;
        });
        if (request.url?.endsWith('speaks')) response.write('one');
      });
      const first = new AbortController();
      const asked = failure(ask(url, { signal: first.signal }));
      await expect.poll(() => begun).toBe(1);
      first.abort();
      // How much of the request the server has read is unknown.
      expect((await asked).kind).not.toBe('unsent');
      const second = new AbortController();
      const { body } = await ask(`${url}/speaks`, { signal: second.signal });
      const reading = failure(text(body));
      second.abort();
      await reading;
      await expect.poll(() => closed).toBe(2);
    });

    test('is stopped when the reader leaves', async () => {
      let closed = false;
      const url = await serve((_, response) => {
        response.write('one');
        response.on('close', () => {
          closed = true;
        });
      });
      for await (const _ of (await ask(url)).body) break;
      await expect.poll(() => closed).toBe(true);
    });

    test('with an invalid address is refused, and throws nothing else', async () => {
      expect((await failure(ask('http://127.0.0.1:99999/v1'))).kind).toBe('refused');
      const url = await serve(() => {});
      expect(await failure(ask(url, { headers: { 'x-bad': 'a\nb' } }))).toBeInstanceOf(UpstreamError);
    });
  });
}
