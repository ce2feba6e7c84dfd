import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeEpochs } from '#core/ports/test/epochs.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { ONE_STORE } from '../../../../test/support/one-store.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';

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

describeEpochs('PostgreSQL', async () => {
  const uid = instance();
  return (user) => database.epochs(uid, user);
});

test('a process that has not shown itself for five seconds is not awaited', async () => {
  const uid = instance();
  const epochs = database.epochs(uid, ONE_STORE);
  await epochs.raise(0, 0);
  await epochs.heartbeat('one', 0);
  expect(await epochs.state()).toMatchObject({ notJoined: 1 });
  await server.query(
    connection,
    `update gateway_operator.gateway_process set seen_at = clock_timestamp() - interval '6 seconds' where instance_uid = $1`,
    [uid],
  );
  expect(await epochs.state()).toMatchObject({ notJoined: 0 });
});

test('a process of a deleted instance raises no epoch: the counters that were cleared do not come back', async () => {
  const uid = instance();
  await database.openInstance({ uid, namespace: 'default', name: 'main' });
  const epochs = database.epochs(uid, ONE_STORE);
  await epochs.raise(0, 0);
  await database.closeInstance(uid);
  await expect(epochs.raise(1, 0)).rejects.toThrow('is deleted');
  expect(await epochs.state()).toMatchObject({ epoch: 1 });
});
