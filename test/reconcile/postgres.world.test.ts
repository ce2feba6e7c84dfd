// Does reconcile do on a real PostgreSQL what it does in memory?

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { bookLedgerRows } from '../support/book-rows.ts';
import { type SharedPostgres, sharedPostgres } from '../support/shared-servers.ts';
import { createHarness, type Harness } from './harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from './objects.ts';

let server: SharedPostgres;
const open: Database[] = [];
beforeAll(async () => {
  server = await sharedPostgres();
});
afterAll(async () => {
  await Promise.all(open.map((database) => database.close()));
});

const make = async (): Promise<Harness> => {
  const database = createDatabase(await server.createDatabase(), { log: createMemoryLog() });
  open.push(database);
  const harness = createHarness({
    openDatabase: () => ({ ...database, book: (uid, entries) => bookLedgerRows(database, uid, entries) }),
    // A moment ahead of the database's clock, as if the anchors of claims were made before the run that asks for them.
    start: Date.now() + 5000,
  });
  await harness.apply(
    ...makeSecrets(),
    makeInstance(),
    makeTeam({ members: [{ name: 'alice' }] }),
    makeUser(),
    makeKey(),
  );
  return harness;
};

test('a database that knows nothing of us is migrated, and keys work after one run; then nothing is left to do', async () => {
  const harness = await make();
  expect(await harness.dryRun()).not.toEqual([]);
  expect((await harness.resync()).failed).toEqual({});
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(await harness.works(await harness.value('chat-key'))).toBe(true);
  expect(await harness.works(await harness.value('alice-key'))).toBe(true);
  expect((await harness.resync()).actions).toEqual({});
  harness.restart();
  expect((await harness.resync()).actions).toEqual({});
  expect(await harness.dryRun()).toEqual([]);
});

test('spend, another window, a lost Secret, a lost row and an edited one end as in memory', async () => {
  const harness = await make();
  await harness.resync();
  await harness.spend('chat', '1.25');
  expect((await harness.resync()).actions).toEqual({ WriteStatus: 1 });
  await harness.edit(virtualKeys, 'chat', { spec: { budgetDuration: '7d', maxBudget: '1.25' } });
  await harness.resync();
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '1.25', isActive: false });
  await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '2' } });

  const first = await harness.value('chat-key');
  await harness.remove(RESOURCES.secrets, 'chat-key');
  await harness.resync();
  const second = await harness.value('chat-key');
  expect([await harness.works(first), await harness.works(second)]).toEqual([false, true]);
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '1.25', isActive: true });

  await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
  await harness.resync();
  expect(await harness.value('chat-key')).toBe(second);

  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const claim = (await harness.database().claims(uid)).find(({ alias }) => alias === 'chat');
  await harness.database().retire([claim?.scopeId ?? '']);
  await harness.resync();
  expect(await harness.value('chat-key')).toBe(second);
  expect(await harness.works(second)).toBe(true);
  expect((await harness.resync()).actions).toEqual({});
});

test('a retained key is adopted with its spend; a deleted instance leaves no claim and no value', async () => {
  const harness = await make();
  await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
  await harness.resync();
  const value = await harness.value('chat-key');
  await harness.spend('chat', '3');
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  expect(await harness.works(value)).toBe(true);
  await harness.apply(makeKey());
  await harness.resync();
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
    keyValue: value,
    currentSpend: '3',
    isActive: true,
  });
  await harness.edit(users, 'alice', { spec: { keyAlias: 'renamed' } });
  expect((await harness.resync()).failed).toEqual({});
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  await harness.remove(gatewayInstances, 'main');
  expect((await harness.resync()).failed).toEqual({});
  expect(await harness.database().claims(uid)).toEqual([]);
  expect(await harness.works(value)).toBe(false);
});

test('a rotation ends with both values at work and one that is current, and its ledger is gone on with, as in memory', async () => {
  const harness = await make();
  await harness.resync();
  const first = await harness.value('chat-key');
  await harness.spend('chat', '1.25');
  const rotate = 'auth.gateway-operator.dev/rotate';
  await harness.edit(virtualKeys, 'chat', { metadata: { annotations: { [rotate]: 'now' } } });
  expect((await harness.resync()).actions).toMatchObject({ PutSecret: 1, EndValues: 1 });
  const second = await harness.value('chat-key');
  expect(second).not.toBe(first);
  expect([await harness.works(first), await harness.works(second)]).toEqual([true, true]);
  harness.restart();
  expect((await harness.resync()).actions).toEqual({});

  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  await harness.remove(gatewayInstances, 'main');
  await harness.resync();
  expect(await harness.works(second)).toBe(false);
  const instance = makeInstance();
  const annotations = { 'instance.gateway-operator.dev/adopt-ledger': uid };
  await harness.apply({ ...instance, metadata: { ...instance.metadata, annotations } });
  expect((await harness.resync()).failed).toEqual({});
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
    keyValue: second,
    currentSpend: '1.25',
    isActive: true,
  });
  expect([await harness.works(first), await harness.works(second)]).toEqual([true, true]);
  expect((await harness.resync()).actions).toEqual({});
});
