// What does a client get that sends requests before its earlier ones are answered, and what does it cost the server?
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { createIssuer } from '#adapters/certificates/issuer.ts';
import type { HttpExchange, HttpHandler } from '#core/ports/http-exchange.ts';
import { ratioOf } from '../../../../test/gateway/growth.ts';
import { type RunningServer, serve } from '../serve.ts';

const DAY = 86_400_000;
const validity = { from: Date.now() - DAY, until: Date.now() + DAY };
const issuer = createIssuer();
const authority = await issuer.issueAuthority({ name: 'test', ...validity });
const certificate = await issuer.issue({ authority, names: ['localhost'], ...validity });

const ask = (path: string) => `GET /${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const MANY = 2_000;

let server: RunningServer | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close(0);
});

describe.each([
  ['HTTP', undefined],
  ['HTTPS', certificate],
])('over %s', (_, tls) => {
  const start = async (handle: HttpHandler): Promise<void> => {
    server = await serve({ handle, port: 0, host: '127.0.0.1', ...(tls && { tls }) });
  };

  /** A client that has sent this, and reads nothing until it resumes. */
  function send(bytes: string) {
    const to = { port: server?.port ?? 0, host: '127.0.0.1', rejectUnauthorized: false };
    const socket = tls === undefined ? connect(to) : connectTls(to);
    sockets.push(socket);
    let text = '';
    const closed = new Promise<void>((resolve) => socket.on('error', () => undefined).once('close', () => resolve()));
    socket.write(bytes);
    const read = () => {
      socket.on('data', (some) => {
        text += some;
      });
      return socket;
    };
    return { socket, read, text: () => text, closed };
  }

  test('each request is handled when those before it are answered, and the answers come in order', async () => {
    const waiting: HttpExchange[] = [];
    await start(async (client) => void waiting.push(client));
    const client = send(ask('one') + ask('two') + ask('three'));
    client.read();
    for (const path of ['/one', '/two', '/three']) {
      await expect.poll(() => waiting.map((asked) => asked.path)).toEqual([path]);
      const [asked] = waiting.splice(0);
      asked?.begin(200, {});
      asked?.end(`answer to ${path}\n`);
    }
    await expect.poll(() => client.text().match(/answer to .*/g)).toHaveLength(3);
    expect(client.text()).toMatch(/one.*two.*three/s);
  });

  test('sixteen requests at the same time are all answered', async () => {
    await start(async (client) => {
      client.begin(200, {});
      client.end('hello');
    });
    const client = send(ask('').repeat(16));
    client.read();
    await expect.poll(() => client.text().match(/hello/g)?.length).toBe(16);
  });

  test.each([
    ['requests', ask('')],
    ['requests without a host, which Node refuses', 'GET / HTTP/1.1\r\n\r\n'],
    ['requests with an expectation, which Node refuses', `${ask('').slice(0, -2)}expect: x\r\n\r\n`],
    ['requests with a body', `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx`],
  ])('a connection with more unanswered %s is closed, after one was handled at most', async (_, more) => {
    let handled = 0;
    await start(async () => {
      handled += 1;
    });
    const client = send(ask('') + more.repeat(MANY));
    client.read();
    await client.closed;
    expect([handled <= 1, client.text()]).toEqual([true, '']);
  });

  test('so is one whose waiting requests have long heads', async () => {
    await start(async () => undefined);
    const long = `${ask('').slice(0, -2)}${'a: b\r\n'.repeat(900)}\r\n`;
    const client = send(ask('') + long);
    client.read();
    await client.closed;
  });

  test('nothing is made for a client that does not take what it was answered before', async () => {
    let handled = 0;
    const large = 'x'.repeat(16 * 1024 * 1024);
    await start(async (client) => {
      handled += 1;
      client.begin(200, {});
      client.end(large);
    });
    const client = send(ask('').repeat(10));
    await expect.poll(() => handled).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(handled).toBe(1);
    client.read();
    await expect.poll(() => handled).toBe(10);
  });

  test('of what arrives with too many requests, no more requests are made', async () => {
    await start(async () => undefined);
    const flood = (count: number) => async () => {
      const client = send(ask('').repeat(count));
      client.read();
      await client.closed;
    };
    expect(await ratioOf(flood(MANY), flood(17), 8)).toBeLessThan(8);
  });
});
