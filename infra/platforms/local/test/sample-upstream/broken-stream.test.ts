// Streams that break behind their first byte, on real sockets: the bytes on the wire tell clients that the reply is not
// whole.
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { KEY } from '../../../../../test/gateway/instance.ts';
import { openGateway } from './gateway.fixture.ts';

const QUESTION = [{ role: 'user', content: 'one two three four five six seven' }];

/** All bytes of the connection, head included, once the server has closed it. */
function bytesOf(url: string, path: string, body: object): Promise<string> {
  const { hostname, port } = new URL(url);
  const content = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${KEY}`,
    `content-length: ${Buffer.byteLength(content)}`,
  ];
  const socket = connect(Number(port), hostname);
  socket.write(`${head.join('\r\n')}\r\n\r\n${content}`);
  return text(socket);
}

test.each([
  ['/chat/completions', 'openai', '/v1', { messages: QUESTION }, 'data: {"error":{"message"', '[DONE]'],
  ['/messages', 'anthropic', '', { messages: QUESTION, max_tokens: 50 }, 'event: error\n', 'message_stop'],
  ['/responses', 'openai', '/v1', { input: QUESTION }, 'event: response.failed\n', 'response.completed'],
])('a broken stream of %s ends with an error, and its connection without the end of the body', async (...row) => {
  const [route, provider, path, body, error, end] = row;
  const { url, ledger, close } = await openGateway({ provider, path });
  const bytes = await bytesOf(url, route, { model: 'cut', stream: true, ...body });
  expect(bytes).toContain(error);
  expect(bytes).not.toContain(end);
  expect(bytes.slice(bytes.indexOf(error))).toContain('The provider failed to answer');
  // The last chunk of a body that is whole has no bytes (RFC 9112, 7.1).
  expect(bytes).toContain('Transfer-Encoding: chunked');
  expect(bytes).not.toMatch(/\r\n0\r\n\r\n$/);
  expect(ledger.settled).toHaveLength(1);
  await close();
});
