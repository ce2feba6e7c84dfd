import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Window } from '#core/ports/money.ts';
import { idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createMemoryLog, type MemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { recount } from '../../../../test/support/recount.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';
import { createSession } from '../session.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const INSTANCE = 'instance-1';

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;
let log: MemoryLog;

beforeAll(async () => {
  server = await sharedPostgres();
});

beforeEach(async () => {
  connection = await server.migratedDatabase();
  log = createMemoryLog();
  database = createDatabase(connection, { log });
  await database.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
  return () => database.close();
});

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10).replaceAll('-', '_');
const rejected = () =>
  server.query<{ id: string; reason: string }>(connection, 'select id, reason from gateway_operator.entry_rejected');

const hoursAndOpening = async () => {
  const [row] = await server.query(
    connection,
    `select (select sum(amount)::text from gateway_operator.hour_sum) as hours,
      (select sum(amount)::text from gateway_operator.opening_balance) as opening`,
  );
  return row;
};

/** A team whose policy has these budgets: its own, and of models. */
async function claimed(duration?: string, ...ofModels: ReadonlyArray<string>) {
  const key = scopeWrite('research');
  const { scopeId } = key.policy;
  const budgetOf = (text: string) => ({ limit: '100', duration: text, alignment: 'Rolling' as const });
  const furtherBudgets = ofModels.map((text) => ({ scopeId, model: 'small', limit: '100', duration: text }));
  const budget = duration === undefined ? {} : { budget: budgetOf(duration) };
  const policy = { ...key.policy, furtherBudgets, ...budget };
  const write = (window?: Window) =>
    database.putScope({ ...key, policy, ...(window === undefined ? {} : { recounts: [{ scopeId, window }] }) });
  await write();
  return { scopeId, recount: write };
}

test('days that nobody wants to keep are dropped whole; sums of windows in force stay, and what is booked now is booked as ever', async () => {
  const now = Date.now();
  const [old, recent] = [
    ledgerRowOf({ id: idAt(now - 200 * DAY), cost: 30n }),
    ledgerRowOf({ id: idAt(now), cost: 4n }),
  ];
  await bookLedgerRows(database, INSTANCE, [old, recent]);
  const spent = async () => (await database.sums(old.scopeWindows)).map((sum) => sum.spent);
  expect(await database.dropDays(365, Date.now())).toEqual([]);
  expect(await spent()).toEqual([34n]);

  const dropped = await database.dropDays(60, Date.now());
  expect(dropped).toEqual([dayOf(now - 200 * DAY)]);
  expect(await database.dropDays(60, Date.now())).toEqual([]);
  expect((await database.bookedOf([old.id, recent.id])).size).toBe(1);
  expect(await spent()).toEqual([34n]);
  expect(await hoursAndOpening()).toEqual({ hours: '4', opening: '30' });
  expect(await bookLedgerRows(database, INSTANCE, [ledgerRowOf({ id: idAt(now), cost: 1n })])).toEqual({
    rejected: [],
  });
  expect(await spent()).toEqual([35n]);
});

test('what a journal brings that is older than what is kept is booked neither twice nor lost: a person decides', async () => {
  const now = Date.now();
  const [booked, lost] = [200, 201].map((days) => ledgerRowOf({ id: idAt(now - days * DAY), cost: 30n }));
  if (booked === undefined || lost === undefined) throw new Error('nothing to book');
  await bookLedgerRows(database, INSTANCE, [booked]);
  // One process knows the days, the other has just started.
  const other = createDatabase(connection, { log });
  await database.dropDays(60, Date.now());
  const recent = [ledgerRowOf({ id: idAt(now), cost: 1n }), ledgerRowOf({ id: idAt(now), cost: 2n })];
  expect(await bookLedgerRows(database, INSTANCE, [booked, ...recent.slice(0, 1), lost])).toEqual({
    rejected: [lost.id, booked.id],
  });
  expect(await bookLedgerRows(other, INSTANCE, [...recent.slice(1), lost])).toEqual({ rejected: [lost.id] });
  await other.close();
  // Until then the two rejected rows count as spent, also the one that was booked before.
  expect((await database.sums(booked.scopeWindows)).map(({ spent }) => spent)).toEqual([93n]);
  const aside = await rejected();
  expect(aside.map(({ id }) => id).sort()).toEqual([booked.id, lost.id].sort());
  expect(aside[0]?.reason).toMatch(/RETAIN_DAYS/);
  expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(3);
  const tables = await server.query(
    connection,
    `select 1 from pg_class where relname like '%${dayOf(now - 200 * DAY)}'`,
  );
  expect(tables).toEqual([]);
});

