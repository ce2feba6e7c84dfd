import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryOf, idAt } from '#core/ports/books.promises.ts';
import { startPostgres, type TestPostgres } from '../../../test/postgres.ts';
import { createMemoryLog } from '../memory/log.ts';
import { createDatabase } from './database.ts';

let server: TestPostgres;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server?.stop());

const DAY = 86_400_000;

test('months that nobody wants to keep are dropped whole; sums stay, and what is booked now is booked as ever', async () => {
  const connection = await server.createDatabase();
  const database = createDatabase(connection, { log: createMemoryLog() });
  await database.migrate();
  const now = Date.now();
  const [old, recent] = [entryOf({ id: idAt(now - 200 * DAY), cost: 30n }), entryOf({ id: idAt(now), cost: 4n })];
  await database.book('instance-1', [old, recent]);
  const spent = async () => (await database.sums(old.charges)).map((sum) => sum.spent);
  expect(await database.dropMonths(12)).toEqual([]);
  expect(await spent()).toEqual([34n]);

  const dropped = await database.dropMonths(2);
  // The month of the entry, and the one that was made after it.
  expect(dropped).toHaveLength(2);
  expect(dropped[0]).toBe(new Date(now - 200 * DAY).toISOString().slice(0, 7).replace('-', '_'));
  expect(await database.dropMonths(2)).toEqual([]);
  expect((await database.bookedOf([old.id, recent.id])).size).toBe(1);
  expect(await spent()).toEqual([34n]);
  const [hours] = await server.query(connection, 'select sum(amount)::text as amount from gateway_operator.hour_sum');
  expect(hours).toEqual({ amount: '34' });

  await database.book('instance-1', [
    entryOf({ id: idAt(now), cost: 1n }),
    entryOf({ id: idAt(now - 200 * DAY), cost: 2n }),
  ]);
  expect(await spent()).toEqual([37n]);
  await database.close();
});
