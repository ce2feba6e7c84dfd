// Tenants whose databases and stores answer without end, beside tenants who want their keys: in one process with the
// memory that the chart gives it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { run } from '../support/child.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { type SharedPostgres, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { CLAIMS, type ClaimHarm, HARMS, startHostilePostgres } from './postgres.ts';
import type { Outcome, Tenant } from './reconcile.ts';
import {
  REDIS_HARMS,
  type RedisHarm,
  startHostileRedis,
  startHostileUpstash,
  UPSTASH_HARMS,
  type UpstashHarm,
} from './redis.ts';

const PROGRAM = join(import.meta.dirname, 'reconcile.ts');
const MIB = 1024 * 1024;
/** Other instances converge in so many milliseconds. */
const MINUTE = 60_000;
const GOOD_KEYS = 30;
/** Each kind of harm is done by so many tenants at the same time. */
const TIMES = 2;

const values = parse(
  readFileSync(join(import.meta.dirname, '../../infra/packaging/helm/gateway-operator/values.yaml'), 'utf8'),
);

describeUnless(whyNoRedis(), 'a reconciler of many tenants', () => {
  let server: SharedPostgres;
  let redis: TestRedis;
  const stops: Array<() => unknown> = [];
  beforeAll(async () => {
    server = await sharedPostgres();
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis?.stop();
    await Promise.all(stops.map((stop) => stop()));
  });

  const memory = { host: 'memory', port: '6379', password: '' };
  const nowhere = { host: '127.0.0.1', username: 'u', password: 'p', dbname: 'd' };
  const database = async () => {
    const { host, port, username, password, dbname } = await server.createDatabase();
    return { host, port, username, password, dbname };
  };
  const started = async <T extends { stop(): unknown }>(starting: Promise<T>): Promise<T> => {
    const one = await starting;
    stops.push(() => one.stop());
    return one;
  };
  const withDatabase = async (
    namespace: string,
    harm: Parameters<typeof startHostilePostgres>[0],
    isPolite: boolean,
  ) => {
    const { port } = await started(startHostilePostgres(harm, isPolite));
    return { namespace, database: { ...nowhere, port }, store: memory, keys: 2 };
  };

  async function createTenants(): Promise<ReadonlyArray<Tenant>> {
    const tenants: Tenant[] = [];
    const { host, port, password } = redis.connection;
    for (const name of ['first', 'second', 'third'])
      tenants.push({
        namespace: `good-${name}`,
        database: await database(),
        keys: GOOD_KEYS,
        store: name === 'second' ? memory : { host, port: String(port), password },
      });
    for (let time = 0; time < TIMES; time += 1) {
      for (const [index, harm] of HARMS.entries()) {
        tenants.push(await withDatabase(`database-${index}-${time}`, harm, false));
        tenants.push(await withDatabase(`claims-${index}-${time}`, harm, true));
      }
      for (const [index, harm] of (Object.keys(CLAIMS) as ClaimHarm[]).entries())
        tenants.push(await withDatabase(`shape-${index}-${time}`, harm, true));
      // These have a good database and a hostile store.
      const shared = await database();
      for (const [index, harm] of (Object.keys(REDIS_HARMS) as RedisHarm[]).entries())
        for (const isPolite of [false, true]) {
          const store = await started(startHostileRedis(harm, isPolite));
          const of = { host: '127.0.0.1', port: String(store.port), password: '' };
          tenants.push({ namespace: `redis-${index}-${isPolite}-${time}`, database: shared, store: of, keys: 2 });
        }
      for (const [index, harm] of (Object.keys(UPSTASH_HARMS) as UpstashHarm[]).entries()) {
        const { url } = await started(startHostileUpstash(harm));
        const store = { host: url, port: '443', password: 't' };
        tenants.push({ namespace: `upstash-${index}-${time}`, database: shared, store, keys: 2 });
      }
    }
    return tenants;
  }

  test('is not harmed by those of some: their instances are not ready, and all others converge within a minute', async () => {
    const tenants = await createTenants();
    const options = { NODE_OPTIONS: values.reconcile.nodeOptions };
    const { code, stdout, stderr } = await run('node', [PROGRAM], options, JSON.stringify(tenants));
    expect([code, stderr]).toEqual([0, '']);
    const outcome = JSON.parse(stdout) as Outcome;
    const { good = [], hostile = [] } = Object.groupBy(tenants, ({ namespace }) =>
      namespace.startsWith('good') ? 'good' : 'hostile',
    );
    for (const { namespace } of good) {
      expect([namespace, outcome.instances[namespace]]).toEqual([namespace, 'True Ready']);
      expect(outcome.keys[namespace]).toEqual(['True Ready']);
      // Twice the minute of the guarantee: two other suites run on the same two cores.
      expect(outcome.readyAfter[namespace]).toBeLessThan(2 * MINUTE);
    }
    // Servers that do their harm in answers which are no worse than those of others are as good as others.
    const served = hostile.filter(({ namespace }) => outcome.instances[namespace] === 'True Ready');
    expect(hostile.length).toBeGreaterThan(150);
    expect(served.length).toBeLessThan(10);
    expect(outcome.maxRss).toBeLessThan(900 * MIB);
  }, 300_000);
});
