import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { ReplyStream } from '#core/ports/reply.ts';
import { type Served, serve } from './serve.ts';

const encoder = new TextEncoder();
const HEADERS = { 'content-type': 'text/event-stream', 'x-request-id': '7' };
let server: Served | undefined;
afterEach(() => server?.close(0));

/** A server whose every reply is what this writes. */
async function writing(write: (stream: ReplyStream, signal: AbortSignal) => unknown): Promise<string> {
  server = await serve({
    fetch: async (request, { openReply }) => {
      const { stream, response } = openReply(200, HEADERS);
      void write(stream, request.signal);
      return response;
    },
    port: 0,
    host: '127.0.0.1',
  });
  return server.url;
}

test('what is written is the reply, with the headers it began with', async () => {
  const url = await writing((stream) => {
    stream.write(encoder.encode('one '));
    setTimeout(() => stream.end(encoder.encode('two')), 5);
  });
  const response = await fetch(url, { method: 'POST', body: 'x' });
  expect([response.status, response.headers.get('content-type'), response.headers.get('x-request-id')]).toEqual([
    200,
    'text/event-stream',
    '7',
  ]);
  expect(await response.text()).toBe('one two');
  // The connection goes on.
  expect(await (await fetch(url)).text()).toBe('one two');
});

test('headers need not wait for the first bytes, nor the end for any', async () => {
  let finish: () => void = () => {};
  const url = await writing((stream) => {
    stream.flush();
    finish = () => stream.end(new Uint8Array(0));
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
      if (stream.write(piece)) continue;
      waits.push(written);
      await stream.drained();
    }
    stream.end(encoder.encode('.'));
  });
  const response = await fetch(url);
  await expect.poll(() => waits.length).toBeGreaterThan(0);
  // Nobody has read: the buffers of the system are full.
  const stopped = await settled(() => written);
  expect(stopped).toBeLessThan(40);
  expect((await response.arrayBuffer()).byteLength).toBe(40 * piece.length + 1);
});

test('a client that leaves is told by the signal; whoever waited for room goes on, and what is written then is dropped', async () => {
  let aborted = false;
  let over = false;
  const url = await writing(async (stream, signal) => {
    signal.addEventListener('abort', () => {
      aborted = true;
    });
    while (stream.write(new Uint8Array(1024 * 1024)));
    await stream.drained();
    await new Promise((resolve) => setTimeout(resolve, 20));
    while (!aborted) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(stream.write(encoder.encode('nobody hears this'))).toBe(true);
    await stream.drained();
    stream.flush();
    stream.end(encoder.encode('nor this'));
    stream.destroy();
    over = true;
  });
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
  );
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
  await expect.poll(() => over).toBe(true);
  expect(aborted).toBe(true);
});

test('a reply that is broken off does not look whole', async () => {
  const url = await writing((stream) => {
    stream.write(encoder.encode('one '));
    setTimeout(() => stream.destroy(), 5);
  });
  const response = await fetch(url);
  await expect(response.text()).rejects.toThrow();
});

test('a stop lets a reply that is being written end', async () => {
  let finish: () => void = () => {};
  const url = await writing((stream) => {
    stream.write(encoder.encode('one '));
    finish = () => stream.end(encoder.encode('two'));
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
