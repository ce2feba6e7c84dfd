// Money under chaos on other engines: failovers and moving slots of Redis, a PgBouncer with fewer connections than its
// clients, and a promoted standby of PostgreSQL. FAULT_SECONDS=60 and FAULT_SEEDS=1-6 run for longer.
import { expect } from 'vitest';
import { whyNoPgBouncer } from '../support/pgbouncer.ts';
import { whyNoRedis } from '../support/redis.ts';
import { testUnless } from '../support/skip-unless.ts';
import { causeChaos } from './chaos/chaos.ts';
import type { Servers } from './chaos/harness.ts';

const SECONDS = Number(process.env.FAULT_SECONDS ?? 12);
const [FIRST = 1, LAST = FIRST] = (process.env.FAULT_SEEDS ?? '1-2').split('-').map(Number);

const ENGINES: ReadonlyArray<readonly [name: string, servers: Servers, why?: string | undefined]> = [
  ['a Redis behind Sentinels', { store: 'sentinel' }],
  ['a Redis Cluster', { store: 'cluster' }],
  ['PgBouncer with two connections', { database: 'pooled' }, whyNoPgBouncer()],
  ['a PostgreSQL whose standby is promoted', { database: 'standby' }],
];

for (const [name, servers, why] of ENGINES) {
  for (let seed = FIRST; seed <= LAST; seed += 1) {
    testUnless(
      whyNoRedis() ?? why,
      `faults on ${name}, seed ${seed}: completed replies are charged once, other requests at most their reservations, and counters equal sums`,
      async () => {
        const chaos = { seed, gateways: 2 - (seed % 2), millis: SECONDS * 1000, servers };
        const { wrong, completed, faults, statuses } = await causeChaos(chaos);
        expect({ wrong, faults, statuses }).toEqual({ wrong: [], faults, statuses });
        expect(completed).toBeGreaterThan(5);
      },
      (SECONDS + 180) * 1000,
    );
  }
}
