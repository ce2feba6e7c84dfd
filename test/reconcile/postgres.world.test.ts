// Does reconcile do on a real PostgreSQL what it does in memory?
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../shared-servers.ts';
import { type Bed, createBed } from './bed.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from './objects.ts';

let server: SharedPostgres;
const open: Database[] = [];
beforeAll(async () => {
  server = await sharedPostgres();
});
afterAll(async () => {
  await Promise.all(open.map((database) => database.close()));
});

const make = async (): Promise<Bed> => {
  const database = createDatabase(await server.createDatabase(), { log: createMemoryLog() });
  open.push(database);
  const bed = createBed({
    openDatabase: () => database,
    // A moment ahead of the database's clock, as if the anchors of claims were made before the run that asks for them.
    start: Date.now() + 5000,
  });
  await bed.apply(...makeSecrets(), makeInstance(), makeTeam({ members: [{ name: 'alice' }] }), makeUser(), makeKey());
  return bed;
};

test('a database that knows nothing of us is migrated, and keys work after one run; then nothing is left to do', async () => {
  const bed = await make();
  expect(await bed.dryRun()).not.toEqual([]);
  expect((await bed.sweep()).failed).toEqual({});
  expect(await bed.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(await bed.works(await bed.value('chat-key'))).toBe(true);
  expect(await bed.works(await bed.value('alice-key'))).toBe(true);
  expect((await bed.sweep()).actions).toEqual({});
  bed.restart();
  expect((await bed.sweep()).actions).toEqual({});
  expect(await bed.dryRun()).toEqual([]);
});

test('spend, another window, a lost Secret, a lost row and an edited one end as in memory', async () => {
  const bed = await make();
  await bed.sweep();
  await bed.spend('chat', '1.25');
  expect((await bed.sweep()).actions).toEqual({ WriteStatus: 1 });
  await bed.edit(virtualKeys, 'chat', { spec: { budgetDuration: '7d', maxBudget: '1.25' } });
  await bed.sweep();
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '1.25', isActive: false });
  await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '2' } });

  const first = await bed.value('chat-key');
  await bed.remove(RESOURCES.secrets, 'chat-key');
  await bed.sweep();
  const second = await bed.value('chat-key');
  expect([await bed.works(first), await bed.works(second)]).toEqual([false, true]);
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '1.25', isActive: true });

  await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
  await bed.sweep();
  expect(await bed.value('chat-key')).toBe(second);

  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const claim = (await bed.database().claims(uid)).find(({ alias }) => alias === 'chat');
  await bed.database().retire([claim?.scopeId ?? '']);
  await bed.sweep();
  expect(await bed.value('chat-key')).toBe(second);
  expect(await bed.works(second)).toBe(true);
  expect((await bed.sweep()).actions).toEqual({});
});

test('a retained key is adopted with its spend; a deleted instance leaves no claim and no value', async () => {
  const bed = await make();
  await bed.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
  await bed.sweep();
  const value = await bed.value('chat-key');
  await bed.spend('chat', '3');
  await bed.remove(virtualKeys, 'chat');
  await bed.sweep();
  expect(await bed.works(value)).toBe(true);
  await bed.apply(makeKey());
  await bed.sweep();
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, currentSpend: '3', isActive: true });
  await bed.edit(users, 'alice', { spec: { keyAlias: 'renamed' } });
  expect((await bed.sweep()).failed).toEqual({});
  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  await bed.remove(gatewayInstances, 'main');
  expect((await bed.sweep()).failed).toEqual({});
  expect(await bed.database().claims(uid)).toEqual([]);
  expect(await bed.works(value)).toBe(false);
});

test('a rotation ends with both values at work and one that is current, and its ledger is gone on with, as in memory', async () => {
  const bed = await make();
  await bed.sweep();
  const first = await bed.value('chat-key');
  await bed.spend('chat', '1.25');
  const rotate = 'auth.gateway-operator.dev/rotate';
  await bed.edit(virtualKeys, 'chat', { metadata: { annotations: { [rotate]: 'now' } } });
  expect((await bed.sweep()).actions).toMatchObject({ PutSecret: 1, RetireValues: 1 });
  const second = await bed.value('chat-key');
  expect(second).not.toBe(first);
  expect([await bed.works(first), await bed.works(second)]).toEqual([true, true]);
  bed.restart();
  expect((await bed.sweep()).actions).toEqual({});

  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  await bed.remove(gatewayInstances, 'main');
  await bed.sweep();
  expect(await bed.works(second)).toBe(false);
  const instance = makeInstance();
  const annotations = { 'instance.gateway-operator.dev/adopt-ledger': uid };
  await bed.apply({ ...instance, metadata: { ...instance.metadata, annotations } });
  expect((await bed.sweep()).failed).toEqual({});
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject({
    keyValue: second,
    currentSpend: '1.25',
    isActive: true,
  });
  expect([await bed.works(first), await bed.works(second)]).toEqual([true, true]);
  expect((await bed.sweep()).actions).toEqual({});
});
