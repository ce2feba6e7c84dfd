// Many instances on one database: one sweep drains and audits all of them.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBackends } from '#adapters/backends.ts';
import { createMemoryStore } from '#adapters/memory/store.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { maintain } from '#core/ledger/maintain.ts';
import { entryOf, idAt, scopeNumber } from '#core/ports/entry.fixture.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { Store } from '#core/ports/store.ts';
import { nodeDependencies } from '../../infra/node/platform.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';

let server: TestPostgres;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server?.stop());

const { clock, timer } = nodeDependencies();
const log = createMemoryLog();
const pause = (millis: number) => new Promise<void>((resolve) => void timer(millis, resolve));
const NOTHING = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
const SHARED = { type: 'redis', host: 'redis', port: 6379, password: '', tls: false } as const;

/** A store in another datacenter: each answer has the delay of a network. */
function distant(store: Store): Store {
  const later =
    <A extends unknown[], R>(ask: (...asked: A) => Promise<R>) =>
    (...asked: A) =>
      pause(20).then(() => ask(...asked));
  const { call, forget, survey, unbooked, loaded } = store;
  return {
    ...store,
    ...{ call: later(call), forget: later(forget), survey: later(survey) },
    ...{ unbooked: later(unbooked), loaded: later(loaded) },
  };
}

/** A counter of 12: 5 counted by a dead process, and 7 without an explanation. */
async function storeWithDifference(counter: ScopeWindow): Promise<Store> {
  const store = createMemoryStore({ clock });
  await store.begin(1);
  const { id, cost: _, charges: __, ...note } = entryOf({ id: idAt(clock.now()) });
  await store.call({ ...NOTHING, epoch: 1, loads: [{ ...counter, spent: 7n }] });
  const settle = { id, cost: 5n, counters: [counter], note: { ...note, charges: [counter] } };
  await store.call({ ...NOTHING, epoch: 1, settles: [settle] });
  return store;
}

test.each([8, 16, 100])('%i instances on one database are all drained and audited in one sweep', async (count) => {
  const connection = await server.createDatabase();
  const window = { start: clock.now() - 3_600_000, end: clock.now() + 3_600_000 };
  const instances = Array.from({ length: count }, (_, place) => ({
    uid: `instance-${place}`,
    counter: { scopeId: scopeNumber(place), window },
  }));
  const stores = new Map<string, Store>();
  const backends = createBackends({
    clock,
    openDatabase: (of) => createDatabase(of, { log }),
    flush: async (instanceUid, _, books) => {
      const store = distant(stores.get(instanceUid) as Store);
      await maintain({
        instanceUid,
        store,
        books,
        epochs: books.epochs(instanceUid),
        timer,
        log,
        metrics: createMetrics(),
      });
    },
    probeShared: async () => ({ ok: true }),
  });
  const database = createDatabase(connection, { log });
  try {
    await database.migrate();
    for (const { uid, counter } of instances) {
      await database.epochs(uid).raise(0, 0);
      await database.epochs(uid).open(1);
      stores.set(uid, await storeWithDifference(counter));
    }
    await Promise.all(instances.map(({ uid }) => backends.flush(uid, SHARED, connection)));
    const booked = await database.sums(instances.map(({ counter }) => counter));
    expect(booked.map(({ spent }) => spent)).toEqual(instances.map(() => 5n));
    const shown = await Promise.all(instances.map(({ uid, counter }) => stores.get(uid)?.read([counter])));
    expect(shown).toEqual(instances.map(() => [5n]));
    const dialled = 'select 1 from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()';
    expect((await server.query(connection, dialled, [connection.dbname])).length).toBeLessThanOrEqual(9);
  } finally {
    await Promise.all([backends.close(), database.close()]);
  }
});
