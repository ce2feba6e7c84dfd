import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeRegistry } from '#core/ports/test/registry.promises.ts';
import { namespaceWrite, scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';

let server: SharedPostgres;
const databases: Database[] = [];

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(databases.map((database) => database.close()));
});

describeRegistry('PostgreSQL', async () => {
  const database = createDatabase(await server.migratedDatabase(), { log: createMemoryLog() });
  databases.push(database);
  return { registry: database, policies: database.policies };
});

test('an adoption that ended in the middle is continued by the next call, and the instance is not open before', async () => {
  const connection = await server.migratedDatabase();
  const database = createDatabase(connection, { log: createMemoryLog() });
  databases.push(database);
  const [old, heir] = ['instance-1', 'heir'].map((uid) => ({ uid, namespace: 'apps', name: 'gateway' }));
  if (old === undefined || heir === undefined) return;
  await database.openInstance(old);
  for (const write of [scopeWrite('billing'), namespaceWrite('apps')]) await database.putScope(write);
  const before = (await database.claims(old.uid)).map(({ scopeId }) => scopeId);
  await database.closeInstance(old.uid);
  // The first transaction of the adoption was the last one.
  await database.openInstance(heir);
  await server.query(connection, `update gateway_operator.instance set adopted_from = $1 where uid = $2`, [
    old.uid,
    heir.uid,
  ]);
  await server.query(connection, `update gateway_operator.instance set adopted_by = $1 where uid = $2`, [
    heir.uid,
    old.uid,
  ]);
  const { isOpen, predecessor } = await database.instance(heir.uid);
  expect([isOpen, predecessor]).toEqual([false, undefined]);
  const ledger = { uid: old.uid, isMissing: false };
  expect(await database.openInstance(heir, ledger)).toEqual({ ok: true });
  expect(await database.instance(heir.uid)).toMatchObject({ isOpen: true, predecessor: { uid: old.uid } });
  expect((await database.claims(heir.uid)).map(({ scopeId }) => scopeId).toSorted()).toEqual(before.toSorted());
});
