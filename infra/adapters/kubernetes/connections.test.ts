// Are connections kept over TLS, and do calls end as they should: by their signal, by a broken connection, through a proxy?
import { once } from 'node:events';
import { createServer as createProxy, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createIssuer } from '../issuer.ts';
import { openConnections } from './connections.ts';
import type { Connections } from './server.ts';

const issuer = createIssuer();
const validity = { from: Date.now() - 60_000, until: Date.now() + 3_600_000 };
const issue = async (name: string) =>
  issuer.issue({ authority: await issuer.issueAuthority({ name, ...validity }), names: ['127.0.0.1'], ...validity });
const [ours, theirs] = [await issue('Ours'), await issue('Theirs')];

let server: Server;
let address: string;
let handshakes = 0;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
const open: Connections[] = [];

beforeEach(async () => {
  handshakes = 0;
  answer = (_request, response) => response.end('{"kind":"Status"}');
  server = createServer({ cert: ours.cert, key: ours.key }, (request, response) => answer(request, response));
  server.on('secureConnection', () => {
    handshakes += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.destroy()));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function to(more: { ca?: string; proxy?: string } = {}): Promise<Connections> {
  const connections = await openConnections({ address, tls: { ca: more.ca ?? ours.ca }, proxy: more.proxy });
  open.push(connections);
  return connections;
}
const call = (signal = AbortSignal.timeout(5000)) => ({ method: 'GET', path: '/api', headers: {}, signal }) as const;

test('fifty calls in turn need one handshake', async () => {
  const { send } = await to();
  for (let count = 0; count < 50; count += 1) await (await send(call())).text();
  expect(handshakes).toBe(1);
});

test.each(['POST', 'PATCH', 'DELETE'] as const)('what a %s carries arrives, with its length', async (method) => {
  const got: unknown[] = [];
  answer = async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    got.push(request.method, request.url, request.headers['content-length'], Buffer.concat(parts).toString());
    response.writeHead(429, { 'retry-after': '7' }).end('später');
  };
  const { send } = await to();
  const { status, retryAfter, text } = await send({ ...call(), method, path: '/a?b=c', body: '{"ä":1}' });
  expect([status, retryAfter, await text()]).toEqual([429, '7', 'später']);
  expect(got).toEqual([method, '/a?b=c', '8', '{"ä":1}']);
});

test('a server with a certificate of somebody else is not spoken to', async () => {
  const { send } = await to({ ca: theirs.ca });
  await expect(send(call())).rejects.toThrow(/signature|self-signed|unable to verify/i);
});

test('a signal ends a call before its answer, and an answer that is being read', async () => {
  const { send } = await to();
  answer = () => {};
  const ended = new AbortController();
  const waiting = send(call(ended.signal));
  setTimeout(() => ended.abort(new Error('enough')), 20);
  await expect(waiting).rejects.toThrow('enough');
  await expect(send(call(ended.signal))).rejects.toThrow('enough');

  answer = (_request, response) => response.write('{"type":"ADDED"}\n');
  const stop = new AbortController();
  const watch = await send(call(stop.signal));
  const read = (async () => {
    for await (const part of watch.stream()) {
      expect(String(part)).toBe('{"type":"ADDED"}\n');
      stop.abort();
    }
  })();
  await expect(read).rejects.toThrow();
});

test('an answer that breaks off is an error, not a short answer', async () => {
  answer = (request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half');
    setTimeout(() => request.socket.destroy(), 20);
  };
  const { text } = await (await to()).send(call());
  await expect(text()).rejects.toThrow(/aborted/);
});

test('retired connections let a watch go on and keep nothing for the next call', async () => {
  const connections = await to();
  await (await connections.send(call())).text();
  answer = (_request, response) => {
    response.write('one ');
    setTimeout(() => response.end('two'), 100);
  };
  const slow = await connections.send(call());
  connections.retire();
  expect(await slow.text()).toBe('one two');
  answer = (_request, response) => response.end('anew');
  expect(await (await connections.send(call())).text()).toBe('anew');
  expect(handshakes).toBe(2);
});

test('a proxy is asked for the way', async () => {
  const asked: Array<string | undefined> = [];
  const tunnels: Socket[] = [];
  const proxy = createProxy().on('connect', (request, socket: Socket) => {
    asked.push(request.url);
    const [host = '', port = ''] = (request.url ?? '').split(':');
    const there = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      there.pipe(socket);
      socket.pipe(there);
    });
    tunnels.push(socket, there);
    for (const one of [socket, there]) one.on('error', () => {});
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { send } = await to({ proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
  expect(await (await send(call())).text()).toBe('{"kind":"Status"}');
  expect(asked).toEqual([address.replace('https://', '')]);
  for (const one of tunnels) one.destroy();
  proxy.close();
});
