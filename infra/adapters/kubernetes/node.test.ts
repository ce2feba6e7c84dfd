// Does a Node process keep its connection, and notice a token that was rotated?
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { createCluster } from './cluster.ts';
import { createKubeconfigTransport, createServiceAccountTransport, type NodeTransport } from './node.ts';

let server: Server;
let folder: string;
let address: string;
let connections = 0;
let accepted = 'Bearer one';
const seen: Array<string | undefined> = [];
let transport: NodeTransport | undefined;

beforeEach(async () => {
  connections = 0;
  seen.length = 0;
  accepted = 'Bearer one';
  folder = mkdtempSync(join(tmpdir(), 'service-account-'));
  writeFileSync(join(folder, 'token'), 'one\n');
  writeFileSync(join(folder, 'ca.crt'), '');
  server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    const code = request.headers.authorization === accepted ? 200 : 401;
    response.writeHead(code).end(JSON.stringify({ metadata: { name: 'x' } }));
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
