import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { idAt, ledgerRowOf, NOON, scopeWindow } from '#core/ports/test/ledger-row.fixture.ts';
import { describeLedgerRows } from '#core/ports/test/ledger-rows.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';
import { countEdges, lockForRecount, writeRecounts } from '../recount.ts';

let server: SharedPostgres;
const databases: Database[] = [];

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(databases.map((database) => database.close()));
});

describeLedgerRows('PostgreSQL', async () => {
  const database = createDatabase(await server.migratedDatabase(), { log: createMemoryLog() });
  databases.push(database);
  const book = (uid: string, rows: ReadonlyArray<LedgerRow>) => bookLedgerRows(database, uid, rows);
  return { ledgerRows: database, book, registry: database };
});

test('what is booked between the count of the edges and the lock is in the recount too', async () => {
  const connection = await server.migratedDatabase();
  const database = createDatabase(connection, { log: createMemoryLog() });
  databases.push(database);
  const book = (...costs: ReadonlyArray<bigint>) =>
    bookLedgerRows(
      database,
      'instance-1',
      costs.map((cost) => ledgerRowOf({ id: idAt(NOON - 30_000), cost, scopeWindows: [scopeWindow(1)] })),
    );
  const counter = scopeWindow(1, { start: NOON - 60_000, end: NOON + 60_000 });
  await book(1n, 20n);
  await database.session.transaction(4000, async (query) => {
    const edges = await countEdges(query, [counter]);
    await book(300n);
    await lockForRecount(query, 'instance-1');
    await writeRecounts(query, [counter], edges);
  });
  expect(await database.sums([counter])).toEqual([{ ...counter, spent: 321n }]);
});
