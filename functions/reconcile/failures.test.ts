// Whom does a step hold up that fails in every pass of every run? Nobody: statuses are written all the same (DESIGN 6, laws 5 and 9).
import { beforeEach, expect, test } from 'vitest';
import { users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets, makeUser } from '../../test/reconcile/objects.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance(), makeKey(), makeKey({}, 'other'));
  await bed.sweep();
});

const failing = (broken: string) => {
  bed.onDatabase = (method) => {
    if (method === broken) throw new Error('the disk is full');
  };
};

/** Nothing but the failing step stands in its way: new spend, a new key and an instance's edit are told. */
const expectOthersTold = async () => {
  await bed.spend('other', '0.25');
  await bed.apply(makeKey({}, 'late'));
  const report = await bed.sweep();
  expect(await bed.status(virtualKeys, 'other')).toMatchObject({ currentSpend: '0.25' });
  expect(await bed.ready(virtualKeys, 'late')).toBe('True Ready');
  expect(await bed.works(await bed.value('late-key'))).toBe(true);
  return report;
};

test('a claim that nobody has any more and that cannot be retired keeps no status from being written', async () => {
  await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: null } });
  await bed.remove(virtualKeys, 'chat');
  failing('retire');
  for (let run = 0; run < 2; run += 1) expect((await bed.sweep()).failed).toEqual({ RetireScope: 1 });
  expect((await expectOthersTold()).failed).toEqual({ RetireScope: 1 });
  bed.onDatabase = () => undefined;
  expect((await bed.sweep()).actions).toMatchObject({ RetireScope: 1 });
});

test('a policy that cannot be written is told by its own key and keeps no status of others from being written', async () => {
  await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '5' } });
  failing('putScope');
  await bed.spend('other', '0.25');
  for (let run = 0; run < 2; run += 1) {
    expect((await bed.sweep()).failed).toEqual({ PutScope: 1 });
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False ReconcileFailed');
    expect(await bed.status(virtualKeys, 'other')).toMatchObject({ currentSpend: '0.25' });
  }
  bed.onDatabase = () => undefined;
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('a finalizer that cannot be removed from an object that is not understood keeps no status from being written', async () => {
  await bed.apply(makeKey({}, 'broken'));
  await bed.sweep();
  await bed.edit(virtualKeys, 'broken', { spec: { connectionRef: 'main' } });
  await bed.remove(virtualKeys, 'broken');
  bed.cluster.inject(({ verb, name, subresource }) =>
    name === 'broken' && verb !== 'get' && subresource === undefined ? 'forbidden' : undefined,
  );
  for (let run = 0; run < 2; run += 1) expect((await bed.sweep()).failed).toEqual({ RemoveFinalizer: 1 });
  expect((await expectOthersTold()).failed).toEqual({ RemoveFinalizer: 1 });
  bed.cluster.inject(() => undefined);
  await bed.sweep();
  expect(await bed.get(virtualKeys, 'broken')).toBeUndefined();
});

test('a key of a user that cannot be made is told by the user and keeps no status from being written', async () => {
  await bed.apply(makeUser());
  bed.cluster.inject(({ verb, resource }) =>
    verb === 'create' && resource.plural === 'virtualkeys' ? 'forbidden' : undefined,
  );
  for (let run = 0; run < 2; run += 1) expect((await bed.sweep()).failed).toEqual({ CreateKey: 1 });
  expect(await bed.ready(users, 'alice')).toBe('False ReconcileFailed');
  await bed.spend('other', '0.25');
  await bed.sweep();
  expect(await bed.status(virtualKeys, 'other')).toMatchObject({ currentSpend: '0.25' });
});
