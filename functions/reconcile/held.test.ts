// Is a run that would remove more than is plausible held, and let go ahead by whoever meant exactly that?
import { beforeEach, expect, test } from 'vitest';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets, makeUser } from '../../test/reconcile/objects.ts';

const GROUP = 'instance.gateway-operator.dev';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
});

const many = async (count: number) => {
  await bed.apply(...Array.from({ length: count }, (_, index) => makeKey({}, `k${index}`)));
  await bed.sweep();
  expect(await bed.aliases()).toHaveLength(count);
};
/** Somebody removes finalizers by hand. */
const lose = async (from: number, to: number) => {
  for (let index = from; index < to; index += 1) {
    await bed.edit(virtualKeys, `k${index}`, { metadata: { finalizers: [] } });
    await bed.remove(virtualKeys, `k${index}`);
  }
};
const annotate = (name: string, text: string | null) =>
  bed.edit(gatewayInstances, 'main', { metadata: { annotations: { [`${GROUP}/${name}`]: text } } });
const condition = async () =>
  (await bed.status(gatewayInstances, 'main')).conditions?.find(({ type }) => type === 'DeletionsHeld');
const heldName = async () => (await bed.sweep()).held?.[0]?.release ?? '';

test('it is held and reported: in the report, in an event and in a condition that says how to let it go; the keys work on', async () => {
  await many(30);
  await lose(0, 11);
  const report = await bed.sweep();
  const release = expect.stringMatching(/^[0-9a-f]{10}$/);
  expect(report.held).toEqual([{ instance: 'default/main', action: 'RetireClaim', count: 11, of: 30, release }]);
  expect(report.actions).not.toHaveProperty('RetireClaim');
  expect(await bed.aliases()).toHaveLength(30);
  expect(await condition()).toMatchObject({
    status: 'True',
    reason: 'DeletionHeld',
    message: `a run would remove 11 of 30 claims whose objects are gone, which is more than is plausible: nothing was removed; if it is meant, annotate the instance with ${GROUP}/release-deletions=${report.held?.[0]?.release}`,
  });
  expect(bed.events('main').filter((reason) => reason === 'DeletionHeld')).toHaveLength(1);
  const writes = bed.writes();
  await bed.sweep();
  expect(bed.writes() - writes).toBeLessThanOrEqual(1);
  expect(bed.events('main').filter((reason) => reason === 'DeletionHeld')).toHaveLength(1);
});

test('ten, or a quarter, is not held', async () => {
  await many(30);
  await lose(0, 10);
  expect((await bed.sweep()).actions).toMatchObject({ RetireClaim: 10 });
});

test('what a person deleted is not held', async () => {
  await many(30);
  for (let index = 0; index < 30; index += 1) await bed.remove(virtualKeys, `k${index}`);
  expect((await bed.sweep()).held).toBeUndefined();
  expect(await bed.aliases()).toEqual([]);
});

test('its name lets it go ahead, the condition goes, and the annotation may stay', async () => {
  await many(30);
  await lose(0, 11);
  await annotate('release-deletions', await heldName());
  const report = await bed.sweep();
  expect(report.held).toBeUndefined();
  expect(report.actions).toMatchObject({ RetireClaim: 11 });
  expect(await bed.aliases()).toHaveLength(19);
  expect(await condition()).toBeUndefined();
  expect((await bed.sweep()).actions).toEqual({});
});

test('the name of an earlier plan lets no other go ahead, neither a larger one nor one of the same size', async () => {
  await many(60);
  await lose(0, 20);
  await annotate('release-deletions', await heldName());
  await lose(20, 21);
  expect((await bed.sweep()).held).toMatchObject([{ count: 21 }]);
  expect(await bed.aliases()).toHaveLength(60);
  await annotate('release-deletions', await heldName());
  await bed.sweep();
  expect(await bed.aliases()).toHaveLength(39);
  await lose(21, 42);
  expect((await bed.sweep()).held).toMatchObject([{ count: 21, of: 39 }]);
  expect(await bed.aliases()).toHaveLength(39);
});

/** Somebody let it go ahead, and the run that did it was killed at its write number `step`. */
const dying = async (step: number, run: () => Promise<unknown>) => {
  let left = step;
  const dies = () => {
    left -= 1;
    if (left <= 0) throw new Error('killed');
  };
  bed.onDatabase = (method) => {
    if (['retire', 'release', 'writePolicies', 'retireValues', 'claim'].includes(method)) dies();
  };
  bed.cluster.inject(({ verb }) => {
    if (verb !== 'get' && verb !== 'list') dies();
    return undefined;
  });
  await run();
  bed.onDatabase = () => undefined;
  bed.cluster.inject(() => undefined);
  bed.restart();
  return left <= 0;
};

