import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { NodeExchange } from '../http-exchange.ts';
import { serve } from '../serve.ts';
import { cutStalled } from '../stalled-clients.ts';

const MEBIBYTE = 1024 * 1024;
/** More than any system keeps in its buffers. */
const LARGE = new Uint8Array(40 * MEBIBYTE).fill(0x61);
const SOON = { timeout: 20_000 };
const open: Array<{ destroy(): unknown } | { close(): unknown }> = [];
afterEach(() => {
  for (const one of open.splice(0)) 'destroy' in one ? one.destroy() : one.close();
});

/**
 * Answers every request so, and tells of each whether its reply was taken whole when its connection closed or it was
 * over.
 */
async function answering(listener: RequestListener, after: number): Promise<{ port: number; taken: boolean[] }> {
  const taken: boolean[] = [];
  const server: Server = createServer((incoming, outgoing) => {
    outgoing.on('close', () => void taken.push(outgoing.writableFinished));
    listener(incoming, outgoing);
  });
  cutStalled(server, after);
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, taken };
}

function ask(port: number): Socket {
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'));
  open.push(socket.on('error', () => {}));
  return socket;
}

const HOW: ReadonlyArray<readonly [string, RequestListener]> = [
  ['that is whole', (_, outgoing) => void outgoing.end(LARGE)],
  ['that is streamed and has ended', (...of) => stream(...of).end([LARGE])],
  ['that is streamed and continues', (...of) => void stream(...of).write([LARGE])],
];
const stream: (...of: Parameters<RequestListener>) => NodeExchange = (incoming, outgoing) => {
  const exchange = new NodeExchange(incoming, outgoing);
  exchange.begin(200, {});
  return exchange;
};

describe('a client', { timeout: 30_000 }, () => {
  test.each(HOW)('that takes nothing of a reply %s loses its connection', async (_, listener) => {
    const { port, taken } = await answering(listener, 100);
    ask(port).pause();
    await expect.poll(() => taken, SOON).toEqual([false]);
  });

  test('of any of our servers is one', async () => {
    let isAsked = false;
    const fetch = () => {
      isAsked = true;
      return new Response(LARGE);
    };
    const server = await serve({ fetch, port: 0, host: '127.0.0.1', stalled: 100 });
    ask(server.port).pause();
    await expect.poll(() => isAsked, SOON).toBe(true);
    // Nothing else ends before its grace is over.
    await server.close(600_000);
  });

  test('that waits for its answer longer than that keeps its connection', async () => {
    let answer: () => void = () => {};
    let asked = 0;
    const { port, taken } = await answering((_, outgoing) => {
      asked += 1;
      answer = () => void outgoing.end('.');
    }, 50);
    const socket = ask(port);
    let closed = false;
    socket.on('close', () => {
      closed = true;
    });
    await pause(300);
    expect([closed, taken]).toEqual([false, []]);
    answer();
    await expect.poll(() => taken, SOON).toEqual([true]);
    // Nor does one that has its answer lose it: the next request may come on it.
    await pause(300);
    expect(closed).toBe(false);
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await expect.poll(() => asked, SOON).toBe(2);
    answer();
    await expect.poll(() => taken, SOON).toEqual([true, true]);
  });

  test('that reads slowly gets everything, and keeps its connection', async () => {
    const { port, taken } = await answering((_, outgoing) => void outgoing.end(LARGE), 1200);
    const socket = ask(port);
    let bytes = 0;
    let before = 0;
    socket.on('data', (some: Uint8Array) => {
      bytes += some.length;
      if (bytes - before < 2 * MEBIBYTE) return;
      before = bytes;
      socket.pause();
      setTimeout(() => socket.resume(), 80);
    });
    await expect.poll(() => bytes, SOON).toBeGreaterThan(LARGE.length);
    expect([taken, socket.destroyed]).toEqual([[true], false]);
  });
});