test.each([
  ['its own budget', ['300d'] as const],
  ['a budget for a model', ['30d', '300d'] as const],
])(
  'a day that a window of at most the kept days may reach is not dropped, also in long months: %s',
  async (_, durations) => {
    const { scopeId, recount } = await claimed(...durations);
    const now = Math.floor(Date.now() / 1000) * 1000;
    const window = { start: now - 305 * DAY, end: now + 5 * DAY };
    const scopeWindows = [{ scopeId, window: { start: now - 400 * DAY, end: now + DAY } }];
    const times = [now - 400 * DAY, window.start - 1, window.start, now];
    await bookLedgerRows(
      database,
      INSTANCE,
      times.map((time, place) => ledgerRowOf({ id: idAt(time), cost: 10n ** BigInt(place), scopeWindows })),
    );
    const dropped = await database.dropDays(300, Date.now());
    expect(dropped).toEqual([dayOf(now - 400 * DAY)]);
    await recount(window);
    expect((await database.sums([{ scopeId, window }])).map(({ spent }) => spent)).toEqual([1100n]);
  },
);

test.each([
  ['a budget that never resets', ['36525d'] as const],
  ['a budget for a model', ['30d', '300d'] as const],
])(
  'a window longer than the kept days keeps no day, and a recount since the scope began is exact: %s',
  async (_, durations) => {
    const { scopeId, recount } = await claimed(...durations);
    const now = Math.floor(Date.now() / 1000) * 1000;
    const window = { start: now - 400 * DAY, end: now + 36_125 * DAY };
    const times = [window.start, now - 200 * DAY, now - 59 * DAY, now];
    await bookLedgerRows(
      database,
      INSTANCE,
      times.map((time, place) =>
        ledgerRowOf({ id: idAt(time), cost: 10n ** BigInt(place), scopeWindows: [{ scopeId, window }] }),
      ),
    );
    expect(await database.dropDays(60, Date.now())).toEqual([dayOf(window.start), dayOf(now - 200 * DAY)]);
    const edited = { start: window.start - 1, end: window.end };
    await recount(edited);
    expect((await database.sums([{ scopeId, window: edited }])).map(({ spent }) => spent)).toEqual([1111n]);
  },
);

test('a budget that is lengthened into a dropped day counts all that was spent before the kept days: never less than was spent', async () => {
  const { scopeId, recount } = await claimed('30d');
  const now = Math.floor(Date.now() / 1000) * 1000;
  const hour = Math.floor((now - 290 * DAY) / HOUR) * HOUR;
  const window = { start: hour + HOUR / 2, end: now + 10 * DAY };
  const scopeWindows = [{ scopeId, window: { start: now - 400 * DAY, end: now + DAY } }];
  const times = [hour - 1, hour, window.start - 1, window.start, hour + HOUR, now];
  await bookLedgerRows(
    database,
    INSTANCE,
    times.map((time, place) => ledgerRowOf({ id: idAt(time), cost: 10n ** BigInt(place), scopeWindows })),
  );
  const spent = async () => (await database.sums([{ scopeId, window }])).map((sum) => sum.spent);
  await recount(window);
  expect(await spent()).toEqual([111_000n]);
  expect(await database.dropDays(60, Date.now())).toContain(dayOf(hour));
  await recount(window);
  expect(await spent()).toEqual([111_111n]);
  expect(await hoursAndOpening()).toEqual({ hours: '100000', opening: '11111' });
  // What is booked after the recount counts in the new window too.
  await bookLedgerRows(database, INSTANCE, [ledgerRowOf({ id: idAt(now), cost: 5n, scopeWindows })]);
  expect(await spent()).toEqual([111_116n]);
  await recount(window);
  expect(await spent()).toEqual([111_116n]);
});

