// A step that fails in every round of every run: all statuses are still written (DESIGN 6, laws 5 and 9).
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

/** Checks that everything except the failing step is done: the status of another key, and a new key. */
const expectOthersDone = async () => {
  await harness.spend('other', '0.25');
  await harness.apply(makeKey({}, 'late'));
  const report = await harness.resync();
  expect(await harness.status(virtualKeys, 'other')).toMatchObject({ currentSpend: '0.25' });
  expect(await harness.ready(virtualKeys, 'late')).toBe('True Ready');
  expect(await harness.works(await harness.value('late-key'))).toBe(true);
  return report;
};

test('statuses are written although an orphaned claim cannot be retired', async () => {
  await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: null } });
  await harness.remove(virtualKeys, 'chat');
  failing('retire');
  for (let run = 0; run < 2; run += 1) expect((await harness.resync()).failed).toEqual({ RetireScope: 1 });
  expect((await expectOthersDone()).failed).toEqual({ RetireScope: 1 });
  harness.onDatabase = () => undefined;
  expect((await harness.resync()).actions).toMatchObject({ RetireScope: 1 });
});

test('a policy that cannot be written is reported in the status of its key, and all other statuses are written', async () => {
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

test('statuses are written although the finalizer of a malformed object cannot be removed', async () => {
  await harness.apply(makeKey({}, 'broken'));
  await harness.resync();
  await harness.edit(virtualKeys, 'broken', { spec: { connectionRef: 'main' } });
  await harness.remove(virtualKeys, 'broken');
  harness.cluster.inject(({ verb, name, subresource }) =>
    name === 'broken' && verb !== 'get' && subresource === undefined ? 'forbidden' : undefined,
  );
  for (let run = 0; run < 2; run += 1) expect((await harness.resync()).failed).toEqual({ RemoveFinalizer: 1 });
  expect((await expectOthersDone()).failed).toEqual({ RemoveFinalizer: 1 });
  harness.cluster.inject(() => undefined);
  await harness.resync();
  expect(await harness.get(virtualKeys, 'broken')).toBeUndefined();
});

test('a key of a user that cannot be created is reported in the status of the user, and all other statuses are written', async () => {
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
