// Usage by scope, model and day is the sum of the ledger rows, whatever was booked, repeated, closed or summed up.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { ONE_STORE } from '../../../../test/support/one-store.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';

const INSTANCE = 'instance-1';
const DAY = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY) * DAY;
const WINDOW = { start: TODAY - 20 * DAY, end: TODAY + 20 * DAY };

let server: SharedPostgres;
const open: Database[] = [];

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(open.map((each) => each.close()));
});

const database = (connection: SharedPostgres['connection']): Database => {
  const made = createDatabase(connection, { log: createMemoryLog() });
  open.push(made);
  return made;
};

/** Usage that differs from the sum of the ledger rows. */
const DIFFERENCES = `
with booked as (
  select scope_id, (to_timestamp(('x' || left(replace(r.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) at time zone 'UTC')::date as day,
    left(s.model, 256) as model, count(*) filter (where kind = 'settled') as requests, sum(input_tokens) as input, sum(output_tokens) as output,
    sum(cached_input_tokens) as cached, sum(cache_write_tokens) as written, sum(cost) as cost
  from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id, unnest(scope_ids) as scope_id
  group by 1, 2, 3),
used as (
  select scope_id, day, model, sum(requests) as requests, sum(input_tokens) as input, sum(output_tokens) as output,
    sum(cached_input_tokens) as cached, sum(cache_write_tokens) as written, sum(cost) as cost
  from gateway_operator.usage group by 1, 2, 3)
select b.*, u.* from booked b full join used u using (scope_id, day, model)
where (b.requests, b.input, b.output, b.cached, b.written, b.cost) is distinct from (u.requests, u.input, u.output, u.cached, u.written, u.cost)`;

const row = fc
  .record({
    day: fc.integer({ min: -3, max: 0 }),
    kind: fc.constantFrom('settled' as const, 'settled' as const, 'correction' as const),
    scopes: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }),
    model: fc.constantFrom('', 'small', 'a\ud800', 'large, "one"', 'x'.repeat(5000), 'bad\u0000'),
    cost: fc.bigInt({ min: -1n, max: 2n ** 63n - 1n }),
    input: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  })
  .map(
    ({ day, kind, scopes, model, cost, input }): LedgerRow =>
      ledgerRowOf({
        id: idAt(TODAY + day * DAY + (input % DAY)),
        kind,
        model,
        cost,
        scopeWindows: scopes.map((scope) => ({ scopeId: scopeNumber(scope), window: WINDOW })),
        tokens: { input, output: input % 7, cachedInput: input % 5, cacheWrite: input % 3 },
      }),
  );

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ book: fc.array(row, { maxLength: 12 }), isRepeated: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant('close' as const) },
  { weight: 1, arbitrary: fc.constant('sum up' as const) },
);

test('usage is the sum of the ledger rows of each scope, model and day, after any bookings, closings and resyncs of several processes', async () => {
  const connection = await server.migratedDatabase();
  const processes = [database(connection), database(connection)];
  const epochs = processes[0]?.epochs(INSTANCE, ONE_STORE);
  await epochs?.raise(0, 0);
  await epochs?.open(1);
  const act = async (each: Database, made: typeof step extends fc.Arbitrary<infer T> ? T : never) => {
    if (made === 'sum up') return each.sumUpUsage();
    const ledger = each.ledgerDatabase(INSTANCE, (size) => crypto.getRandomValues(new Uint8Array(size)));
    const account = { id: crypto.randomUUID(), batch: 1, callNumber: 1 };
    const rows = made === 'close' ? [] : made.book;
    const batch = { epoch: 1, account, storeCalls: 1, rows };
    expect((await ledger.bookBatch(batch)).outcome).toBe('booked');
    if (made !== 'close' && made.isRepeated) await ledger.bookBatch(batch);
    if (made !== 'close') return;
    const figures = [1, 2].map((scope) => ({
      scopeId: scopeNumber(scope),
      window: WINDOW,
      escrow: 5n,
      risk: 5n,
      unbookedSpend: [],
    }));
    const closing = {
      account: account.id,
      epoch: 1,
      callNumber: 1,
      isLast: true,
      figures,
      at: Date.now(),
      storeCalls: 1,
    };
    expect((await ledger.close(closing)).outcome).toBe('closed');
  };
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, step), { maxLength: 4 }), async (steps) => {
      for (const pair of steps) await Promise.all(pair.map((made, index) => act(processes[index] as Database, made)));
      expect(await server.query(connection, DIFFERENCES)).toEqual([]);
    }),
    { numRuns: 40 },
  );
  await processes[0]?.sumUpUsage();
  expect(await server.query(connection, DIFFERENCES)).toEqual([]);
  const [left] = await server.query(connection, 'select count(*)::int as batches from gateway_operator.usage_added');
  expect(left).toEqual({ batches: 0 });
});

test('usage of more than 1,100 days ago leaves, and that of 1,100 days ago stays', async () => {
  const connection = await server.migratedDatabase();
  await server.query(
    connection,
    `insert into gateway_operator.usage_day select gen_random_uuid(), (now() at time zone 'UTC')::date - n, 'small', 'i', 1, 1, 1, 1, 1, 1
     from generate_series(1098, 1103) as n`,
  );
  await database(connection).sumUpUsage();
  const [days] = await server.query(
    connection,
    `select array_agg((now() at time zone 'UTC')::date - day order by day desc) as days from gateway_operator.usage_day`,
  );
  expect(days).toEqual({ days: [1098, 1099, 1100] });
});

/** Adds batches of this usage, each with so many additions of one scope. */
const addBatches = (connection: SharedPostgres['connection'], batches: number, additions: number) =>
  server.query(
    connection,
    `insert into gateway_operator.usage_added (instance_uid, scope_ids, models, model_indexes, days, requests, input_tokens,
       output_tokens, cached_input_tokens, cache_write_tokens, costs)
     select 'i', array_fill('${scopeNumber(1)}'::uuid, size), array['small'], array_fill(1::smallint, size), array_fill(20000, size),
       array_fill(1, size), array_fill(1::numeric, size), array_fill(1::numeric, size), array_fill(1::numeric, size),
       array_fill(1::numeric, size), array_fill(1::numeric, size)
     from generate_series(1, $1::int), (select array[$2::int] as size) as sizes`,
    [batches, additions],
  );

/** The batches that are not summed up, and all requests. */
const batchesAndRequests = async (connection: SharedPostgres['connection']) => {
  const [row] = await server.query(
    connection,
    `select (select count(*)::int from gateway_operator.usage_added) as batches,
       (select sum(requests)::int from gateway_operator.usage) as requests`,
  );
  return row;
};

test('usage of any number of batches is summed up while there is time, in transactions as large as the largest batch', async () => {
  const connection = await server.migratedDatabase();
  const postgres = database(connection);
  await addBatches(connection, 1, 25_000);
  await addBatches(connection, 3, 8_000);
  await addBatches(connection, 4_500, 1);
  const requests = 25_000 + 3 * 8_000 + 4_500;
  const left: unknown[] = [];
  for (let time = 0; time < 2; time += 1) {
    await postgres.sumUpUsage(() => true);
    left.push(await batchesAndRequests(connection));
  }
  expect(left).toEqual([
    { batches: 4_503, requests },
    { batches: 4_501, requests },
  ]);
  await postgres.sumUpUsage();
  expect(await batchesAndRequests(connection)).toEqual({ batches: 0, requests });
});
