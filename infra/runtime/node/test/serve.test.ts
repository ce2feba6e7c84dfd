import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { createIssuer } from '#adapters/certificates/issuer.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { listen } from '../listen.ts';
import { serve } from '../serve.ts';

const hello = () => new Response('hello');

/** A body that says one word and continues when it is told to. */
function paused() {
  let finish: () => void = () => {};
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(new TextEncoder().encode('one '));
      finish = () => {
        controller.enqueue(new TextEncoder().encode('two'));
        controller.close();
      };
    },
  });
  return { respond: () => new Response(body), finish: () => finish() };
}

test('a server says where it listens, and answers there', async () => {
  const server = await serve({ fetch: hello, port: 0, host: '127.0.0.1' });
  expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
  expect(await (await fetch(server.url)).text()).toBe('hello');
  await server.close(0);
});

test('a taken port is told as such', async () => {
  const first = await serve({ fetch: hello, port: 0, host: '127.0.0.1' });
  await expect(serve({ fetch: hello, port: first.port, host: '127.0.0.1' })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
  await first.close(0);
});

const whyNoListeners = process.platform === 'linux' ? undefined : 'several listeners on one port need Linux';
describeUnless(whyNoListeners, 'a server with several listeners', () => {
  const shared = { port: 0, host: '127.0.0.1', listeners: 8 };

  test.each([
    [1, (max: number) => max === 1],
    [8, (max: number) => max > 1],
  ])('%i listeners take as many connections at most in a turn of the event loop', async (listeners, isRight) => {
    const server = createServer();
    let [taken, max] = [0, 0];
    server.on('connection', () => {
      if (taken === 0) setImmediate(() => (taken = 0));
      max = Math.max(max, ++taken);
    });
    const { port, stop } = await listen(server, { ...shared, listeners });
    const clients = Array.from({ length: 64 }, () => connect(port, '127.0.0.1'));
    await Promise.all(clients.map((client) => once(client, 'connect')));
    for (const client of clients) client.destroy();
    await stop();
    expect(max).toSatisfy(isRight);
  });

  test('does not share its port with another process', async () => {
    const first = await serve({ fetch: hello, ...shared });
    await expect(serve({ fetch: hello, ...shared, port: first.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await first.close(0);
  });

  test('stops when the last reply of any of them has ended, and takes nothing new', async () => {
    const replies = Array.from({ length: 16 }, paused);
    let next = 0;
    const server = await serve({ fetch: () => replies[next++]?.respond() ?? hello(), ...shared });
    const responses: Response[] = [];
    for (const _ of replies) responses.push(await fetch(server.url));
    let isClosed = false;
    const closing = server.close(10_000).then(() => {
      isClosed = true;
    });
    await expect(fetch(server.url)).rejects.toThrow();
    for (const { finish } of replies.slice(1)) finish();
    await Promise.all(responses.slice(1).map((response) => response.text()));
    expect(isClosed).toBe(false);
    replies[0]?.finish();
    await Promise.all([closing, responses[0]?.text()]);
  });
});

test('a stop lets an open reply end, takes nothing new, and waits no longer than that', async () => {
  const { respond, finish } = paused();
  const server = await serve({ fetch: respond, port: 0, host: '127.0.0.1' });
  const response = await fetch(server.url);
  const closing = server.close(10_000);
  await expect(fetch(server.url)).rejects.toThrow();
  finish();
  expect(await response.text()).toBe('one two');
  await closing;
  await server.close(0);
});

test('a stop that drains answers on, and asks every client to close its connection', async () => {
  const server = await serve({ fetch: hello, port: 0, host: '127.0.0.1' });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const call = async () => {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(server.url, { agent }, resolve).on('error', reject).end();
    });
    return [await text(answer), answer.headers.connection];
  };
  expect(await call()).toEqual(['hello', 'keep-alive']);
  const closing = server.close(10_000, 60_000);
  expect(await call()).toEqual(['hello', 'close']);
  // Nobody is connected any more: the drain is over.
  await closing;
  await expect(call()).rejects.toThrow('ECONNREFUSED');
});

test('a stop cuts what is still open when its grace is over', async () => {
  const { respond } = paused();
  const server = await serve({ fetch: respond, port: 0, host: '127.0.0.1' });
  const response = await fetch(server.url);
  await server.close(20);
  await expect(response.text()).rejects.toThrow();
});

test('a stop lets a client that reads slowly take its whole reply', async () => {
  const large = new Uint8Array(40 * 1024 * 1024);
  const server = await serve({ fetch: () => new Response(large), port: 0, host: '127.0.0.1' });
  let bytes = 0;
  const ended = new Promise((resolve) => {
    const socket = connect(server.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'));
    socket.on('error', resolve).on('close', resolve);
    socket.on('data', (some) => {
      if (bytes === 0) setTimeout(() => socket.resume(), 150);
      if (bytes === 0) socket.pause();
      bytes += some.length;
    });
  });
  await expect.poll(() => bytes).toBeGreaterThan(0);
  await server.close(60_000);
  await ended;
  expect(bytes).toBeGreaterThan(large.length);
});

test('whatever its method, a request is one for the handler', async () => {
  const tell = ({ method, headers }: Request) => new Response(`${method} ${headers.get('x-word')}`);
  const server = await serve({ fetch: tell, port: 0, host: '127.0.0.1' });
  for (const method of ['TRACE', 'PROPFIND', 'OPTIONS', 'QUERY']) {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(server.url, { method, headers: { 'x-word': 'hello' } }, resolve)
        .on('error', reject)
        .end();
    });
    expect(await text(answer)).toBe(`${method} hello`);
  }
  await server.close(0);
});

test('a client that drops its connection is told to the handler', async () => {
  let signal: AbortSignal | undefined;
  const fetchForever = (request: Request) => {
    signal = request.signal;
    return new Promise<Response>(() => {});
  };
  const server = await serve({ fetch: fetchForever, port: 0, host: '127.0.0.1' });
  const socket = connect(server.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'));
  await expect.poll(() => signal).toBeDefined();
  socket.destroy();
  await expect.poll(() => signal?.aborted).toBe(true);
  await server.close(0);
});

test('a client that sends too much gets its answer all the same', async () => {
  const refuse = () => new Response('too large', { status: 413 });
  const server = await serve({ fetch: refuse, port: 0, host: '127.0.0.1' });
  const response = await fetch(server.url, { method: 'POST', body: new Uint8Array(40 * 1024 * 1024) });
  expect([response.status, await response.text()]).toEqual([413, 'too large']);
  await server.close(0);
});

test('a connection whose body is not whole when its request is answered is closed soon, so that it keeps no memory', async () => {
  const answer = (asked: Request) => {
    void asked.arrayBuffer().catch(() => undefined);
    return new Response('too late', { status: 500 });
  };
  const server = await serve({ fetch: answer, port: 0, host: '127.0.0.1' });
  const socket = connect(server.port, '127.0.0.1');
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nhalf of the body');
  expect(await text(socket)).toContain('too late');
  await server.close(0);
});

const DAY = 86_400_000;
const validity = { from: Date.now() - DAY, until: Date.now() + DAY };

/** A certificate for the servers here. */
async function certificate() {
  const issuer = createIssuer();
  const authority = await issuer.issueAuthority({ name: 'test', ...validity });
  return issuer.issue({ authority, names: ['localhost'], ...validity });
}

describe.each([
  ['HTTP', undefined],
  ['HTTPS', await certificate()],
])('connections over %s', (_, tls) => {
  const own = { port: 0, host: '127.0.0.1', ...(tls && { tls }) };
  const HEAD = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
  /** A client; `heard` is the first line that it gets, or that its connection was closed. */
  const open = (port: number, sent: string | undefined) => {
    const to = { port, host: '127.0.0.1', rejectUnauthorized: false };
    // Without anything to send it does not even begin TLS.
    const socket = tls === undefined || sent === undefined ? connect(to) : connectTls(to);
    if (sent !== undefined) socket.once(tls === undefined ? 'connect' : 'secureConnect', () => socket.write(sent));
    let isClosed = false;
    const heard = new Promise<string>((resolve) => {
      socket.once('data', (bytes) => resolve(`${bytes}`.split('\r\n')[0] ?? ''));
      socket
        .on('error', () => undefined)
        .once('close', () => {
          isClosed = true;
          resolve('closed');
        });
    });
    return { socket, heard, isClosed: () => isClosed };
  };
  /** A server for two connections whose replies to `/wait` wait. */
  const serveTwo = async (more: { readonly closesOldest?: true } = {}) => {
    const waiting: Array<() => void> = [];
    const fetch = ({ url }: Request) =>
      url.endsWith('/wait')
        ? new Promise<Response>((resolve) => waiting.push(() => resolve(hello())))
        : Promise.resolve(hello());
    const server = await serve({ fetch, ...own, maxConnections: 2, ...more });
    return { ...server, waiting };
  };
  const WAIT = HEAD.replace('/', '/wait');
  const OK = 'HTTP/1.1 200 OK';

  test.each([
    ['that is kept for the next request', HEAD, OK],
    ['that sends nothing', undefined, 'closed'],
    ['that sends half a head', HEAD.slice(0, 20), 'closed'],
  ])('at the bound, one %s gives way to a new one', async (_, sent, heard) => {
    const { port, waiting, close } = await serveTwo();
    const busy = open(port, WAIT);
    await expect.poll(() => waiting.length).toBe(1);
    const idle = open(port, sent);
    if (heard === OK) expect(await idle.heard).toBe(OK);
    for (let count = 0; count < 3; count += 1) expect(await open(port, HEAD).heard).toBe(OK);
    await expect.poll(idle.isClosed).toBe(true);
    expect([await idle.heard, busy.isClosed()]).toEqual([heard, false]);
    waiting[0]?.();
    expect(await busy.heard).toBe(OK);
    await close(0);
  });

  test('at the bound of a port of metrics, a new one closes the oldest, whose answer nobody takes', async () => {
    const { port, waiting, close } = await serveTwo({ closesOldest: true });
    const busy = [open(port, WAIT), open(port, WAIT)];
    await expect.poll(() => waiting.length).toBe(2);
    expect(await open(port, HEAD).heard).toBe(OK);
    await expect.poll(() => busy.map(({ isClosed }) => isClosed())).toEqual([true, false]);
    await close(0);
  });

  test('at the bound, a new one is closed where all others have a request, until one of them ends', async () => {
    const { port, waiting, close } = await serveTwo();
    // The first request of the second is answered, the other is not.
    const [first, second] = [open(port, WAIT), open(port, HEAD + WAIT)];
    expect(await second.heard).toBe(OK);
    await expect.poll(() => waiting.length).toBe(2);
    expect(await open(port, HEAD).heard).toBe('closed');
    expect([first.isClosed(), second.isClosed()]).toEqual([false, false]);
    first.socket.destroy();
    await expect.poll(() => open(port, HEAD).heard).toBe(OK);
    expect(second.isClosed()).toBe(false);
    second.socket.destroy();
    await close(0);
  });

  test.each([
    ['nothing', undefined],
    ['half a head', HEAD.slice(0, 20)],
  ])('that send %s are closed after some seconds, those kept for the next request are not', async (_, sent) => {
    const server = await serve({ fetch: hello, ...own, headWithin: 100 });
    const kept = open(server.port, HEAD);
    expect(await kept.heard).toBe(OK);
    const late = open(server.port, sent);
    await expect.poll(late.isClosed, { timeout: 10_000 }).toBe(true);
    expect(kept.isClosed()).toBe(false);
    await server.close(0);
  });
});
