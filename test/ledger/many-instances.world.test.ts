// Many instances on one database: one resync closes the accounts of their dead processes, and audits all of them.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBackends } from '#adapters/backends/backends.ts';
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { maintainAlone } from '#core/ledger/maintenance.ts';
import type { CounterStore } from '#core/ports/counter-store.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { ONE_STORE } from '../support/one-store.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let server: TestPostgres;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server?.stop());

const { clock, timer, ids, random } = nodeDependencies();
const log = createMemoryLog();
const pause = (millis: number) => new Promise<void>((resolve) => void timer(millis, resolve));
const SHARED = { type: 'redis', host: 'redis', port: 6379, password: '', tls: false } as const;
const LEASE = 20_000;

/** A counter store in another datacenter: each reply has the delay of a network. */
const distant = (counterStore: CounterStore): CounterStore =>
  new Proxy(counterStore, {
    get: (of, name) => {
      const method: unknown = Reflect.get(of, name);
      return typeof method !== 'function'
        ? method
        : (...asked: unknown[]) => pause(20).then(() => Reflect.apply(method, of, asked));
    },
  });

/** A counter of 12: 5 reported by a process that died a lease ago, and 7 without an explanation. */
async function storeWithDifference(counter: ScopeWindow): Promise<CounterStore> {
  let late = 2 * LEASE;
  const counterStore = createMemoryCounterStore({ clock: { now: () => clock.now() - late }, epoch: 1 });
  await counterStore.load(1, [{ ...counter, spent: 7n }]);
  const line = { ...counter, spend: 5n, risk: 0n, returned: 0n, carriedOver: 0n, ahead: 0n };
  await counterStore.call({
    epoch: 1,
    account: ids.next(),
    callNumber: 1,
    lease: LEASE,
    deadline: clock.now(),
    batch: 1,
    bookedBatch: 0,
    changes: [line],
    requests: [],
    rateChanges: [],
    accountsToForget: [],
    finishesAccount: false,
  });
  late = 0;
  return counterStore;
}

test.each([8, 16, 100])('%i instances on one database are all closed and audited in one resync', async (count) => {
  const connection = await server.createDatabase();
  const window = { start: clock.now() - 3_600_000, end: clock.now() + 3_600_000 };
  const instances = Array.from({ length: count }, (_, place) => ({
    uid: `instance-${place}`,
    counter: { scopeId: scopeNumber(place), window },
  }));
  const stores = new Map<string, CounterStore>();
  const backends = createBackends({
    clock,
    maxReplyBytes: 1024 * 1024,
    openDatabase: (of) => createDatabase(of, { log }),
    flush: async ({ uid: instanceUid }, { database, cursor }) => {
      const counterStore = distant(stores.get(instanceUid) ?? expect.fail('there is no store'));
      const { scopesOfOtherInstances } = database;
      const ledgerDatabase = { ...database.ledgerDatabase(instanceUid, random), scopesOfOtherInstances };
      const epochs = database.epochs(instanceUid, ONE_STORE);
      const metrics = createMetrics();
      await maintainAlone(
        { instanceUid, counterStore, database: ledgerDatabase, epochs, clock, timer, log, metrics },
        cursor,
      );
    },
    probeShared: async () => ({ ok: true }),
  });
  const cursor = { from: 0, move: () => undefined };
  const database = createDatabase(connection, { log });
  try {
    await database.migrate();
    for (const { uid, counter } of instances) {
      await database.epochs(uid, ONE_STORE).raise(0, 0);
      await database.epochs(uid, ONE_STORE).open(1);
      stores.set(uid, await storeWithDifference(counter));
    }
    await Promise.all(
      instances.map(({ uid }) =>
        backends.flush({ uid, namespace: 'default', name: uid }, { store: SHARED, database: connection, cursor }),
      ),
    );
    const booked = await database.sums(instances.map(({ counter }) => counter));
    expect(booked.map(({ spent }) => spent)).toEqual(instances.map(() => 5n));
    const shown = await Promise.all(instances.map(({ uid, counter }) => stores.get(uid)?.read([counter])));
    expect(shown).toEqual(instances.map(() => [{ spent: 5n, escrowOfAll: 0n }]));
    const dialled = 'select 1 from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()';
    expect((await server.query(connection, dialled, [connection.dbname])).length).toBeLessThanOrEqual(9);
  } finally {
    await Promise.all([backends.close(), database.close()]);
  }
});