test('a released removal that dies half-way goes on with the next run, wherever it dies, and needs no second release', async () => {
  for (let step = 1; ; step += 1) {
    bed = createBed();
    await bed.apply(...makeSecrets(), makeInstance());
    await many(16);
    await lose(0, 12);
    await annotate('release-deletions', await heldName());
    const died = await dying(step, () => bed.sweep());
    const report = await bed.sweep();
    expect({ step, held: report.held, failed: report.failed }).toEqual({ step, held: undefined, failed: {} });
    expect(await bed.aliases()).toHaveLength(4);
    expect({ step, actions: (await bed.sweep()).actions }).toEqual({ step, actions: {} });
    if (!died) break;
  }
});

test('keys of users, too, that a released run did not get to are removed by the next', async () => {
  const names = Array.from({ length: 16 }, (_, index) => `u${index}`);
  for (const step of [1, 2, 9, 14]) {
    bed = createBed();
    await bed.apply(...makeSecrets(), makeInstance(), ...names.map((name) => makeUser({}, name)));
    await bed.sweep();
    for (const name of names.slice(0, 12)) await bed.edit(users, name, { spec: { autoCreateKey: false } });
    await annotate('release-deletions', await heldName());
    expect(await dying(step, () => bed.sweep())).toBe(true);
    expect((await bed.sweep()).held).toBeUndefined();
    expect((await bed.aliases()).filter((alias) => alias.endsWith('-key'))).toHaveLength(4);
  }
});

test('what is lost while a released removal waits to go on is held by itself: the leave is for what was named, and ends with it', async () => {
  await many(60);
  await lose(0, 20);
  await annotate('release-deletions', await heldName());
  await dying(8, () => bed.sweep());
  const left = (await bed.aliases()).length;
  expect(left).toBeGreaterThan(40);
  await lose(20, 41);
  expect(await bed.sweep()).toMatchObject({ held: [{ count: 21, of: 40 }], actions: { ForgetRelease: 1 } });
  expect(await bed.aliases()).toHaveLength(40);
  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  expect((await bed.database().instance(uid)).released).toBeUndefined();
});

test('whoever takes the annotation away stops what is left of it', async () => {
  await many(40);
  await lose(0, 30);
  await annotate('release-deletions', await heldName());
  await dying(6, () => bed.sweep());
  const left = (await bed.aliases()).length;
  await annotate('release-deletions', null);
  const report = await bed.sweep();
  expect(report.actions).toMatchObject({ ForgetRelease: 1 });
  expect(report.held).toMatchObject([{ count: left - 10 }]);
  expect(await bed.aliases()).toHaveLength(left);
});

test('keys that users would lose at once are held too: a share of an instance, which its annotation changes', async () => {
  const names = Array.from({ length: 24 }, (_, index) => `u${index}`);
  await bed.apply(...names.map((name) => makeUser({}, name)));
  await bed.sweep();
  for (const name of names.slice(0, 12)) await bed.edit(users, name, { spec: { autoCreateKey: false } });
  expect((await bed.sweep()).held).toMatchObject([{ action: 'DeleteKey', count: 12, of: 24 }]);
  await annotate('deletion-share', '50%');
  expect((await bed.sweep()).held).toBeUndefined();
  expect((await bed.aliases()).filter((alias) => alias.endsWith('-key'))).toHaveLength(12);
  await annotate('deletion-share', '0%');
  for (const name of names.slice(12, 23)) await bed.edit(users, name, { spec: { autoCreateKey: false } });
  expect((await bed.sweep()).held).toMatchObject([{ count: 11, of: 12 }]);
  await annotate('deletion-share', 'much');
  expect((await bed.sweep()).held).toMatchObject([{ count: 11, of: 12 }]);
});

test('a dry run says what is held and how to let it go, and lists it once it is let go', async () => {
  await many(30);
  await lose(0, 11);
  const rows = await bed.dryRun();
  expect(rows.filter(({ action }) => action === 'RetireClaim')).toEqual([]);
  expect(rows.filter(({ action }) => action === 'Held')).toMatchObject([
    { name: 'main', why: expect.stringContaining('release-deletions=') },
  ]);
  await annotate('release-deletions', await heldName());
  expect((await bed.dryRun()).filter(({ action }) => action === 'RetireClaim')).toHaveLength(11);
});
