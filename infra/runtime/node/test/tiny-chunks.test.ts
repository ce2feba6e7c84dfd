// Bodies in tiny chunks: what each costs the event loop is bounded, because their connection is closed.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type Handler, type RunningServer, serve } from '../serve.ts';

const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;
const END = '0\r\n\r\n';

let server: RunningServer | undefined;
afterEach(() => server?.close(0));

/** Sends a body of such chunks; the reply, when the connection has closed. */
async function send(handler: Handler, chunks: string): Promise<string> {
  server = await serve({ ...handler, port: 0, host: '127.0.0.1' });
  const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
  let reply = '';
  socket.on('data', (piece) => {
    reply += piece;
  });
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`);
  await once(socket, 'close');
  return reply;
}

const echo: Handler = {
  handle: async (client) => {
    const body = await client.readBody(() => undefined);
    client.begin(200, {});
    client.end(body instanceof Uint8Array ? `${body.length} bytes` : 'broken');
  },
};

describe.each<readonly [string, Handler]>([
  ['that waits for it', echo],
  ['that has answered', { handle: async (client) => client.end('refused') }],
  ['of web requests that has answered', { fetch: () => new Response('refused') }],
  ['that does nothing', { handle: () => new Promise(() => {}) }],
])('a body without an end, for a handler %s', (_, handler) => {
  test('loses its connection if its chunks are tiny', async () => {
    expect(await send(handler, chunk(1).repeat(6_000))).not.toContain(' bytes');
  });
});

test.each([
  ['few tiny chunks', chunk(1).repeat(4_000), '4000 bytes'],
  ['many small chunks', chunk(256).repeat(6_000), '1536000 bytes'],
  ['many tiny chunks and large ones', chunk(100_000).repeat(16) + chunk(1).repeat(6_000), '1606000 bytes'],
])('a body of %s is read to its end', async (_, chunks, output) => {
  expect(await send(echo, chunks + END)).toContain(output);
});
