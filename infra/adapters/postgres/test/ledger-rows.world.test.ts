import { afterAll, beforeAll } from 'vitest';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { describeLedgerRows } from '#core/ports/test/ledger-rows.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';

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