test('a long report delays the drop of a day, but neither bookings nor the days that are dropped later', async () => {
  const now = Date.now();
  const old = ledgerRowOf({ id: idAt(now - 200 * DAY), cost: 30n });
  await bookLedgerRows(database, INSTANCE, [old, ledgerRowOf({ id: idAt(now), cost: 1n })]);
  const session = createSession(connection, { log });
  await session.run(30_000, async (query) => {
    await query('begin');
    await query('select count(*) from gateway_operator.ledger_row');
    const dropping = database.dropDays(60, Date.now());
    const booked = await bookLedgerRows(database, INSTANCE, [ledgerRowOf({ id: idAt(now), cost: 2n })]);
    expect(booked).toEqual({ rejected: [] });
    expect(await dropping).toEqual([]);
    // Nothing of the day was recorded as dropped: what is booked now is booked exactly once.
    expect(await bookLedgerRows(database, INSTANCE, [old])).toEqual({ rejected: [] });
    await query('rollback');
  });
  await session.close();
  expect((await database.sums(old.scopeWindows)).map(({ spent }) => spent)).toEqual([33n]);
  expect(await database.dropDays(60, Date.now())).toContain(dayOf(now - 200 * DAY));
});

test('a journal older than the kept days is for a person to decide, also if no day was ever dropped', async () => {
  const late = ledgerRowOf({ id: idAt(Date.now() - 200 * DAY), cost: 30n });
  expect(await database.dropDays(60, Date.now())).toEqual([]);
  expect(await bookLedgerRows(database, INSTANCE, [late])).toEqual({ rejected: [late.id] });
  expect((await rejected())[0]?.reason).toMatch(/RETAIN_DAYS/);
});

test('a recount locks the partitions of its edges only, however many days there are', async () => {
  const { scopeId } = await claimed('300d');
  const now = Math.floor(Date.now() / 1000) * 1000;
  const days = Array.from({ length: 100 }, (_, place) => ledgerRowOf({ id: idAt(now - 3 * place * DAY), cost: 1n }));
  await bookLedgerRows(database, INSTANCE, days);
  const session = createSession(connection, { log });
  const locked = await session.transaction(30_000, async (query) => {
    await recount(query, INSTANCE, [{ scopeId, window: { start: now - 290 * DAY + 1000, end: now + 10 * DAY } }]);
    return query<{ relname: string }>(
      `select distinct c.relname from pg_locks l join pg_class c on c.oid = l.relation where l.pid = pg_backend_pid() and c.relname ~ '^ledger_(row|set)_20.*[0-9]$'`,
    );
  });
  await session.close();
  expect(locked.length).toBeLessThanOrEqual(4);
});

