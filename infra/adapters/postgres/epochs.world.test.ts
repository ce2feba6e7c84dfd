import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryOf } from '#core/ports/entry.fixture.ts';
import { describeEpochs } from '#core/ports/epochs.promises.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../../../test/shared-servers.ts';
import { createDatabase, type Database } from './database.ts';
import { createSession } from './session.ts';

const log = createMemoryLog();
let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;
let made = 0;

beforeAll(async () => {
  server = await sharedPostgres();
  connection = await server.migratedDatabase();
  database = createDatabase(connection, { log });
});
afterAll(async () => {
  await database?.close();
});

const instance = (): string => `instance-${made++}`;
/** How many bookings and recounts stand in line. */
const IN_LINE = `select 1 from pg_locks where locktype = 'advisory' and not granted
  and database = (select oid from pg_database where datname = current_database())`;
const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));

describeEpochs('PostgreSQL', async () => database.epochs(instance()));

test('a process that has not shown itself for five seconds is not awaited', async () => {
  const uid = instance();
  const epochs = database.epochs(uid);
  await epochs.raise(0, 0);
  await epochs.beat('one', 0);
  expect(await epochs.state()).toMatchObject({ awaited: 1 });
  await server.query(
    connection,
    `update gateway_operator.gateway_process set seen_at = clock_timestamp() - interval '6 seconds' where instance_uid = $1`,
    [uid],
  );
  expect(await epochs.state()).toMatchObject({ awaited: 0 });
});

test('a booking says how many calls its process had made, under the epoch that it has joined', async () => {
  const uid = instance();
  const epochs = database.epochs(uid);
  await epochs.raise(0, 0);
  await epochs.beat('one', 1);
  await epochs.beat('two', 1);
  const calls = (one: number, two: number) =>
    new Map([
      ['one', one],
      ['two', two],
      ['unknown', 9],
    ] as const);
  await database.book(uid, [entryOf()], { epoch: 1, calls: calls(5, 2) });
  await database.book(uid, [entryOf()], { epoch: 1, calls: calls(3, 4) });
  await database.book(uid, [entryOf()], { epoch: 2, calls: calls(70, 70) });
  expect((await epochs.state()).marks).toEqual(
    new Map([
      ['one', 5],
      ['two', 4],
    ]),
  );
  await epochs.raise(1, 1);
  await epochs.beat('one', 2);
  expect((await epochs.state()).marks).toEqual(new Map());
});

test('while somebody reads exclusively nothing is booked; what he reads and what follows fit together', async () => {
  const uid = instance();
  const [first, second] = [entryOf({ cost: 3n }), entryOf({ cost: 4n })];
  await database.book(uid, [first]);
  // Connections that are open already: who holds the lock has no time to dial.
  const [other, onlooker] = [createDatabase(connection, { log }), createSession(connection, { log })];
  await other.book(uid, [entryOf()]);
  const waiting = async () => (await onlooker.run(1000, (query) => query(IN_LINE))).length;
  expect(await waiting()).toBe(0);
  const steps: string[] = [];
  let booking: Promise<unknown> = Promise.resolve();
  await database.withLedgerLock(uid, async ({ bookedOf }) => {
    booking = other.book(uid, [second]).then(() => steps.push('booked'));
    await expect.poll(waiting, { interval: 5 }).toBe(1);
    steps.push('read');
    expect(await bookedOf([first.id, second.id])).toEqual(new Map([[first.id, [{ kind: 'settled', cost: 3n }]]]));
  });
  // The lock is free before the booking's own connection has told us so.
  await booking;
  await database.withLedgerLock(uid, async ({ bookedOf }) => {
    expect((await bookedOf([first.id, second.id])).size).toBe(2);
  });
  expect(steps).toEqual(['read', 'booked']);
  await Promise.all([other.close(), onlooker.close()]);
});

test('who holds the lock and falls silent loses it, and others go on', async () => {
  const uid = instance();
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const silent = database
    .withLedgerLock(uid, () => {
      begin();
      return pause(2500);
    })
    .then(
      () => 'held on',
      () => 'lost it',
    );
  await begun;
  await database.book(uid, [entryOf()]);
  expect(await silent).toBe('lost it');
});

test('an errand is done by one at a time; what fails in it beside PostgreSQL keeps its words', async () => {
  const uid = instance();
  const done = await database.tryErrandLock(uid, 'drain', async () => [
    await database.tryErrandLock(uid, 'drain', async () => 'twice'),
    await database.tryErrandLock(uid, 'audit', async () => 'another'),
    await database.tryErrandLock(instance(), 'drain', async () => 'elsewhere'),
  ]);
  expect(done).toEqual([undefined, 'another', 'elsewhere']);
  await expect(database.withLedgerLock(uid, () => Promise.reject(new Error('the store is away')))).rejects.toThrow(
    'the store is away',
  );
});
