// The spend of a key in a real PostgreSQL: the sum of its ledger rows to the last nano-dollar.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import { formatMoney, parseMoney } from '#core/money/money.ts';
import { costOf, toPrice } from '#core/money/price.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { MAGNITUDES, randomRequests } from '#core/test/random-requests.fixture.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { ONE_STORE } from '../support/one-store.ts';
import { type SharedPostgres, sharedPostgres } from '../support/shared-servers.ts';

let server: SharedPostgres;
let database: Database;

beforeAll(async () => {
  server = await sharedPostgres();
  database = createDatabase(await server.migratedDatabase(), { log: createMemoryLog() });
  await database.openInstance({ uid: 'exact', namespace: 'default', name: 'exact' });
});

afterAll(async () => {
  await database.close();
});

test('a hundred thousand random requests on top of every size that breaks doubles add up exactly', async () => {
  const [window] = ledgerRowOf().scopeWindows.map((charge) => charge.window);
  if (window === undefined) throw new Error('no window');
  const scopes = MAGNITUDES.map((_, number) => ({ scopeId: scopeNumber(number + 1), window }));
  const begin = MAGNITUDES.map((cost, number) => ledgerRowOf({ cost, scopeWindows: scopes.slice(number, number + 1) }));
  const ledgerDatabase = database.ledgerDatabase('exact', (count) => randomBytes(count));
  await database.epochs('exact', ONE_STORE).raise(0, 0);
  const book = (rows: ReadonlyArray<LedgerRow>) => ledgerDatabase.bookBatch({ epoch: 1, storeCalls: 0, rows });
  await book(begin);

  let expected = 0n;
  let batch: LedgerRow[] = [];
  for (const { usage, written, naive } of randomRequests(100_000)) {
    const price = toPrice(written);
    if (price === undefined) throw new Error('not a price');
    batch.push(ledgerRowOf({ cost: costOf(usage, price), scopeWindows: scopes }));
    expected += naive;
    if (batch.length < 4000) continue;
    expect(await book(batch)).toEqual({ outcome: 'booked', rejected: [] });
    batch = [];
  }
  const spends = await ledgerDatabase.sums(scopes);
  expect(spends.map(({ spent }) => spent)).toEqual(MAGNITUDES.map((cost) => cost + expected));
  // The value that `status.currentSpend` shows.
  expect(spends.map(({ spent }) => parseMoney(formatMoney(spent)))).toEqual(MAGNITUDES.map((cost) => cost + expected));
});