test.each([
  ['few', 7, 18],
  ['many', 5, 20],
])(
  'a recount finds the ledger rows of edges with %s rows, of a scope with few and of one with very many',
  async (_, begin, end) => {
    const { scopeId, recount: recountTeam } = await claimed('30d');
    const day = Math.floor(Date.now() / DAY) * DAY - 10 * DAY;
    const ended = { start: day - 5 * DAY, end: day + DAY };
    const [team, few] = [scopeId, scopeNumber(7)].map((each) => ({ scopeId: each, window: ended }));
    if (team === undefined || few === undefined) throw new Error('nothing to book');
    // 8,000 rows in the hours 5 and 20, 360 in each other; every hundredth is charged to the other scope too.
    const times = Array.from({ length: 24 }, (_, hour) => {
      const step = hour === 5 || hour === 20 ? 450 : 10_000;
      return Array.from({ length: HOUR / step }, (_, place) => day + hour * HOUR + place * step);
    }).flat();
    const rows = times.map((time, place) =>
      ledgerRowOf({
        id: idAt(time),
        cost: BigInt(1 + (place % 97)),
        scopeWindows: place % 100 === 0 ? [team, few] : [team],
      }),
    );
    await bookLedgerRows(database, INSTANCE, rows);
    const window = { start: day + begin * HOUR + 1_234_000, end: day + end * HOUR + 2_345_000 };
    const costOf = (step: number) =>
      rows
        .filter(
          (_, place) => place % step === 0 && Number(times[place]) >= window.start && Number(times[place]) < window.end,
        )
        .reduce((sum, { cost }) => sum + cost, 0n);
    await recountTeam(window);
    const session = createSession(connection, { log });
    await session.transaction(30_000, (query) => recount(query, INSTANCE, [{ scopeId: few.scopeId, window }]));
    await session.close();
    const spent = await database.sums([team, few].map((each) => ({ scopeId: each.scopeId, window })));
    expect(spent.map((sum) => sum.spent)).toEqual([costOf(1), costOf(100)]);
  },
);

test('of the sums, those of ended windows leave with the rows of their time, and those of windows in force stay', async () => {
  const now = Math.floor(Date.now() / 1000) * 1000;
  const { scopeId } = await claimed('30d');
  const windows = [
    { start: now - 230 * DAY, end: now - 200 * DAY },
    // It ends in the kept days, so rows of its time may still be booked.
    { start: now - 80 * DAY, end: now - 50 * DAY },
    { start: now - 20 * DAY, end: now + 10 * DAY },
    // The window of a scope without a budget.
    { start: now - 230 * DAY, end: now + 36_500 * DAY },
  ];
  const rows = windows.map((window, place) => {
    const time = Math.min(now, window.start + 5 * DAY);
    return ledgerRowOf({ id: idAt(time), cost: 10n ** BigInt(place), scopeWindows: [{ scopeId, window }] });
  });
  await bookLedgerRows(database, INSTANCE, rows);
  expect(await database.dropDays(60, Date.now())).not.toEqual([]);
  const sums = await database.sums(windows.map((window) => ({ scopeId, window })));
  expect(sums.map(({ spent }) => spent)).toEqual([0n, 10n, 100n, 1000n]);
  const left = await server.query(connection, 'select window_end::float8 as end from gateway_operator.sum order by 1');
  expect(left.map(({ end }) => end)).toEqual(windows.slice(1).map(({ end }) => end));
});

test('if all ledger rows are kept for ever, their hours stay, and sums of windows that ended 400 days ago leave', async () => {
  const now = Math.floor(Date.now() / 1000) * 1000;
  const { scopeId, recount } = await claimed('30d');
  const windows = [
    { start: now - 440 * DAY, end: now - 410 * DAY },
    { start: now - 420 * DAY, end: now - 390 * DAY },
    { start: now - 440 * DAY, end: now + 36_500 * DAY },
  ];
  const rows = windows.map((window, place) =>
    ledgerRowOf({
      id: idAt(window.start + 5 * DAY),
      cost: 10n ** BigInt(place),
      scopeWindows: [{ scopeId, window }],
    }),
  );
  await bookLedgerRows(database, INSTANCE, rows);
  const spent = async (all: ReadonlyArray<Window>) =>
    (await database.sums(all.map((window) => ({ scopeId, window })))).map((sum) => sum.spent);
  const done = async () => {
    const [row] = await server.query<{ days: number }>(
      connection,
      `select (now() at time zone 'UTC')::date - cleaned_from as days from gateway_operator.retention`,
    );
    return row?.days;
  };
  // The caller's clock counts if it is behind.
  expect(await database.dropDays('forever', now - 30 * DAY)).toEqual([]);
  expect([await spent(windows), await done()]).toEqual([[1n, 10n, 100n], 430]);
  expect(await database.dropDays('forever', now)).toEqual([]);
  expect([await spent(windows), await done()]).toEqual([[0n, 10n, 100n], 400]);
  expect((await database.bookedOf(rows.map(({ id }) => id))).size).toBe(3);
  expect(await hoursAndOpening()).toEqual({ hours: '111', opening: null });
  // A late row of the ended window is booked, and a recount of any window is exact.
  const window = { start: now - 440 * DAY, end: now + 10 * DAY };
  const late = ledgerRowOf({
    id: idAt(now - 430 * DAY),
    cost: 7n,
    scopeWindows: [{ scopeId, window: windows[0] ?? window }],
  });
  expect(await bookLedgerRows(database, INSTANCE, [late])).toEqual({ rejected: [] });
  await recount(window);
  expect(await spent([window])).toEqual([118n]);
  // From now on old days are dropped: their sums leave as ever.
  expect(await database.dropDays(60, now)).toHaveLength(3);
  expect(await spent(windows)).toEqual([0n, 0n, 100n]);
  expect(await hoursAndOpening()).toEqual({ hours: null, opening: '118' });
});

