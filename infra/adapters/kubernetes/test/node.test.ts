// Does a Node process keep its connection, notice what was rotated, and end its calls as it should: by a signal, by a
// broken connection?
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { createIssuer } from '../../certificates/issuer.ts';
import { createCluster } from '../cluster.ts';
import { createKubeconfigTransport, createServiceAccountTransport, type NodeTransport } from '../node.ts';

let server: Server;
let folder: string;
let address: string;
let connections = 0;
let accepted = 'Bearer one';
let reply: (response: ServerResponse) => void;
const seen: Array<string | undefined> = [];
let transport: NodeTransport | undefined;

beforeEach(async () => {
  connections = 0;
  seen.length = 0;
  reply = (response) => response.end(JSON.stringify({ metadata: { name: 'x' } }));
  accepted = 'Bearer one';
  folder = mkdtempSync(join(tmpdir(), 'service-account-'));
  writeFileSync(join(folder, 'token'), 'one\n');
  writeFileSync(join(folder, 'ca.crt'), '');
  server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    const code = request.headers.authorization === accepted ? 200 : 401;
    response.writeHead(code);
    reply(response);
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await transport?.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});
const get = (from: NodeTransport) => createCluster(from).get(RESOURCES.configMaps, 'a', 'x');

test('connections are kept: a hundred calls in turn need no more than two', async () => {
  transport = createServiceAccountTransport({ address, folder });
  for (let call = 0; call < 100; call += 1) await get(transport);
  expect(seen).toHaveLength(100);
  // The next call may begin a moment before the last one has given its connection back.
  expect(connections).toBeLessThanOrEqual(2);
});

test('a response without end is not received to its end', async () => {
  transport = createServiceAccountTransport({ address, folder });
  let sent = 0;
  reply = (response) => {
    const more = () => {
      while (response.writable && response.write('x'.repeat(65_536))) sent += 65_536;
      if (response.writable) response.once('drain', more);
    };
    more();
  };
  await expect(get(transport)).rejects.toThrow(/the response is larger than 4194304 bytes/);
  expect(connections).toBe(1);
  expect(sent).toBeLessThan(30_000_000);
});

test('a token that was rotated is read again as soon as the old one is refused', async () => {
  transport = createServiceAccountTransport({ address, folder });
  await get(transport);
  writeFileSync(join(folder, 'token'), 'two\n');
  accepted = 'Bearer two';
  expect(await get(transport)).toBeDefined();
  expect(seen).toEqual(['Bearer one', 'Bearer one', 'Bearer two']);
});

test('a token that is refused for good is an error, not a loop', async () => {
  transport = createServiceAccountTransport({ address, folder });
  accepted = 'Bearer three';
  await expect(get(transport)).rejects.toThrow(/401/);
  expect(seen).toHaveLength(2);
});

test('a kubeconfig names address and token; one without a cluster is told so', async () => {
  const file = join(folder, 'kubeconfig');
  const config = (server: string) => ({
    'current-context': 'c',
    clusters: [{ name: 'k', cluster: { server } }],
    users: [{ name: 'u', user: { token: 'one' } }],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
  });
  writeFileSync(file, JSON.stringify(config(`${address}/`)));
  transport = await createKubeconfigTransport(file);
  expect(await get(transport)).toBeDefined();
  expect(seen).toEqual(['Bearer one']);
  writeFileSync(file, JSON.stringify({ ...config(address), 'current-context': 'none' }));
  await expect(createKubeconfigTransport(file)).rejects.toThrow(/no cluster in its current context/);
});

test('a kubeconfig that asks for a proxy is refused, not passed by', async () => {
  const file = join(folder, 'kubeconfig');
  const cluster = { server: address, 'proxy-url': 'http://127.0.0.1:1' };
  const contexts = [{ name: 'c', context: { cluster: 'k', user: 'u' } }];
  writeFileSync(
    file,
    JSON.stringify({ 'current-context': 'c', clusters: [{ name: 'k', cluster }], users: [], contexts }),
  );
  await expect(createKubeconfigTransport(file)).rejects.toThrow(/proxy-url is not supported/);
});

