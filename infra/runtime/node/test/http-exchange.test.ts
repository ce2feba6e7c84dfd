import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import { type RunningServer, serve } from '../serve.ts';

const encoder = new TextEncoder();
const HEADERS = { 'content-type': 'text/event-stream', 'x-request-id': '7' };
let server: RunningServer | undefined;
afterEach(() => server?.close(0));

/** A server whose every reply is what this writes. */
async function writing(write: (client: HttpExchange) => unknown): Promise<string> {
  server = await serve({
    handle: async (client) => {
      client.begin(200, HEADERS);
      await write(client);
    },
    port: 0,
    host: '127.0.0.1',
  });
  return server.url;
}

test('what is written is the reply, with the headers it began with', async () => {
  const url = await writing((stream) => {
    stream.write([encoder.encode('one ')]);
    setTimeout(() => stream.end([encoder.encode('two')]), 5);
  });
  const response = await fetch(url, { method: 'POST', body: 'x' });
  expect([response.status, response.headers.get('content-type'), response.headers.get('x-request-id')]).toEqual([
    200,
    'text/event-stream',
    '7',
  ]);
  expect(await response.text()).toBe('one two');
  // The connection continues.
  expect(await (await fetch(url)).text()).toBe('one two');
});

test('a reply that is whole immediately says how long it is, in as many pieces as it is given', async () => {
  const url = await writing((stream) => stream.end([encoder.encode('one '), encoder.encode('two')]));
  const response = await fetch(url);
  expect([response.headers.get('content-length'), await response.text()]).toEqual(['7', 'one two']);
});

test('a header that cannot be sent is refused before anything is', async () => {
  let refused: unknown;
  server = await serve({
    handle: async (client) => {
      try {
        client.begin(200, { 'x-request-id': 'a\nb' });
        client.end('never sent');
      } catch (error) {
        refused = error;
        client.begin(500, {});
      }
      client.end('');
    },
    port: 0,
    host: '127.0.0.1',
  });
  expect((await fetch(server.url)).status).toBe(500);
  expect(refused).toMatchObject({ code: 'ERR_INVALID_CHAR' });
});

test('a client that has its whole reply has not left, also when it closes its connection then', async () => {
  let hasLeft = false;
  const url = await writing((stream) => {
    stream.onLeave(() => {
      hasLeft = true;
    });
    stream.end([encoder.encode('all')]);
  });
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
  );
  await new Promise((resolve) => socket.resume().once('close', resolve));
  await server?.close(0);
  expect(hasLeft).toBe(false);
});

test('headers need not wait for the first bytes, nor the end for any', async () => {
  let finish: () => void = () => {};
  const url = await writing((stream) => {
    stream.flush();
    finish = () => stream.end([new Uint8Array(0)]);
  });
  const response = await fetch(url);
  expect(response.status).toBe(200);
  finish();
  expect(await response.text()).toBe('');
});

test('a client that does not read is waited for, and gets everything when it does', async () => {
  const piece = new Uint8Array(1024 * 1024).fill(0x61);
  let written = 0;
  const waits: number[] = [];
  const url = await writing(async (stream) => {
    for (; written < 40; written += 1) {
      if (stream.write([piece])) continue;
      waits.push(written);
      await stream.drained();
    }
    stream.end([encoder.encode('.')]);
  });
  const response = await fetch(url);
  await expect.poll(() => waits.length).toBeGreaterThan(0);
  // Nobody has read: the buffers of the system are full.
  const stopped = await settled(() => written);
  expect(stopped).toBeLessThan(40);
  expect((await response.arrayBuffer()).byteLength).toBe(40 * piece.length + 1);
});

test('a client that leaves is told of; whoever waited for room continues, and what is written then is dropped', async () => {
  let hasLeft = false;
  let over = false;
  const url = await writing(async (stream) => {
    stream.onLeave(() => {
      hasLeft = true;
    });
    while (stream.write([new Uint8Array(1024 * 1024)]));
    await stream.drained();
    await new Promise((resolve) => setTimeout(resolve, 20));
    while (!hasLeft) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(stream.write([encoder.encode('nobody hears this')])).toBe(true);
    await stream.drained();
    stream.flush();
    stream.end([encoder.encode('nor this')]);
    stream.destroy();
    over = true;
  });
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
  );
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
  await expect.poll(() => over).toBe(true);
  expect(hasLeft).toBe(true);
});

test('a reply that is broken off does not look whole', async () => {
  const url = await writing((stream) => {
    stream.write([encoder.encode('one ')]);
    setTimeout(() => stream.destroy(), 5);
  });
  const response = await fetch(url);
  await expect(response.text()).rejects.toThrow();
});

test('a stop lets a reply that is being written end', async () => {
  let finish: () => void = () => {};
  const url = await writing((stream) => {
    stream.write([encoder.encode('one ')]);
    finish = () => stream.end([encoder.encode('two')]);
  });
  const response = await fetch(url);
  const closing = server?.close(10_000);
  await expect(fetch(url)).rejects.toThrow();
  finish();
  expect(await response.text()).toBe('one two');
  await closing;
});

/** Its value when it has stayed the same for a while. */
async function settled(of: () => number): Promise<number> {
  for (let before = Number.NaN; ; ) {
    const now = of();
    if (now === before) return now;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