test('sums leave in portions, once for each day, and a row that is locked is left to the next day', async () => {
  const now = Date.now();
  const ended = { start: now - 230 * DAY, end: now - 199 * DAY };
  const scopes = Array.from({ length: 1100 }, (_, number) => ({ scopeId: scopeNumber(number), window: ended }));
  await bookLedgerRows(
    database,
    INSTANCE,
    scopes.map((charged) => ledgerRowOf({ id: idAt(now - 200 * DAY), cost: 7n, scopeWindows: [charged] })),
  );
  const counts = async () => {
    const [row] = await server.query(
      connection,
      `select (select count(*)::int from gateway_operator.sum) as sums, (select count(*)::int from gateway_operator.hour_sum) as hours,
        (select count(*)::int from gateway_operator.opening_balance) as openings, (select sum(amount)::text from gateway_operator.opening_balance) as opening`,
    );
    return row;
  };
  const session = createSession(connection, { log });
  await session.run(30_000, async (query) => {
    await query('begin');
    for (const table of ['sum', 'hour_sum'])
      await query(`select 1 from gateway_operator.${table} where scope_id = $1 for update`, [scopeNumber(600)]);
    await database.dropDays(61, Date.now());
    await query('rollback');
  });
  await session.close();
  expect(await counts()).toEqual({ sums: 1, hours: 1, openings: 1099, opening: '7693' });
  await database.dropDays(61, Date.now());
  expect(await counts()).toEqual({ sums: 1, hours: 1, openings: 1099, opening: '7693' });
  await database.dropDays(60, Date.now());
  expect(await counts()).toEqual({ sums: 0, hours: 0, openings: 1100, opening: '7700' });
});

test('more rows of a scope than one transaction deletes leave in several, and none is lost', async () => {
  const firstHour = Math.floor((Date.now() - 400 * DAY) / HOUR);
  await bookLedgerRows(database, INSTANCE, [ledgerRowOf({ id: idAt(Date.now() - 400 * DAY), cost: 1n })]);
  await server.query(
    connection,
    `insert into gateway_operator.hour_sum (scope_id, hour, amount)
    select ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1::int + h, 1
    from generate_series(1, 8) n, generate_series(1, 5500) h`,
    [firstHour],
  );
  await database.dropDays(60, Date.now());
  const [row] = await server.query(
    connection,
    `select (select count(*)::int from gateway_operator.hour_sum) as hours, (select sum(amount)::text from gateway_operator.opening_balance) as opening,
      (select cleaned_from = kept_from from gateway_operator.retention) as "isDone"`,
  );
  expect(row).toEqual({ hours: 0, opening: '44001', isDone: true });
});

