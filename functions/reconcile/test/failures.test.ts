// Whom does a step hold up that fails in every pass of every run? Nobody: statuses are written all the same (DESIGN 6,
// laws 5 and 9).
import { beforeEach, expect, test } from 'vitest';
import { users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeUser } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey(), makeKey({}, 'other'));
  await harness.resync();
});

const failing = (broken: string) => {
  harness.onDatabase = (method) => {
    if (method === broken) throw new Error('the disk is full');
  };
};

/** Nothing but the failing step is in its way: new spend, a new key and an instance's edit are told. */
const expectOthersTold = async () => {
  await harness.spend('other', '0.25');
  await harness.apply(makeKey({}, 'late'));
  const report = await harness.resync();
  expect(await harness.status(virtualKeys, 'other')).toMatchObject({ currentSpend: '0.25' });
  expect(await harness.ready(virtualKeys, 'late')).toBe('True Ready');
  expect(await harness.works(await harness.value('late-key'))).toBe(true);
  return report;
};

test('an orphaned claim that cannot be retired keeps no status from being written', async () => {
  await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: null } });
  await harness.remove(virtualKeys, 'chat');
  failing('retire');
  for (let run = 0; run < 2; run += 1) expect((await harness.resync()).failed).toEqual({ RetireScope: 1 });
  expect((await expectOthersTold()).failed).toEqual({ RetireScope: 1 });
  harness.onDatabase = () => undefined;
  expect((await harness.resync()).actions).toMatchObject({ RetireScope: 1 });
});

test('a policy that cannot be written is told by its own key and keeps no status of others from being written', async () => {
  await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '5' } });
  failing('putScope');
  await harness.spend('other', '0.25');
  for (let run = 0; run < 2; run += 1) {
    expect((await harness.resync()).failed).toEqual({ PutScope: 1 });
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False ReconcileFailed');
    expect(await harness.status(virtualKeys, 'other')).toMatchObject({ currentSpend: '0.25' });
  }
  harness.onDatabase = () => undefined;
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('a finalizer that cannot be removed from an object that is not understood keeps no status from being written', async () => {
  await harness.apply(makeKey({}, 'broken'));
  await harness.resync();
  await harness.edit(virtualKeys, 'broken', { spec: { connectionRef: 'main' } });
  await harness.remove(virtualKeys, 'broken');
  harness.cluster.inject(({ verb, name, subresource }) =>
    name === 'broken' && verb !== 'get' && subresource === undefined ? 'forbidden' : undefined,
  );
  for (let run = 0; run < 2; run += 1) expect((await harness.resync()).failed).toEqual({ RemoveFinalizer: 1 });
  expect((await expectOthersTold()).failed).toEqual({ RemoveFinalizer: 1 });
  harness.cluster.inject(() => undefined);
  await harness.resync();
  expect(await harness.get(virtualKeys, 'broken')).toBeUndefined();
});

test('a key of a user that cannot be made is told by the user and keeps no status from being written', async () => {
  await harness.apply(makeUser());
  harness.cluster.inject(({ verb, resource }) =>
    verb === 'create' && resource.plural === 'virtualkeys' ? 'forbidden' : undefined,
  );
  for (let run = 0; run < 2; run += 1) expect((await harness.resync()).failed).toEqual({ CreateKey: 1 });
  expect(await harness.ready(users, 'alice')).toBe('False ReconcileFailed');
  await harness.spend('other', '0.25');
  await harness.resync();
  expect(await harness.status(virtualKeys, 'other')).toMatchObject({ currentSpend: '0.25' });
});
