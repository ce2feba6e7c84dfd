import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
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

const partitions = async (table: 'ledger_row' | 'ledger_set') => {
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
    await server.query(
      connection,
      `select r.*, s.*, r.id, settled_at::text, scope_ids::text
      from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id`,
    ),
  ).toEqual([
    {
      id: entry.id,
      set_id: expect.any(String),
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

const SETS = `select (select count(*)::int from gateway_operator.ledger_set) as sets,
  array(select s.scope_ids::text || s.model || s.estimated from gateway_operator.ledger_row r
    left join gateway_operator.ledger_set s on s.id = r.set_id order by r.id) as named`;
const setsOf = async () => (await server.query<{ sets: number; named: string[] }>(connection, SETS))[0];

test('ledger rows of a day with the same scopes, windows and model share a set', async () => {
  const noon = Date.UTC(2026, 10, 15, 12);
  const [two, three] = [scopeNumber(2), scopeNumber(3)].map((scopeId) => ({ scopeId, window: WINDOW }));
  if (two === undefined || three === undefined) throw new Error('nothing to book');
  const longer = { ...three, window: { ...WINDOW, end: WINDOW.end + 1 } };
  const ofEach = [
    { scopeWindows: [two, three] },
    { scopeWindows: [two, three] },
    { scopeWindows: [three, two] },
    { scopeWindows: [two, longer] },
    { scopeWindows: [] },
    { scopeWindows: [two, three], model: 'large' },
    { scopeWindows: [two, three], estimated: true },
  ];
  const book = (time: number) =>
    bookLedgerRows(
      database,
      'instance-1',
      ofEach.map((part, place) => ledgerRowOf({ id: idAt(time + place), ...part })),
    );
  await book(noon);
  const { model } = ledgerRowOf();
  const [both, reversed] = [`{${two.scopeId},${three.scopeId}}`, `{${three.scopeId},${two.scopeId}}`];
  const named = [
    ...[both, both, reversed, both, '{}'].map((scopes) => `${scopes}${model}false`),
    `${both}largefalse`,
    `${both}${model}true`,
  ];
  expect(await setsOf()).toEqual({ sets: 6, named });
  await book(noon + 1000);
  expect(await setsOf()).toEqual({ sets: 6, named: [...named, ...named] });
  await book(noon + 86_400_000);
  expect(await setsOf()).toEqual({ sets: 12, named: [...named, ...named, ...named] });
});

test('processes that book the same new sets in any order at the same time wait for each other at most, and each set is there once', async () => {
  const databases = Array.from({ length: 4 }, () => createDatabase(connection, { log }));
  open.push(...databases);
  const noon = Date.UTC(2026, 10, 15, 12);
  const scopes = Array.from({ length: 3000 }, (_, number) => ({ scopeId: scopeNumber(number), window: WINDOW }));
  // More than one statement takes, in an order of ids that differs between the processes.
  const rowsOf = (place: number) => {
    const ofProcess = place % 2 === 0 ? scopes : scopes.toReversed();
    return ofProcess.map((charged, later) =>
      ledgerRowOf({ id: idAt(noon + later), cost: 1n, scopeWindows: [charged] }),
    );
  };
  const booked = await Promise.all(databases.map((each, place) => bookLedgerRows(each, 'instance-1', rowsOf(place))));
  expect(booked).toEqual(databases.map(() => ({ rejected: [] })));
  expect(await count('ledger_set')).toBe(3000);
  const without = 'ledger_row r where not exists (select from gateway_operator.ledger_set s where s.id = r.set_id)';
  expect([await count('ledger_row'), await count(without)]).toEqual([12_000, 0]);
  expect(new Set((await database.sums(scopes)).map(({ spent }) => spent))).toEqual(new Set([4n]));
});

test.each([
  ['a set that a database lost in a failover', 'delete from gateway_operator.ledger_set'],
  [
    'a set of a day that a person dropped, and another process made again',
    `drop table gateway_operator.ledger_row_2026_11_15; drop table gateway_operator.ledger_set_2026_11_15;
    create table gateway_operator.ledger_set_2026_11_15 partition of gateway_operator.ledger_set
      for values from ('${lowestId(Date.UTC(2026, 10, 15))}') to ('${lowestId(Date.UTC(2026, 10, 16))}');
    create table gateway_operator.ledger_row_2026_11_15 partition of gateway_operator.ledger_row
      for values from ('${lowestId(Date.UTC(2026, 10, 15))}') to ('${lowestId(Date.UTC(2026, 10, 16))}')`,
  ],
])('%s is written again, although the process knows it', async (_, lose) => {
  const ledger = database.ledgerDatabase('instance-1', (count) => new Uint8Array(count));
  const row = () => ledgerRowOf({ id: idAt(Date.UTC(2026, 10, 15, 12)), cost: 1n });
  const book = (rows: ReadonlyArray<LedgerRow>) => ledger.bookBatch({ epoch: 0, storeCalls: 0, rows });
  expect(await book([row()])).toEqual({ outcome: 'booked', rejected: [] });
  await server.query(connection, lose);
  const later = row();
  expect(await book([later])).toEqual({ outcome: 'booked', rejected: [] });
  const [set] = await server.query(
    connection,
    `select s.scope_ids::text from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id where r.id = $1`,
    [later.id],
  );
  expect(set).toEqual({ scope_ids: `{${later.scopeWindows.map(({ scopeId }) => scopeId).join(',')}}` });
  expect((await database.sums(later.scopeWindows)).map(({ spent }) => spent)).toEqual([2n]);
});

test('a batch that is booked again adds neither a row nor a set', async () => {
  const rows = Array.from({ length: 20 }, () => ledgerRowOf());
  await bookLedgerRows(database, 'instance-1', rows);
  await bookLedgerRows(database, 'instance-1', rows);
  expect([await count('ledger_row'), await count('ledger_set')]).toEqual([20, 1]);
});

test('partitions for today and the next seven days are made when the schema is, before anything needs them', async () => {
  const now = Date.now();
  const names = Array.from({ length: 8 }, (_, ahead) =>
    new Date(now + ahead * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '_'),
  );
  expect(await partitions('ledger_row')).toEqual(names.map((name) => `ledger_row_${name}`));
  expect(await partitions('ledger_set')).toEqual(names.map((name) => `ledger_set_${name}`));
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
    'drop table gateway_operator.ledger_row_2040_06_05; drop table gateway_operator.ledger_set_2040_06_05',
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
  const [hours] = await server.query(connection, 'select sum(amount)::text as amount from gateway_operator.hour_sum');
  expect(hours).toEqual({ amount: '900' });
  expect(await count('ledger_set')).toBe(1);
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

test('sums by window and hour, and the ledger rows of their sets, are always equal', async () => {
  const hours = Array.from({ length: 30 }, (_, place) => idAt(Date.UTC(2026, 10, 15, place % 5, 59, 59, 999)));
  await bookLedgerRows(
    database,
    'instance-1',
    hours.map((id, place) => ledgerRowOf({ id, cost: BigInt(place) })),
  );
  const [totals] = await server.query(
    connection,
    `select (select sum(amount) from gateway_operator.sum) as sums, (select sum(amount) from gateway_operator.hour_sum) as hours,
      (select count(*) from gateway_operator.hour_sum) as rows, (select sum(r.cost) from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id) as costs`,
  );
  expect(totals).toEqual({ sums: '435', hours: '435', rows: '5', costs: '435' });
});
