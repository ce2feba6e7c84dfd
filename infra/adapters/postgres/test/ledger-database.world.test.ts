import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import { describeLedgerDatabase } from '#core/ports/test/ledger-database.promises.ts';
import { accountScenario, figuresOf } from '#core/ports/test/ledger-database.scenario.promises.ts';
import { DAY, idAt, ledgerRowOf, NOON, scopeWindow } from '#core/ports/test/ledger-row.fixture.ts';
import { createMemoryLog, type MemoryLog } from '../../../../test/doubles/log.ts';
import { ONE_STORE } from '../../../../test/support/one-store.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';
import { createLedgerDatabase } from '../ledger-database.ts';
import { createPartitions } from '../partitions.ts';
import { createSession, type Query } from '../session.ts';

const INSTANCE = 'instance-1';
const random = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));
let server: SharedPostgres;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(open.map((each) => each.close()));
});

function databaseAt(connection: SharedPostgres['connection'], log = createMemoryLog()): Database {
  const database = createDatabase(connection, { log });
  open.push(database);
  return database;
}

const underOf = (database: Database) => ({
  database: database.ledgerDatabase(INSTANCE, random),
  epochs: database.epochs(INSTANCE, ONE_STORE),
  registry: database,
});

describeLedgerDatabase('PostgreSQL', async () => underOf(databaseAt(await server.migratedDatabase())));