describe('over TLS', () => {
  const issuer = createIssuer();
  const validity = { from: Date.now() - 60_000, until: Date.now() + 3_600_000 };
  const issue = async (name: string) =>
    issuer.issue({ authority: await issuer.issueAuthority({ name, ...validity }), names: ['127.0.0.1'], ...validity });
  const call = (signal = AbortSignal.timeout(5000)) => ({ method: 'GET', path: '/api', signal }) as const;
  let tls: Server;
  let ca: string;
  let handshakes: number;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let send: NodeTransport['request'];

  beforeEach(async () => {
    handshakes = 0;
    answer = (_request, response) => response.end('{"kind":"Status"}');
    const { cert, key, ca: ours } = await issue('Ours');
    ca = ours;
    writeFileSync(join(folder, 'ca.crt'), ca);
    tls = createTlsServer({ cert, key }, (request, response) => answer(request, response));
    tls.on('secureConnection', () => {
      handshakes += 1;
    });
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    const { port } = tls.address() as AddressInfo;
    transport = createServiceAccountTransport({ address: `https://127.0.0.1:${port}`, folder });
    send = transport.request;
  });
  afterEach(async () => {
    tls.closeAllConnections();
    await new Promise((resolve) => tls.close(resolve));
  });

  test('fifty calls in turn need one handshake', async () => {
    for (let count = 0; count < 50; count += 1) await send(call());
    // The next call may begin a moment before the last one has given its connection back.
    expect(handshakes).toBeLessThanOrEqual(2);
  });

  test.each(['POST', 'PATCH', 'DELETE'] as const)('what a %s carries arrives, with its length', async (method) => {
    const got: unknown[] = [];
    answer = async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part);
      got.push(request.method, request.url, request.headers['content-length'], Buffer.concat(parts).toString());
      response.writeHead(429, { 'retry-after': '7' }).end('später');
    };
    const response = await send({ ...call(), method, path: '/a?b=c', body: '{"ä":1}' });
    expect(response).toEqual({ status: 429, retryAfter: '7', text: 'später' });
    expect(got).toEqual([method, '/a?b=c', '8', '{"ä":1}']);
  });

  test('a server with a certificate of somebody else is not spoken to', async () => {
    writeFileSync(join(folder, 'ca.crt'), (await issue('Theirs')).ca);
    await expect(send(call())).rejects.toThrow(/signature|self-signed|unable to verify/i);
  });

  test('a signal ends a call before its answer, and an answer that is being read', async () => {
    const ended = new AbortController();
    answer = () => ended.abort();
    await expect(send(call(ended.signal))).rejects.toThrow(/abort/);
    await expect(send(call(ended.signal))).rejects.toThrow(/abort/);
    const stop = new AbortController();
    answer = (_request, response) => response.write('half', () => stop.abort());
    await expect(send(call(stop.signal))).rejects.toThrow(/abort/);
  });

  test('a rotated authority lets what is open end, and keeps nothing of the old one for the next call', async () => {
    const { promise: isRotated, resolve: rotated } = Promise.withResolvers<void>();
    const { promise: isRead, resolve: begun } = Promise.withResolvers<void>();
    answer = async (_request, response) => {
      response.write('one ', () => begun());
      await isRotated;
      response.end('two');
    };
    const slow = send(call());
    await isRead;
    writeFileSync(join(folder, 'ca.crt'), `${ca}\n`);
    const codes = [401, 200];
    answer = (_request, response) => response.writeHead(codes.shift() ?? 500).end('anew');
    expect(await send(call())).toMatchObject({ status: 200, text: 'anew' });
    rotated();
    expect(await slow).toMatchObject({ status: 200, text: 'one two' });
    // One of the slow call, one of the call that was refused, one that trusts the new authority.
    expect(handshakes).toBe(3);
  });

  test('an answer that breaks off is an error, not a short answer', async () => {
    answer = (request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half', () => request.socket.destroy());
    };
    await expect(send(call())).rejects.toThrow(/aborted|hang up|RESET/);
  });
});
