// May a rolling update mix two versions? Yesterday's statements and today's book into one schema, at the same time.
import * as fc from 'fast-check';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { Entry } from '#core/ports/books.ts';
import { entryOf, idAt, scopeNumber } from '#core/ports/entry.fixture.ts';
import type { Nano, Window } from '#core/ports/money.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../../../test/shared-servers.ts';
import { createDatabase, type Database } from './database.ts';
import { migrate } from './migrate.ts';
import { MIGRATIONS } from './migrations.ts';
import { leastId } from './months.ts';
import { recount } from './recount.ts';
import { createSession, type Session } from './session.ts';
import { bookBefore, recountBefore, VERSION_BEFORE } from './version-before.fixture.ts';

const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 10, 15, 12);
const MONTH: Window = { start: NOON - 10 * 24 * HOUR, end: NOON + 20 * 24 * HOUR };
const HOURS: Window = { start: NOON - 2 * HOUR - 17_000, end: NOON + 3 * HOUR + 11_000 };
const INSTANCE = 'instance-1';
const LIMIT = 60_000;

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;
let session: Session;

beforeAll(async () => {
  server = await sharedPostgres();
});

beforeEach(async () => {
  connection = await server.migratedDatabase();
  database = createDatabase(connection, { log: createMemoryLog() });
  session = createSession(connection, { log: createMemoryLog() });
  // Its month is there, as it is for both.
  await database.book(INSTANCE, [entryOf({ charges: [] })]);
  return async () => {
    await database.close();
    await session.close();
  };
});

const yesterday = {
  book: (entries: ReadonlyArray<Entry>) => session.transaction(LIMIT, (query) => bookBefore(query, INSTANCE, entries)),
  recount: (of: ScopeWindow) => session.transaction(LIMIT, (query) => recountBefore(query, INSTANCE, of)),
};
const today = {
  book: (entries: ReadonlyArray<Entry>) => database.book(INSTANCE, entries),
  recount: (of: ScopeWindow) => session.transaction(LIMIT, (query) => recount(query, INSTANCE, [of])),
};
const spent = async (...of: ReadonlyArray<ScopeWindow>) => (await database.sums(of)).map((sum) => sum.spent);

const paid = (entries: ReadonlyArray<Entry>, scopeId: string, { start, end }: Window): Nano =>
  entries
    .filter(({ id, charges }) => {
      const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
      return start <= time && time < end && charges.some((of) => of.scopeId === scopeId);
    })
    .reduce((sum, { cost }) => sum + cost, 0n);

test('the statements that are kept are those before the last migration of the tables that they write', () => {
  const written = /gateway_operator\.(entry|charge|sum|hour_sum|recount)\b/;
  const last = MIGRATIONS.findLast(({ sql }) => written.test(sql));
  expect(VERSION_BEFORE).toBe((last?.version ?? 0) - 1);
});

test('yesterday books while today migrates under it, and goes on: every entry counts once', async () => {
  const fresh = await server.createDatabase();
  const [older, newer] = [
    createSession(fresh, { log: createMemoryLog() }),
    createDatabase(fresh, { log: createMemoryLog() }),
  ];
  await migrate(
    older,
    MIGRATIONS.filter(({ version }) => version <= VERSION_BEFORE),
  );
  for (const table of ['entry', 'charge'])
    await server.query(
      fresh,
      `create table gateway_operator.${table}_2026_11 partition of gateway_operator.${table}
       for values from ('${leastId(Date.UTC(2026, 10, 1))}') to ('${leastId(Date.UTC(2026, 11, 1))}')`,
    );
  const entries = Array.from({ length: 400 }, (_, place) => entryOf({ cost: BigInt(place) }));
  let booked = 0;
  const old = async () => {
    for (; booked < entries.length; booked += 5)
      await older.transaction(LIMIT, (query) => bookBefore(query, INSTANCE, entries.slice(booked, booked + 5)));
  };
  const writing = old();
  while (booked < 50) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(await newer.migrate()).toEqual({ from: VERSION_BEFORE, to: MIGRATIONS.at(-1)?.version });
  await newer.book(INSTANCE, entries.slice(0, 300));
  await writing;
  const charges = entries[0]?.charges ?? [];
  expect((await newer.sums(charges)).map((sum) => sum.spent)).toEqual([(399n * 400n) / 2n]);
  await newer.close();
  await older.close();
});

