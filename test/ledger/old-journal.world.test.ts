// A journal that is older than the ledger rows that PostgreSQL keeps (RETAIN_DAYS, decision 7).

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import { createMemoryJournal, type MemoryFolder } from '#adapters/memory/journal.ts';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import { spendWindow } from '#core/money/window.ts';
import type { JournalRecord } from '#core/ports/journal.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { ONE_STORE } from '../support/one-store.ts';
import { type SharedPostgres, sharedPostgres } from '../support/shared-servers.ts';

const DAY = 86_400_000;
const INSTANCE = 'instance-1';

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;

beforeAll(async () => {
  server = await sharedPostgres();
  connection = await server.migratedDatabase();
  database = createDatabase(connection, { log: createMemoryLog() });
  await database.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
});
afterAll(async () => {
  await database?.close();
});

test('an old journal loses nothing: a person decides, and until then it counts as spent once more', async () => {
  const now = Date.now();
  const key: ScopePolicy = {
    scopeId: scopeNumber(1),
    kind: 'key',
    name: 'key',
    blocked: false,
    models: [],
    anchor: now - 400 * DAY,
    budget: { limit: '100', duration: '3650d', alignment: 'Rolling' },
  };
  const scopeWindows = [{ scopeId: key.scopeId, window: spendWindow(key, now) }];
  const [booked, unbooked] = [30n, 20n].map((cost) => ledgerRowOf({ id: idAt(now - 200 * DAY), cost, scopeWindows }));
  if (booked === undefined || unbooked === undefined) throw new Error('nothing was settled');
  const { random, ids } = nodeDependencies();
  const ledgerDatabase = {
    ...database.ledgerDatabase(INSTANCE, random),
    scopesOfOtherInstances: database.scopesOfOtherInstances,
  };
  const epochs = database.epochs(INSTANCE, ONE_STORE);
  await epochs.raise(0, 0);
  await epochs.open(1);
  const account = ids.next();
  await ledgerDatabase.bookBatch({
    epoch: 1,
    account: { id: account, batch: 1, callNumber: 1 },
    storeCalls: 1,
    rows: [booked],
  });
  expect(await database.dropDays(60, Date.now())).not.toEqual([]);

  // The process died before it learned that the first one was booked, and before it booked the other.
  const folder: MemoryFolder = {
    records: [{ type: 'account', id: account }, ...[booked, unbooked].flatMap(toRecords)],
  };
  const log = createMemoryLog();
  const surroundings = { ...nodeDependencies(), metrics: createMetrics() };
  const start = async () => {
    const counterStore = createMemoryCounterStore({ ...surroundings, epoch: 0 });
    const parts = {
      instanceUid: INSTANCE,
      counterStore,
      database: ledgerDatabase,
      epochs,
      journal: createMemoryJournal(folder),
      log,
    };
    const ledger = createLedger({ ...surroundings, ...parts, processName: 'memory' });
    await ledger.start();
    await ledger.maintain();
    return ledger;
  };
  const first = await start();
  expect(await first.spend([key])).toMatchObject({ ok: true, value: [{ spent: 80n }] });
  await first.close();
  const ledger = await start();
  expect(await ledger.spend([key])).toMatchObject({ ok: true, value: [{ spent: 80n }] });
  const reservation = (amount: bigint) =>
    ledger.reserve({ scopes: [key], amount, minAmount: amount, model: 'small', identifier: 'small-1' });
  expect(await reservation(21n)).toMatchObject({ ok: false, failure: { reason: 'exceeded', spent: 80n } });
  expect(await reservation(20n)).toMatchObject({ ok: true });
  const aside = await server.query<{ id: string }>(
    connection,
    'select id from gateway_operator.entry_rejected order by id',
  );
  expect(aside.map(({ id }) => id)).toEqual([booked.id, unbooked.id].sort());
  expect(log.lines.filter(({ level }) => level === 'error')).not.toEqual([]);
  await ledger.close();

  // The question is not repeated.
  expect(folder.records.filter((record) => record.type === 'settle')).toEqual([]);
});

const toRecords = (entry: LedgerRow): ReadonlyArray<JournalRecord> => {
  const { id, cost: amount, scopeWindows, model, identifier } = entry;
  return [
    { type: 'reserve', id, amount, scopeWindows, model, identifier },
    { type: 'settle', row: entry },
  ];
};
