import { createServer } from 'node:net';
import { AbstractConnector } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { createConnector } from '../connector.ts';

const ends: Array<() => unknown> = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Opens a connection and sends this number of commands; returns the events that the client library gets. */
async function open(commands: number) {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const Connector = createConnector(AbstractConnector, { maxReply: 1_000_000, ready: () => {} });
  const connector = new Connector({ host: '127.0.0.1', port });
  const stream = await connector.connect();
  connector.check({});
  ends.push(
    () => stream.destroy(),
    () => server.close(),
  );
  for (let sent = 0; sent < commands; sent += 1) stream.write('PING\r\n');
  const heard: string[] = [];
  stream.on('data', (piece) => heard.push(`${piece}`));
  return { heard, receive: (bytes: string) => stream.emit('data', Buffer.from(bytes)) };
}

test('a reply whose bytes come one by one reaches the client library in few pieces', async () => {
  const { heard, receive } = await open(2);
  const reply = `$10000\r\n${'x'.repeat(10_000)}\r\n`;
  for (const byte of reply) receive(byte);
  expect([heard.join(''), heard.length < 30]).toEqual([reply, true]);
  for (const byte of '+PONG\r\n') receive(byte);
  expect(heard.at(-1)).toBe('+PONG\r\n');
});

test('replies that come whole are passed on as they came', async () => {
  const { heard, receive } = await open(3);
  for (const replies of ['+PONG\r\n:1\r\n', '*2\r\n:1\r\n$1\r\nx\r\n']) receive(replies);
  expect(heard).toEqual(['+PONG\r\n:1\r\n', '*2\r\n:1\r\n$1\r\nx\r\n']);
});