test('both book the same scopes at the same time, part of it twice, while both recount: nothing is lost, nothing counts twice', async () => {
  const scopes = Array.from({ length: 5 }, (_, number) => scopeNumber(number));
  const entries = Array.from({ length: 600 }, (_, place) =>
    entryOf({
      id: idAt(NOON - 4 * HOUR + place * 50_021),
      cost: BigInt(place + 1),
      charges: scopes
        .filter((_, number) => number === 0 || (place + number) % 3 > 0)
        .map((scopeId) => ({ scopeId, window: place % 7 === 0 ? HOURS : MONTH })),
    }),
  );
  const [edited = ''] = scopes;
  const batches = Array.from({ length: 30 }, (_, turn) => entries.slice(turn * 20, turn * 20 + 30));
  const writer = async (first: typeof today | typeof yesterday, second: typeof first, from: number) => {
    for (let at = from; at < batches.length; at += 3) {
      await first.book(batches[at] ?? []);
      await second.book(batches[at]?.slice(0, 15) ?? []);
    }
  };
  const editor = async () => {
    for (let turn = 0; turn < 6; turn += 1)
      await (turn % 2 ? today : yesterday).recount({ scopeId: edited, window: turn % 3 ? HOURS : MONTH });
  };
  await Promise.all([
    writer(today, yesterday, 0),
    writer(yesterday, today, 1),
    writer(yesterday, yesterday, 2),
    editor(),
  ]);

  // Of the others each entry counts in the window it names.
  for (const scopeId of scopes.slice(1)) {
    const [month, hours] = [MONTH, HOURS].map((window) => {
      const naming = entries.filter(({ charges }) => charges[0]?.window === window);
      return paid(naming, scopeId, { start: 0, end: Number.MAX_SAFE_INTEGER });
    });
    expect(await spent({ scopeId, window: MONTH }, { scopeId, window: HOURS })).toEqual([month, hours]);
  }
  // Whoever recounts finds the same, from what both wrote.
  for (const version of [today, yesterday, today]) {
    for (const window of [HOURS, MONTH, { start: NOON - HOUR - 1000, end: NOON + 1000 }]) {
      await version.recount({ scopeId: edited, window });
      expect(await spent({ scopeId: edited, window })).toEqual([paid(entries, edited, window)]);
    }
  }
  const [kept] = await server.query(
    connection,
    `select (select count(*) from gateway_operator.entry) as entries,
      (select sum(cost) from gateway_operator.charge) = (select sum(amount) from gateway_operator.hour_sum) as same`,
  );
  expect(kept).toEqual({ entries: '601', same: true });
});

test('whoever recounted, entries that the other version books later count in the window that is in force', async () => {
  const scopeId = scopeNumber(1);
  const amounts = fc.array(fc.tuple(fc.integer({ min: -5, max: 5 }), fc.boolean(), fc.boolean()), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(amounts, fc.boolean(), async (drawn, first) => {
      await server.query(
        connection,
        'truncate gateway_operator.entry, gateway_operator.charge, gateway_operator.sum, gateway_operator.hour_sum',
      );
      await (first ? today : yesterday).recount({ scopeId, window: HOURS });
      const entries = drawn.map(([hours, isOld]) =>
        entryOf({ id: idAt(NOON + hours * HOUR + 500), charges: [{ scopeId, window: isOld ? MONTH : HOURS }] }),
      );
      for (const [place, entry] of entries.entries()) await (drawn[place]?.[2] ? today : yesterday).book([entry]);
      const inForce = entries.filter(
        (entry) => entry.charges[0]?.window === HOURS || paid([entry], scopeId, HOURS) > 0n,
      );
      expect(await spent({ scopeId, window: HOURS })).toEqual([BigInt(inForce.length) * 100n]);
    }),
    { numRuns: 25 },
  );
});