describe('several connections', () => {
  let connection: SharedPostgres['connection'];
  let log: MemoryLog;
  let database: Database;
  let epochs: Epochs;
  beforeEach(async () => {
    connection = await server.migratedDatabase();
    log = createMemoryLog();
    database = databaseAt(connection, log);
    epochs = database.epochs(INSTANCE, ONE_STORE);
    await epochs.raise(0, 0);
  });
  const scenario = accountScenario(() => underOf(database));
  const { batch, book, close, spent, spentOfOne, rowOf } = scenario;
  /** The same from another process. */
  const elsewhere = () => {
    const under = underOf(databaseAt(connection));
    return accountScenario(() => under);
  };
  const waiting = async () => (await server.query(connection, WAITING)).length;

  /** Runs `work` while a transaction of another client is open. */
  const during = async (begin: (query: Query) => Promise<unknown>, work: () => Promise<unknown>) => {
    const session = createSession(connection, { log });
    open.push(session);
    await session.run(30_000, async (query) => {
      await query('begin');
      await begin(query);
      await work();
      await query('rollback');
    });
  };

  test('two closers at the same time charge an account once', async () => {
    const other = elsewhere();
    for (let round = 0; round < 20; round += 1) {
      const [account, of] = [crypto.randomUUID(), scopeWindow(round)];
      const [one, two] = await Promise.all([
        close(account, [figuresOf(of, 5n, 40n)]),
        other.close(account, [figuresOf(of, 5n, 40n)]),
      ]);
      // One of the two has charged it.
      expect([one, two].map((closed) => ({ ...closed, ledgerRows: [] }))).toEqual([
        { ...two, ledgerRows: [] },
        { ...one, ledgerRows: [] },
      ]);
      expect([one, two].filter((closed) => 'ledgerRows' in closed && closed.ledgerRows.length > 0)).toHaveLength(1);
      expect(await spent(of)).toEqual([45n]);
    }
  });

  test('a raise of the epoch waits for the booking under way; one that waits meanwhile is refused', async () => {
    const entry = ledgerRowOf({ id: idAt(Date.now()), cost: 5n });
    const [one, two] = [crypto.randomUUID(), crypto.randomUUID()];
    const other = elsewhere();
    await Promise.all([book(one, 1), other.book(two, 1), epochs.state()]);
    const steps: string[] = [];
    const all: Promise<unknown>[] = [];
    const insert = (query: Query) => query(INSERT_COPY, [entry.id]);
    await during(insert, async () => {
      all.push(batch(one, 2, [entry]).then(({ outcome }) => steps.push(`under way: ${outcome}`)));
      await expect.poll(waiting, { interval: 5 }).toBe(1);
      all.push(epochs.raise(1, 1).then(() => steps.push('raised')));
      await expect.poll(waiting, { interval: 5 }).toBe(2);
      all.push(other.book(two, 2, 300n).then((outcome) => steps.push(`later: ${outcome}`)));
      await expect.poll(waiting, { interval: 5 }).toBe(3);
      expect(steps).toEqual([]);
    });
    await Promise.all(all);
    expect(steps.toSorted()).toEqual(['later: epoch', 'raised', 'under way: booked']);
    expect(await spentOfOne()).toBe(5n);
    expect(await epochs.state()).toMatchObject({ epoch: 2, storeCalls: 0 });
  });

  test('an epoch opens after the bookings by ids that are under way, so that sums which are read then have them', async () => {
    const entry = ledgerRowOf({ id: idAt(Date.now()), cost: 5n });
    const steps: string[] = [];
    const all: Promise<unknown>[] = [];
    await epochs.state();
    await during(
      (query) => query(INSERT_COPY, [entry.id]),
      async () => {
        all.push(batch('', 0, [entry], { account: undefined }).then(({ outcome }) => steps.push(outcome)));
        await expect.poll(waiting, { interval: 5 }).toBe(1);
        all.push(epochs.open(1).then(() => steps.push('open')));
        await expect.poll(waiting, { interval: 5 }).toBe(2);
        expect(steps).toEqual([]);
      },
    );
    await Promise.all(all);
    expect([steps.toSorted(), await spentOfOne()]).toEqual([['booked', 'open'], 5n]);
  });

  test('a stop and a closing before the epoch is open do not deadlock', async () => {
    const other = elsewhere();
    await book(crypto.randomUUID(), 1, 1n);
    const all: Promise<unknown>[] = [];
    await during(
      (query) => query('select 1 from gateway_operator.hour_sum for update'),
      async () => {
        all.push(batch(crypto.randomUUID(), 1, [ledgerRowOf({ cost: 20n })], { closesAccount: true, storeCalls: 7 }));
        await expect.poll(waiting, { interval: 5 }).toBe(1);
        all.push(other.close(crypto.randomUUID(), [figuresOf(scopeWindow(1), 300n)], { storeCalls: 8 }));
        await expect.poll(waiting, { interval: 5 }).toBe(2);
      },
    );
    expect(await Promise.all(all)).toMatchObject([{ outcome: 'booked' }, { outcome: 'closed' }]);
    expect(await spentOfOne()).toBe(321n);
    expect(await epochs.state()).toMatchObject({ storeCalls: 8 });
  });

  test('an epoch opens after the closings that are under way', async () => {
    const steps: string[] = [];
    const all: Promise<unknown>[] = [];
    await book(crypto.randomUUID(), 1, 1n);
    await epochs.state();
    await during(
      (query) => query('select 1 from gateway_operator.sum for update'),
      async () => {
        const closing = close(crypto.randomUUID(), [figuresOf(scopeWindow(1), 5n)], { isRebuild: true });
        all.push(closing.then(({ outcome }) => steps.push(outcome)));
        await expect.poll(waiting, { interval: 5 }).toBe(1);
        all.push(epochs.open(1).then(() => steps.push('open')));
        await expect.poll(waiting, { interval: 5 }).toBe(2);
        expect(steps).toEqual([]);
      },
    );
    await Promise.all(all);
    expect([steps.toSorted(), await spentOfOne()]).toEqual([['closed', 'open'], 6n]);
  });

  test('a process that is suspended in a booking loses it after 2 s: its account can be closed', async () => {
    const account = crypto.randomUUID();
    const session = createSession(connection, { log });
    open.push(session);
    const begun = Promise.withResolvers<void>();
    const never = () => {
      begun.resolve();
      return new Promise<void>(() => undefined);
    };
    const partitions = { ...createPartitions(session), ensureFor: never };
    const asleep = createLedgerDatabase({ session, partitions, log, random }, INSTANCE);
    const rows = [ledgerRowOf({ cost: 40n })];
    const batchOfSleeper = {
      epoch: 1,
      account: { id: account, batch: 1, callNumber: 1 },
      storeCalls: 0,
      rows,
    };
    const outcome = asleep.bookBatch(batchOfSleeper).then(
      () => 'booked',
      (error: unknown) => error,
    );
    await begun.promise;
    expect(await close(account, [figuresOf(scopeWindow(1), 5n, 40n)])).toMatchObject({ row: { bookedBatch: 0 } });
    expect(await outcome).toBeInstanceOf(DatabaseUnreachable);
    expect(await spentOfOne()).toBe(45n);
  });

  test('large batches and closings over the same scopes in opposite orders do not deadlock', async () => {
    const scopes = Array.from({ length: 40 }, (_, number) => scopeWindow(number));
    const large = (turn: number) =>
      Array.from({ length: 6000 }, (_, place) => {
        const from = (place * (turn + 1) + turn * 13) % scopes.length;
        const scopeWindows = [scopes[from], scopes[(from + 20) % scopes.length]].flatMap((of) => of ?? []);
        return ledgerRowOf({ id: idAt(NOON + ((place * 7919) % 6000)), cost: 1n, scopeWindows });
      });
    const other = elsewhere();
    const closing = () =>
      other.close(
        crypto.randomUUID(),
        scopes.toReversed().map((of) => figuresOf(of, 1000n)),
      );
    await Promise.all([
      ...[0, 1, 2].map((turn) => (turn % 2 ? other : scenario).batch(crypto.randomUUID(), 1, large(turn))),
      ...[closing(), closing()],
    ]);
    const total = (await spent(...scopes)).reduce((sum, amount) => sum + amount, 0n);
    expect(total).toBe(3n * 6000n * 2n + 2n * 40n * 1000n);
  });

  test('the same ledger rows in batches of several accounts, in opposite orders, count once and do not deadlock', async () => {
    const other = elsewhere();
    await Promise.all([book(crypto.randomUUID(), 1), other.book(crypto.randomUUID(), 1)]);
    for (let round = 1n; round <= 4n; round += 1n) {
      const rows = Array.from({ length: 4000 }, () => ledgerRowOf({ cost: 1n }));
      const outcomes = await Promise.all([
        batch(crypto.randomUUID(), 1, rows),
        other.batch(crypto.randomUUID(), 1, rows.toReversed()),
      ]);
      expect(outcomes.map(({ outcome }) => outcome)).toEqual(['booked', 'booked']);
      expect(await spentOfOne()).toBe(round * 4000n);
    }
  });

  test.each([
    ['an id of another program', 'not an id'],
    ['an id that would break out of its column', '{a,b"},\\'],
    ['an id without a time', 'eb2e0c56-3f3c-4c1e-9a55-0d8e5f0b7a11'],
  ])('%s is rejected and told as an error, the rest of the batch is booked', async (_, id) => {
    const rest = Array.from({ length: 9 }, () => ledgerRowOf());
    const rows = [...rest.slice(0, 4), ledgerRowOf({ id, model: 'a\u0000b\ud800' }), ...rest.slice(4)];
    expect(await batch(crypto.randomUUID(), 1, rows)).toEqual({ outcome: 'booked', rejected: [id] });
    expect(await spentOfOne()).toBe(1000n);
    expect(log.lines.map(({ fields }) => fields?.id)).toEqual([id]);
  });

  test('sums by window, hour and second are equal, with closings too', async () => {
    const ids = Array.from({ length: 30 }, (_, place) => idAt(Date.UTC(2026, 10, 15, place % 5, 59, 59, 999)));
    await batch(
      crypto.randomUUID(),
      1,
      ids.map((id, place) => ledgerRowOf({ id, cost: BigInt(place) })),
    );
    await close(crypto.randomUUID(), [figuresOf(scopeWindow(1), 0n, -35n)], { at: Date.UTC(2026, 10, 15, 4) });
    const [totals] = await server.query(connection, TOTALS);
    expect(totals).toEqual({ sums: '400', hours: '400', rows: '5', without: '0' });
  });

  test('closed accounts are forgotten with the ledger rows of their day, live ones never', async () => {
    const [old, recent, live] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
    for (const account of [old, recent]) await close(account, [figuresOf(scopeWindow(1), 5n)]);
    await batch(live, 1, [ledgerRowOf({ id: idAt(Date.now() - 200 * DAY) })]);
    await server.query(
      connection,
      `update gateway_operator.account set closed_at = now() - interval '200 days' where account = $1`,
      [old],
    );
    expect(await database.dropDays(365, Date.now())).toEqual([]);
    expect(await rowOf(old)).toBeDefined();
    expect(await database.dropDays(60, Date.now())).not.toEqual([]);
    expect([await rowOf(old), await rowOf(recent), await rowOf(live)]).toMatchObject([
      undefined,
      { isClosed: true },
      { isClosed: false },
    ]);
    const charged = await server.query(connection, 'select account::text from gateway_operator.expired_row');
    expect(charged).toEqual([{ account: recent }]);
  });

  test('accounts of a dropped day are forgotten after it, in portions; one that is locked is left to the next time', async () => {
    const [old, locked] = [crypto.randomUUID(), crypto.randomUUID()];
    for (const account of [old, locked]) await close(account, [figuresOf(scopeWindow(1), 5n)]);
    await batch(crypto.randomUUID(), 1, [ledgerRowOf({ id: idAt(Date.now() - 200 * DAY) })]);
    await server.query(
      connection,
      `update gateway_operator.account set closed_at = now() - interval '200 days'
      where closed_at is not null`,
    );
    await server.query(connection, MANY_EXPIRED_ROWS, [old]);
    const expiredRows = () => server.query(connection, 'select from gateway_operator.expired_row');
    expect(await expiredRows()).toHaveLength(5002);
    await during(
      (query) => query('select 1 from gateway_operator.account where account = $1 for update', [locked]),
      async () => {
        expect(await database.dropDays(60, Date.now())).not.toEqual([]);
        expect([await rowOf(old), await rowOf(locked)]).toMatchObject([undefined, { isClosed: true }]);
      },
    );
    expect(await database.dropDays(60, Date.now())).toEqual([]);
    expect([await rowOf(locked), await expiredRows()]).toEqual([undefined, []]);
  });

  test('a request that is its own account leaves no row', async () => {
    const id = idAt(NOON);
    await batch(id, 1, [ledgerRowOf({ id })], { closesAccount: true });
    expect(await server.query(connection, 'select account from gateway_operator.account')).toEqual([]);
    expect(await rowOf(id)).toEqual({
      bookedBatch: 0,
      callNumber: 0,
      isClosed: true,
      isCharged: false,
      isClosing: false,
    });
  });
});

const WAITING = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/** Another client inserts the same ledger row: a booking of it waits for the end of that transaction. */
const INSERT_COPY = `insert into gateway_operator.ledger_row
  select $1::uuid, $1::uuid, 1, 0, 0, 0, 0, now(), 'settled'`;

const MANY_EXPIRED_ROWS = `insert into gateway_operator.expired_row
  select 'instance-1', $1::uuid, gen_random_uuid(), n, n + 1, gen_random_uuid() from generate_series(1, 5000) as n`;

const TOTALS = `
select (select sum(amount) from gateway_operator.sum) as sums, (select sum(amount) from gateway_operator.hour_sum) as hours,
  (select count(*) from gateway_operator.hour_sum) as rows, (select count(*) from gateway_operator.ledger_row r where not exists (
    select from gateway_operator.ledger_set s where s.id = r.set_id)) as without`;
