// Tenants whose Secrets name hosts that nobody answers for, or very many authorities, beside tenants who want their
// keys.
import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { issue, issueAuthority } from '#adapters/certificates/x509.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { run } from '../support/child.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { startNameServer } from './name-server.ts';
import type { Outcome, Tenant } from './reconcile.ts';

const PROGRAM = join(import.meta.dirname, 'reconcile.ts');
const CHART = join(import.meta.dirname, '../../infra/packaging/helm/gateway-operator/values.yaml');
const MIB = 1024 * 1024;
/** Other instances converge in so many milliseconds. */
const MINUTE = 60_000;
const DAY = 86_400_000;
const NAME = 'database.good.test';
const MEMORY = { host: 'memory', port: '6379', password: '' };

const { nodeOptions } = parse(readFileSync(CHART, 'utf8')).reconcile;
const lifetime = () => ({ from: Date.now() - DAY, until: Date.now() + DAY });
let server: TestPostgres;
let nameServer: Awaited<ReturnType<typeof startNameServer>>;
let authority: Awaited<ReturnType<typeof issueAuthority>>;

beforeAll(async () => {
  authority = await issueAuthority({ name: 'authority', ...lifetime() });
  const pair = await issue({ authority, names: ['localhost'], ...lifetime() });
  server = await startPostgres({ tls: pair, settings: ['max_connections=1000'] });
  nameServer = await startNameServer(NAME);
});
afterAll(async () => {
  nameServer?.stop();
  await server?.stop();
});

async function resync(tenants: ReadonlyArray<Tenant>): Promise<Outcome> {
  const environment = { NODE_OPTIONS: nodeOptions, NAME_SERVER: nameServer.address };
  const { code, stdout, stderr } = await run('node', [PROGRAM], environment, JSON.stringify(tenants));
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Outcome;
}

function expectReady({ instances, readyAfter }: Outcome, namespaces: ReadonlyArray<string>): void {
  for (const namespace of namespaces) {
    expect([namespace, instances[namespace]]).toEqual([namespace, 'True Ready']);
    expect(readyAfter[namespace]).toBeLessThan(MINUTE);
  }
}

test('host names that nobody answers for do not keep instances at other names from being ready', async () => {
  // Half of them have a good database, so that the reconciler continues to their store.
  const shared = await server.createDatabase();
  const silent = Array.from({ length: 100 }, (_, index) => ({
    namespace: `silent-${index}`,
    database: index % 2 === 0 ? { ...shared, host: `database-${index}.silent.test` } : shared,
    store: { ...MEMORY, host: `store-${index}.silent.test` },
    keys: 2,
  }));
  const good = ['localhost', NAME].map(async (host, index) => ({
    namespace: `good-${index}`,
    database: { ...(await server.createDatabase()), host },
    store: MEMORY,
    keys: 10,
  }));
  const outcome = await resync([...silent, ...(await Promise.all(good))]);
  expectReady(outcome, ['good-0', 'good-1']);
  const { 'silent-0': withoutDatabase, 'silent-1': withoutStore } = outcome.instances;
  expect([withoutDatabase, withoutStore]).toEqual(['False DatabaseUnreachable', 'False StoreUnreachable']);
}, 300_000);

test('certificates of many authorities take neither the time nor the memory of others', async () => {
  const others = await Promise.all(
    Array.from({ length: 90 }, (_, index) => issueAuthority({ name: `authority ${index}`, ...lifetime() })),
  );
  // Just below the limit, and as many as a Secret may have.
  const many = [authority, ...others].map(({ cert }) => cert.trim()).join('\n');
  const tooMany = Array.from({ length: 13 }, () => many).join('\n');
  const unused = await server.createDatabase();
  const tenantsWith = (name: string, sslrootcert: string, databaseOf: () => Promise<DatabaseConnection>) =>
    Array.from({ length: 60 }, async (_, index) => ({
      namespace: `${name}-${index}`,
      database: { ...(await databaseOf()), host: 'localhost', sslmode: 'verify-ca' as const, sslrootcert },
      store: MEMORY,
      keys: 2,
    }));
  const tenants = await Promise.all([
    ...tenantsWith('many', many, server.createDatabase),
    // They are refused before anybody connects.
    ...tenantsWith('too-many', tooMany, async () => unused),
  ]);
  const outcome = await resync(tenants);
  expectReady(
    outcome,
    tenants.map(({ namespace }) => namespace).filter((namespace) => namespace.startsWith('many')),
  );
  expect(outcome.instances['too-many-0']).toBe('False SecretKeyInvalid');
  expect(outcome.maxRss).toBeLessThan(600 * MIB);
  expect(outcome.maxDelay).toBeLessThan(5000);
}, 300_000);
