// The same adapter in a Worker, where I/O belongs to one request.

import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inTime } from '../../../../test/support/in-time.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { SCHEMA_VERSION } from '../schema.ts';

const WORKER = `
import { createDatabase } from '#adapters/postgres/database.ts';
const log = { info() {}, warn() {}, error() {} };
export default {
  async fetch(request) {
    const { connection, scope, id } = await request.json();
    const database = createDatabase(connection, { log });
    try {
      const { to } = await database.migrate();
      await database.openInstance({ uid: 'i', namespace: 'n', name: 'm' });
      const [kind, alias, holder, scopeId] = ['key', 'billing', { uid: 'u', namespace: 'n', name: 'k' }, '00000000-0000-4000-8000-000000000001'];
      const policy = { scopeId, kind, name: alias, blocked: false, models: [], anchor: 0, object: { namespace: 'n', name: 'k' }, chargedScopeIds: [] };
      const outcome = await database.putScope({ instanceUid: 'i', kind, alias, holder, policy, generation: 1, value: { hash: 'a'.repeat(64) } });
      const ofNamespace = { scopeId: '00000000-0000-4000-8000-000000000002', kind: 'namespace', name: 'n', blocked: false, models: [], anchor: 0, chargedScopeIds: [] };
      const namespace = { kind: 'namespace', alias: 'n', holder: { uid: 'namespace', namespace: 'n', name: 'n' }, policy: ofNamespace };
      await database.putScope({ instanceUid: 'i', generation: 1, ...namespace });
      const window = { start: 0, end: 4e12 };
      const tokens = { input: 1, output: 2, cachedInput: 0, cacheWrite: 0 };
      const entry = { id, kind: 'settled', scopeWindows: [{ scopeId, window }], cost: 10n ** 17n + 1n, tokens, model: 'm', identifier: 'i', estimated: false, settledAt: 1 };
      const ledgerDatabase = database.ledgerDatabase('i', (count) => crypto.getRandomValues(new Uint8Array(count)));
      const account = { id, batch: 1, callNumber: 0 };
      const { rejected } = await ledgerDatabase.bookBatch({ epoch: 0, account, closesAccount: true, storeCalls: 0, rows: [entry] });
      const derived = { scopeId: '00000000-0000-8000-8000-000000000003', window };
      await ledgerDatabase.countFirst([{ ...derived, from: scopeId }]);
      const [sum, first] = await database.sums([{ scopeId, window }, derived]);
      const found = await database.policies('i').find(['a'.repeat(64)]);
      return Response.json({ to, outcome, rejected, spent: String(sum.spent), first: String(first.spent), name: found.get('a'.repeat(64))?.key.name });
    } catch (error) {
      return Response.json({ name: error.name, message: error.message }, { status: 503 });
    } finally {
      await database.close();
    }
  },
};`;

let server: SharedPostgres;
let worker: Miniflare;

beforeAll(async () => {
  server = await sharedPostgres();
  const bundle = await build({
    stdin: { contents: WORKER, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    mainFields: ['module', 'main'],
    conditions: ['workerd'],
    external: ['node:*', 'cloudflare:*', 'pg-native'],
    // The client library is CommonJS and requires Node's own modules.
    banner: { js: `import { createRequire } from 'node:module'; const require = createRequire('file:///worker.mjs');` },
  });
  worker = new Miniflare({
    modules: true,
    script: bundle.outputFiles[0]?.text ?? '',
    compatibilityDate: '2026-07-01',
    compatibilityFlags: ['nodejs_compat'],
  });
});

afterAll(async () => {
  await worker.dispose();
});

async function ask(connection: SharedPostgres['connection'], id: string) {
  const body = JSON.stringify({ connection, id });
  const response = await worker.dispatchFetch('http://worker/', { method: 'POST', body });
  return { status: response.status, body: await response.json() };
}

test('in workerd each request opens the database, works and closes it, and money stays exact', async () => {
  const connection = await server.createDatabase();
  const answer = { to: SCHEMA_VERSION, outcome: 'written', rejected: [], first: '100000000000000001', name: 'billing' };
  expect(await ask(connection, '01930000-0000-7000-8000-000000000001')).toEqual({
    status: 200,
    body: { ...answer, spent: '100000000000000001' },
  });
  expect(await ask(connection, '01930000-0000-7000-8000-000000000002')).toEqual({
    status: 200,
    body: { ...answer, spent: '200000000000000002' },
  });
});

test('in workerd a database that is not there is an outage within a second', async () => {
  const asked = ask({ ...server.connection, port: 1 }, '01930000-0000-7000-8000-000000000003');
  const { status, body } = await inTime(asked);
  expect({ status, name: (body as { name: string }).name }).toEqual({ status: 503, name: 'DatabaseUnreachable' });
});
