import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type RunningServer, serve } from '../serve.ts';

const MAX_BODY = 1000;
let server: RunningServer | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close(0);
});

/** A server that answers what it read, and what it made of each body. */
async function reading(wait: () => Promise<void> = async () => {}) {
  const read: Array<string> = [];
  server = await serve({
    handle: async (client) => {
      await wait();
      let length = 0;
      const body = await client.readBody((bytes) => {
        length += bytes;
        return length > MAX_BODY ? 'too large' : undefined;
      });
      read.push(typeof body === 'string' ? body : `${body.length} bytes`);
      client.begin(body === 'too large' ? 413 : 200, {});
      client.end(typeof body === 'string' ? body : [body]);
    },
    port: 0,
    host: '127.0.0.1',
  });
  return { url: server.url, port: server.port, read };
}

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  return socket;
}

test('a body is read as it was sent, in one piece or many, and the connection continues', async () => {
  const { url, read } = await reading();
  const post = async (body: string | ReadableStream, more: object = {}) =>
    (await fetch(url, { method: 'POST', body, ...more })).text();
  expect(await post('grüß')).toBe('grüß');
  const pieces = ['one ', 'two ', 'three'];
  const chunked = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  expect(await post(chunked, { duplex: 'half' })).toBe('one two three');
  expect(await post('')).toBe('');
  expect(await post('x'.repeat(MAX_BODY))).toBe('x'.repeat(MAX_BODY));
  expect(read).toEqual(['6 bytes', '13 bytes', '0 bytes', '1000 bytes']);
});

test('a body that arrived while somebody else was asked is not missed', async () => {
  const { url } = await reading(() => new Promise((resolve) => setTimeout(resolve, 20)));
  expect(await (await fetch(url, { method: 'POST', body: 'early' })).text()).toBe('early');
});

test('a body that is too large is read no further, whether it says so or not', async () => {
  const { url, read } = await reading();
  expect((await fetch(url, { method: 'POST', body: 'x'.repeat(MAX_BODY + 1) })).status).toBe(413);
  const endless = new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(300)) });
  const asked = fetch(url, { method: 'POST', body: endless, duplex: 'half' } as RequestInit);
  // The client may still be writing when the connection is closed.
  await asked.then((response) => expect(response.status).toBe(413)).catch(() => undefined);
  expect(read).toEqual(['too large', 'too large']);
});

test('a client that leaves in the middle of its body leaves it broken', async () => {
  const { port, read } = await reading();
  const socket = open(port);
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf', () =>
    setTimeout(() => socket.destroy(), 20),
  );
  await expect.poll(() => read).toEqual(['broken']);
});

test('a client that has left before anybody reads leaves it broken', async () => {
  let go: () => void = () => {};
  const { port, read } = await reading(() => new Promise((resolve) => (go = resolve)));
  const socket = open(port);
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nha', () => socket.destroy());
  await new Promise((resolve) => setTimeout(resolve, 50));
  go();
  await expect.poll(() => read).toEqual(['broken']);
});