test('when the time is over, the rest of the sums is left to the next call, which continues', async () => {
  await bookLedgerRows(database, INSTANCE, [ledgerRowOf({ id: idAt(Date.now() - 400 * DAY), cost: 1n })]);
  await server.query(
    connection,
    `insert into gateway_operator.hour_sum (scope_id, hour, amount)
    select ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1::int + 1, 1 from generate_series(1, 1200) n`,
    [Math.floor((Date.now() - 400 * DAY) / HOUR)],
  );
  const left = async () => {
    const [row] = await server.query<{ hours: number; opening: string; isDone: boolean }>(
      connection,
      `select (select count(*)::int from gateway_operator.hour_sum) as hours, (select sum(amount)::text from gateway_operator.opening_balance) as opening,
        (select cleaned_from is not distinct from kept_from from gateway_operator.retention) as "isDone"`,
    );
    return row;
  };
  let asked = 0;
  // Once for the day, and once for the accounts of its time.
  await database.dropDays(60, Date.now(), { isOver: () => ++asked > 2 });
  const first = await left();
  expect(first).toMatchObject({ isDone: false });
  expect(first?.hours).toBeGreaterThan(0);
  await database.dropDays(60, Date.now(), { isOver: () => false });
  expect(await left()).toEqual({ hours: 0, opening: '1201', isDone: true });
});

describe('while a clock is ahead', () => {
  const aheadOf = async <T>(interval: string, work: (ahead: Database) => Promise<T>): Promise<T> => {
    await server.query(
      connection,
      `create schema ahead; create function ahead.now() returns timestamptz language sql stable
      as $$ select pg_catalog.now() + interval '${interval}' $$`,
    );
    await server.query(connection, `alter database "${connection.dbname}" set search_path = ahead, pg_catalog`);
    const ahead = createDatabase(connection, { log });
    try {
      return await work(ahead);
    } finally {
      await ahead.close();
      await server.query(connection, `alter database "${connection.dbname}" reset search_path`);
    }
  };
  const window = { start: Date.now() - 10 * DAY, end: Date.now() + 20 * DAY };
  const scopeWindows = [{ scopeId: scopeNumber(1), window }];
  const book = (time: number) =>
    bookLedgerRows(database, INSTANCE, [ledgerRowOf({ id: idAt(time), cost: 5n, scopeWindows })]);
  const spent = async () => (await database.sums(scopeWindows)).map((sum) => sum.spent);

  test("no day and no sum is deleted: the database's clock", async () => {
    await book(Date.now());
    expect(await aheadOf('2 years', (ahead) => ahead.dropDays(400, Date.now()))).toEqual([]);
    expect(await spent()).toEqual([5n]);
    expect(await book(Date.now())).toEqual({ rejected: [] });
  });

  test("no day and no sum is deleted: the reconciler's clock", async () => {
    await book(Date.now());
    expect(await database.dropDays(400, Date.now() + 800 * DAY)).toEqual([]);
    expect(await spent()).toEqual([5n]);
  });

  test('if both were, what is booked afterwards is booked as ever', async () => {
    await book(Date.now());
    expect(await aheadOf('2 years', (ahead) => ahead.dropDays(400, Date.now() + 730 * DAY))).not.toEqual([]);
    await database.close();
    database = createDatabase(connection, { log });
    expect(await book(Date.now())).toEqual({ rejected: [] });
    expect(await spent()).toEqual([5n]);
  });
});

test('a trigger that makes a row for each deleted one does not keep the drop of days busy when its time is over', async () => {
  await server.query(
    connection,
    `insert into gateway_operator.retention (kept_from) values ('2000-01-01');
    insert into gateway_operator.account values ('i', '00000000-0000-4000-8000-000000000001', 1, 1, '1999-01-01', 'done');
    insert into gateway_operator.expired_row
      select 'i', '00000000-0000-4000-8000-000000000001', gen_random_uuid(), 0, 1, gen_random_uuid() from generate_series(1, 2000);
    create function again() returns trigger language plpgsql as $$ begin
      insert into gateway_operator.expired_row values (old.instance_uid, old.account, gen_random_uuid(), 0, 1, gen_random_uuid());
      return old; end $$;
    create trigger again after delete on gateway_operator.expired_row for each row execute function again()`,
  );
  let asked = 0;
  const isOver = () => {
    asked += 1;
    return asked > 3;
  };
  expect(await database.dropDays(400, Date.now(), { isOver })).toEqual([]);
  expect(asked).toBeGreaterThan(3);
});
