import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { createMemoryLog, type MemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';
import { lowestId } from '../partitions.ts';

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;
let log: MemoryLog;
const open: Database[] = [];
const WINDOW = { start: Date.UTC(2026, 10, 1), end: Date.UTC(2026, 11, 1) };

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(open.map((each) => each.close()));
});

beforeEach(async () => {
  connection = await server.migratedDatabase();
  log = createMemoryLog();
  database = createDatabase(connection, { log });
  open.push(database);
});

const partitions = async (table: 'ledger_row' | 'second_sum') => {
  const rows = await server.query<{ name: string }>(
    connection,
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = $1::regclass order by 1`,
    [`gateway_operator.${table}`],
  );
  return rows.map(({ name }) => name);
};
const partitionOf = async (id: string) => {
  const [row] = await server.query<{ name: string }>(
    connection,
    'select tableoid::regclass::text as name from gateway_operator.ledger_row where id = $1',
    [id],
  );
  return row?.name;
};
const count = async (table: string) => {
  const [row] = await server.query<{ count: string }>(connection, `select count(*) from gateway_operator.${table}`);
  return Number(row?.count);
};

test('a ledger row keeps all that was said about it, to the nano-dollar and the millisecond', async () => {
  const entry = ledgerRowOf({
    cost: 2n ** 63n - 1n,
    tokens: { input: 10_000_000_000, output: 2, cachedInput: 3, cacheWrite: 4 },
    model: 'größe/"small", {a},\\b',
    identifier: "o'hara",
    estimated: true,
    settledAt: Date.UTC(2026, 10, 15, 12, 0, 1, 234),
  });
  await bookLedgerRows(database, 'instance-1', [entry]);
  const [charged] = entry.scopeWindows;
  expect(
    await server.query(connection, 'select *, settled_at::text, scope_ids::text from gateway_operator.ledger_row'),
  ).toEqual([
    {
      id: entry.id,
      kind: 'settled',
      instance_uid: 'instance-1',
      cost: '9223372036854775807',
      input_tokens: '10000000000',
      output_tokens: '2',
      cached_input_tokens: '3',
      cache_write_tokens: '4',
      model: 'größe/"small", {a},\\b',
      identifier: "o'hara",
      estimated: true,
      settled_at: expect.stringContaining(':01.234'),
      scope_ids: `{${charged?.scopeId}}`,
      window_starts: [String(charged?.window.start)],
      window_ends: [String(charged?.window.end)],
    },
  ]);
});

test('what a scope paid in one second is one row a batch, and the second is that of the reservation', async () => {
  const second = Date.UTC(2026, 10, 15, 12, 0, 1);
  const [two, three] = [scopeNumber(2), scopeNumber(3)].map((scopeId) => ({ scopeId, window: WINDOW }));
  const [first, ...others] = [0, 999, 1000].map((later) => ledgerRowOf({ id: idAt(second + later), cost: 5n }));
  if (first === undefined || two === undefined || three === undefined) throw new Error('nothing to book');
  const nobody = ledgerRowOf({ id: idAt(second), scopeWindows: [] });
  await bookLedgerRows(database, 'instance-1', [
    { ...first, scopeWindows: [two, three] },
    nobody,
    ...others.map((entry) => ({ ...entry, scopeWindows: [three] })),
  ]);
  await bookLedgerRows(database, 'instance-1', [
    { ...ledgerRowOf({ id: idAt(second + 1), cost: 7n }), scopeWindows: [three] },
  ]);
  const sums = await server.query(
    connection,
    'select scope_id, from_id, amount from gateway_operator.second_sum order by scope_id, from_id, amount',
  );
  const [at, next] = [lowestId(second), lowestId(second + 1000)];
  expect(sums).toEqual([
    { scope_id: two.scopeId, from_id: at, amount: '5' },
    { scope_id: three.scopeId, from_id: at, amount: '7' },
    { scope_id: three.scopeId, from_id: at, amount: '10' },
    { scope_id: three.scopeId, from_id: next, amount: '5' },
  ]);
  const named = await server.query(connection, 'select scope_ids::text from gateway_operator.ledger_row order by id');
  expect(named.map(({ scope_ids }) => scope_ids)).toEqual([
    `{${two.scopeId},${three.scopeId}}`,
    ...['{}', `{${three.scopeId}}`, `{${three.scopeId}}`, `{${three.scopeId}}`],
  ]);
});

test('partitions for today and the next seven days are made when the schema is, before anything needs them', async () => {
  const now = Date.now();
  const names = Array.from({ length: 8 }, (_, ahead) =>
    new Date(now + ahead * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '_'),
  );
  expect(await partitions('ledger_row')).toEqual(names.map((name) => `ledger_row_${name}`));
  expect(await partitions('second_sum')).toEqual(names.map((name) => `second_sum_${name}`));
});

test('a ledger row lies in the day of its id, not of its settling: a day begins with its first millisecond, UTC', async () => {
  const [last, first] = [Date.UTC(2031, 1, 1) - 1, Date.UTC(2031, 1, 1)].map((time) =>
    ledgerRowOf({ id: idAt(time), settledAt: first_of_march }),
  );
  await bookLedgerRows(
    database,
    'instance-1',
    [last, first].flatMap((entry) => entry ?? []),
  );
  expect(await partitionOf(last?.id ?? '')).toBe('gateway_operator.ledger_row_2031_01_31');
  expect(await partitionOf(first?.id ?? '')).toBe('gateway_operator.ledger_row_2031_02_01');
  expect(lowestId(Date.UTC(2031, 1, 1)) <= (first?.id ?? '')).toBe(true);
  expect(lowestId(Date.UTC(2031, 1, 1)) > (last?.id ?? '')).toBe(true);
});
const first_of_march = Date.UTC(2031, 2, 1);

test('many processes that need the same new day at the same time make it once', async () => {
  const databases = Array.from({ length: 6 }, () => createDatabase(connection, { log }));
  open.push(...databases);
  const rows = databases.map(() => ledgerRowOf({ id: idAt(Date.UTC(2040, 5, 5)) }));
  await Promise.all(databases.map((each, place) => bookLedgerRows(each, 'instance-1', rows.slice(place, place + 1))));
  expect((await partitions('ledger_row')).filter((name) => name.includes('2040'))).toEqual(['ledger_row_2040_06_05']);

  expect(await count('ledger_row')).toBe(6);
});

test('a day that was dropped behind our back is made again: no entry is rejected for it', async () => {
  await bookLedgerRows(database, 'instance-1', [ledgerRowOf({ id: idAt(Date.UTC(2040, 5, 5)) })]);
  await server.query(
    connection,
    'drop table gateway_operator.ledger_row_2040_06_05; drop table gateway_operator.second_sum_2040_06_05',
  );
  expect(await bookLedgerRows(database, 'instance-1', [ledgerRowOf({ id: idAt(Date.UTC(2040, 5, 5, 1)) })])).toEqual({
    rejected: [],
  });
  expect(await count('entry_rejected')).toBe(0);
});

test.each([
  ['an id of another program', 'not an id'],
  ['an id that would break out of its column', '{a,b"},\\'],
  ['an empty id', ''],
  ['an id that says null', 'null'],
  ['an id without a time', 'eb2e0c56-3f3c-4c1e-9a55-0d8e5f0b7a11'],
])('%s is rejected, the rest of the batch is booked', async (_, id) => {
  const rest = Array.from({ length: 9 }, () => ledgerRowOf());
  expect(
    await bookLedgerRows(database, 'instance-1', [...rest.slice(0, 4), ledgerRowOf({ id }), ...rest.slice(4)]),
  ).toEqual({
    rejected: [id],
  });
  expect((await database.sums(rest[0]?.scopeWindows ?? [])).map(({ spent }) => spent)).toEqual([1000n]);
  expect(await count('ledger_row')).toBe(9);
  const [seconds] = await server.query(
    connection,
    'select sum(amount)::text as amount from gateway_operator.second_sum',
  );
  expect(seconds).toEqual({ amount: '900' });
});

test('a refused entry is kept whole with the reason, once, and told as an error', async () => {
  const refused = ledgerRowOf({ model: 'a\u0000b\ud800', cost: 10n ** 17n + 1n });
  await bookLedgerRows(database, 'instance-1', [ledgerRowOf(), refused]);
  await bookLedgerRows(database, 'instance-1', [refused]);
  const rows = await server.query<{ ledger_row: unknown; reason: string; instance_uid: string }>(
    connection,
    'select id, kind, instance_uid, ledger_row::text as ledger_row, reason from gateway_operator.entry_rejected',
  );
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({ id: refused.id, kind: 'settled', instance_uid: 'instance-1' });
  expect(rows[0]?.reason).toMatch(/^22021/);
  expect(JSON.parse(String(rows[0]?.ledger_row))).toMatchObject({
    model: 'a\u0000b\ud800',
    cost: '100000000000000001',
  });
  expect(log.lines.filter(({ level }) => level === 'error')[0]).toMatchObject({
    message: expect.stringContaining('entry_rejected'),
    fields: { id: refused.id, kind: 'settled', reason: rows[0]?.reason },
  });
});

test('many bad ledger rows in one batch are all rejected, and all good ones booked', async () => {
  const rows = Array.from({ length: 64 }, (_, place) => ledgerRowOf(place % 7 === 3 ? { cost: -1n } : {}));
  const bad = rows.filter(({ cost }) => cost < 0n).map(({ id }) => id);
  expect(await bookLedgerRows(database, 'instance-1', rows)).toEqual({ rejected: bad });
  expect((await database.sums(rows[0]?.scopeWindows ?? [])).map(({ spent }) => spent)).toEqual([
    BigInt(64 - bad.length) * 100n - BigInt(bad.length),
  ]);
});

test('more than one statement should take is booked, summed and looked up in several', async () => {
  const rows = Array.from({ length: 12_001 }, () => ledgerRowOf({ cost: 1n }));
  await bookLedgerRows(database, 'instance-1', rows);
  const asked = rows.flatMap(({ scopeWindows }) => scopeWindows);
  expect(new Set((await database.sums(asked)).map(({ spent }) => spent))).toEqual(new Set([12_001n]));
  expect((await database.bookedOf(rows.map(({ id }) => id))).size).toBe(12_001);
});

test('sums by window, hour and second are always equal', async () => {
  const hours = Array.from({ length: 30 }, (_, place) => idAt(Date.UTC(2026, 10, 15, place % 5, 59, 59, 999)));
  await bookLedgerRows(
    database,
    'instance-1',
    hours.map((id, place) => ledgerRowOf({ id, cost: BigInt(place) })),
  );
  const [totals] = await server.query(
    connection,
    `select (select sum(amount) from gateway_operator.sum) as sums, (select sum(amount) from gateway_operator.hour_sum) as hours,
      (select count(*) from gateway_operator.hour_sum) as rows, (select sum(amount) from gateway_operator.second_sum) as seconds`,
  );
  expect(totals).toEqual({ sums: '435', hours: '435', rows: '5', seconds: '435' });
});
