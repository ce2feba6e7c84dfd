import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createJournal } from '#adapters/journal/journal.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { type GatewayParts, openGateway } from '../gateway.ts';
import { listen } from '../listen.ts';
import { nodeDependencies } from '../platform.ts';

const root = mkdtempSync(join(tmpdir(), 'gateway-close-'));
const sockets = new Set<Socket>();
/** PostgreSQL's answer to a login without a password. */
const WELCOME = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1');
/** A database that takes every login and answers no statement. */
const database = createServer((socket) => {
  sockets.add(socket);
  socket.on('error', () => undefined);
  socket.on('close', () => sockets.delete(socket));
  socket.write(WELCOME);
  socket.resume();
});
let port = 0;
beforeAll(async () => {
  ({ port } = await listen(database, { port: 0, host: '127.0.0.1' }));
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => database.close(resolve));
  rmSync(root, { recursive: true, force: true });
});

const partsIn = (folder: string): GatewayParts => ({
  ...nodeDependencies(),
  instance: { uid: 'instance', namespace: 'default', name: 'sample' },
  folder,
  log: createMemoryLog(),
  metrics: createMetrics(),
  connection: { host: '127.0.0.1', port, username: 'u', password: '', dbname: 'd', sslmode: 'disable' },
  storeConnection: { type: 'memory' },
  snapshots: { current: () => undefined },
  credentials: { read: () => undefined },
  upstream: () => Promise.reject(new Error('nothing is called')),
});

describe('a gateway', () => {
  test('that cannot be opened as a whole releases what it had opened', async () => {
    const folder = mkdtempSync(join(root, 'half-'));
    const parts = partsIn(folder);
    const snapshots = Object.defineProperty({}, 'current', { get: () => undefined });
    const failing = {
      ...parts,
      snapshots,
      get random(): never {
        throw new Error('half way');
      },
    };
    expect(() => openGateway(failing as unknown as GatewayParts)).toThrow('half way');
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]));
  });

  test('whose journal cannot be closed closes the rest, and tells', async () => {
    const folder = mkdtempSync(join(root, 'close-'));
    // The close deletes this segment of an earlier process, of which nothing is left.
    const earlier = createJournal({ folder });
    await earlier.append({ type: 'release', id: 'a' });
    await earlier.close();
    const gateway = openGateway(partsIn(folder));
    await vi.waitFor(() => expect(sockets.size).toBeGreaterThan(0));
    // A folder in place of a segment stands for what cannot be deleted.
    rmSync(join(folder, 'journal-000000001.log'), { force: true });
    mkdirSync(join(folder, 'journal-000000001.log'));
    await expect(gateway.close()).rejects.toThrow();
    await vi.waitFor(() => expect(sockets.size).toBe(0));
    const next = createJournal({ folder });
    await next.close().catch(() => undefined);
  });
});
