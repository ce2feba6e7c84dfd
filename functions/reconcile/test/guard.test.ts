// The deletion guard: a run that would remove more than is plausible waits until the instance's annotation allows it.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { READS } from '../../../test/reconcile/databases.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeUser } from '../../../test/reconcile/objects.ts';

const SHARE = 'instance.gateway-operator.dev/deletion-share';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const many = async (count: number) => {
  await harness.apply(...Array.from({ length: count }, (_, index) => makeKey({}, `k${index}`)));
  await harness.resync();
  expect(await harness.aliases()).toHaveLength(count);
};
/** A person removes finalizers. */
const lose = async (from: number, to: number) => {
  for (let index = from; index < to; index += 1) {
    await harness.edit(virtualKeys, `k${index}`, { metadata: { finalizers: [] } });
    await harness.remove(virtualKeys, `k${index}`);
  }
};
const allow = (share: string | null) =>
  harness.edit(gatewayInstances, 'main', { metadata: { annotations: { [SHARE]: share } } });
const condition = async () =>
  (await harness.status(gatewayInstances, 'main')).conditions?.find(({ type }) => type === 'DeletionsGuarded');

test('the removals are guarded and reported: in the report, an event and a condition with the next step; the keys continue working', async () => {
  await many(30);
  await lose(0, 11);
  const report = await harness.resync();
  const message: unknown = expect.stringContaining('would remove 11 of 30 database rows');
  expect(report.guarded).toEqual([{ instance: 'default/main', action: 'RetireScope', count: 11, total: 30, message }]);
  expect(report.actions).not.toHaveProperty('RetireScope');
  expect(await harness.aliases()).toHaveLength(30);
  expect(await condition()).toMatchObject({
    status: 'True',
    reason: 'TooManyDeletions',
    message: `a run would remove 11 of 30 database rows, because their objects are gone, which is more than is plausible: nothing was removed; if this is intended, annotate the instance with ${SHARE}=37%, until they are removed`,
  });
  const events = () => harness.events('main').filter((reason) => reason === 'TooManyDeletions');
  expect(events()).toHaveLength(1);
  const writes = harness.writes();
  await harness.resync();
  expect(harness.writes() - writes).toBeLessThanOrEqual(1);
  expect(events()).toHaveLength(1);
});

test('ten removals, or a quarter, are not guarded', async () => {
  await many(30);
  await lose(0, 10);
  expect((await harness.resync()).actions).toMatchObject({ RetireScope: 10 });
});

test('objects that a person deleted are not guarded', async () => {
  await many(30);
  for (let index = 0; index < 30; index += 1) await harness.remove(virtualKeys, `k${index}`);
  expect((await harness.resync()).guarded).toBeUndefined();
  expect(await harness.aliases()).toEqual([]);
});

test('the share that the condition names allows the removals, and the condition disappears', async () => {
  await many(30);
  await lose(0, 11);
  await harness.resync();
  await allow('36%');
  expect((await harness.resync()).guarded).toMatchObject([{ count: 11 }]);
  await allow('37%');
  const report = await harness.resync();
  expect(report.guarded).toBeUndefined();
  expect(report.actions).toMatchObject({ RetireScope: 11 });
  expect(await harness.aliases()).toHaveLength(19);
  expect(await condition()).toBeUndefined();
  expect((await harness.resync()).actions).toEqual({});
});

test('if a run with allowed removals dies at any write, the next run continues', async () => {
  for (let step = 1; ; step += 1) {
    harness = createHarness();
    await harness.apply(...makeSecrets(), makeInstance());
    await many(16);
    await lose(0, 12);
    await allow('75%');
    let left = step;
    const dies = () => {
      left -= 1;
      if (left <= 0) throw new Error('killed');
    };
    harness.onDatabase = (method) => {
      if (!READS.includes(method)) dies();
    };
    harness.cluster.inject(({ verb }) => {
      if (verb !== 'get' && verb !== 'list') dies();
      return undefined;
    });
    await harness.resync();
    harness.onDatabase = () => undefined;
    harness.cluster.inject(() => undefined);
    harness.restart();
    const report = await harness.resync();
    expect({ step, guarded: report.guarded, failed: report.failed }).toEqual({ step, guarded: undefined, failed: {} });
    expect(await harness.aliases()).toHaveLength(4);
    expect({ step, actions: (await harness.resync()).actions }).toEqual({ step, actions: {} });
    if (left > 0) break;
  }
});

test('keys of users on an instance where their namespace has no other keys are guarded too', async () => {
  const names = Array.from({ length: 12 }, (_, index) => `u${index}`);
  await harness.apply(makeInstance({}, 'second'), ...names.map((name) => makeUser({}, name)));
  await harness.resync();
  const connectionRef = { instanceRef: { name: 'second', namespace: 'default' } };
  for (const name of names) await harness.edit(users, name, { spec: { connectionRef, autoCreateKey: false } });
  expect((await harness.resync()).guarded).toContainEqual(
    expect.objectContaining({ action: 'DeleteKey', instance: 'default/second', count: 12, total: 12 }),
  );
});

test('keys that users would lose at the same time are guarded too, as a share of the instance', async () => {
  const names = Array.from({ length: 24 }, (_, index) => `u${index}`);
  await harness.apply(...names.map((name) => makeUser({}, name)));
  await harness.resync();
  for (const name of names.slice(0, 12)) await harness.edit(users, name, { spec: { autoCreateKey: false } });
  expect((await harness.resync()).guarded).toMatchObject([{ action: 'DeleteKey', count: 12, total: 24 }]);
  await allow('50%');
  expect((await harness.resync()).guarded).toBeUndefined();
  expect((await harness.aliases()).filter((alias) => alias.endsWith('-key'))).toHaveLength(12);
  await allow('0%');
  for (const name of names.slice(12, 23)) await harness.edit(users, name, { spec: { autoCreateKey: false } });
  expect((await harness.resync()).guarded).toMatchObject([{ count: 11, total: 12 }]);
  await allow('much');
  expect((await harness.resync()).guarded).toMatchObject([{ count: 11, total: 12 }]);
});

test('a dry run shows the guarded removals and the next step, and lists the removals when they are allowed', async () => {
  await many(30);
  await lose(0, 11);
  const rows = await harness.dryRun();
  expect(rows.filter(({ action }) => action === 'RetireScope')).toEqual([]);
  expect(rows.filter(({ action }) => action === 'Guarded')).toMatchObject([
    { name: 'main', why: expect.stringContaining(`${SHARE}=37%`) },
  ]);
  await allow('37%');
  expect((await harness.dryRun()).filter(({ action }) => action === 'RetireScope')).toHaveLength(11);
});

describe('on an instance that tenants share', () => {
  const namespaced = (namespace: string, count: number, more: object = {}) =>
    Array.from({ length: count }, (_, index) =>
      makeKey({ keyAlias: `${namespace}-${index}`, ...more }, `k${index}`, namespace),
    );
  const loseAll = async (namespace: string, count: number) => {
    for (let index = 0; index < count; index += 1) {
      await harness.edit(virtualKeys, `k${index}`, { metadata: { finalizers: [] } }, namespace);
      await harness.remove(virtualKeys, `k${index}`, namespace);
    }
  };

  test('a tenant who loses all keys does not delay the removals of other tenants', async () => {
    await harness.apply(...namespaced('a', 10), ...namespaced('b', 15));
    await harness.resync();
    await loseAll('b', 15);
    await loseAll('a', 1);
    const report = await harness.resync();
    expect(report.actions).toMatchObject({ RetireScope: 1 });
    const message: unknown = expect.stringContaining(
      '15 of 15 database rows in namespace b, because their objects are gone',
    );
    expect(report.guarded).toEqual([
      { instance: 'default/main', action: 'RetireScope', count: 15, total: 15, message },
    ]);
    expect((await harness.aliases()).filter((alias) => alias.startsWith('a-'))).toHaveLength(9);
    await allow('100%');
    expect((await harness.resync()).actions).toMatchObject({ RetireScope: 15 });
  });

  test('a few keys in each of many namespaces are too many together', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `n${index}`);
    await harness.apply(...names.flatMap((name) => namespaced(name, 5)));
    await harness.resync();
    for (const name of names) await loseAll(name, 5);
    const report = await harness.resync();
    expect(report.guarded).toMatchObject([{ count: 40, total: 40 }]);
    expect(report.actions).not.toHaveProperty('RetireScope');
  });

  test.each([
    ['together', [['rest', 100, 0]], 29, 40, 140],
    [
      'together and alone',
      [
        ['rest', 100, 0],
        ['large', 20, 15],
      ],
      75,
      55,
      160,
    ],
  ] as const)(
    'the share that the message advises for removals that are too many %s is sufficient',
    async (...[, tenants, share, count, total]) => {
      const few = Array.from({ length: 8 }, (_, index) => [`n${index}`, 5, 5] as const);
      await harness.apply(...[...few, ...tenants].flatMap(([name, all]) => namespaced(name, all)));
      await harness.resync();
      for (const [name, , lost] of [...few, ...tenants]) await loseAll(name, lost);
      const message: unknown = expect.stringContaining(
        `would remove ${count} of ${total} database rows, because their objects are gone, `,
      );
      const [guard] = (await harness.resync()).guarded ?? [];
      expect(guard).toMatchObject({ count, total, message });
      expect(guard?.message).toContain(`=${share}%,`);
      await allow(`${share - 1}%`);
      expect((await harness.resync()).guarded).toHaveLength(1);
      await allow(`${share}%`);
      expect(await harness.resync()).not.toHaveProperty('guarded');
    },
  );

  test('retained keys of many namespaces whose Secrets are gone at the same time are too many together', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `n${index}`);
    await harness.apply(...names.flatMap((name) => namespaced(name, 5, { deletionPolicy: 'Retain' })));
    await harness.resync();
    const each = names.flatMap((name) => Array.from({ length: 5 }, (_, index) => [`k${index}`, name] as const));
    for (const [key, name] of each) await harness.remove(virtualKeys, key, name);
    await harness.resync();
    for (const [key, name] of each) await harness.remove(RESOURCES.secrets, `${key}-key`, name);
    expect((await harness.resync()).guarded).toMatchObject([{ action: 'RetireScope', count: 40, total: 40 }]);
    expect(await harness.aliases()).toHaveLength(40);
  });

  test('a retained key whose Secret a person deleted ends, although two namespaces lose ten of theirs each', async () => {
    const names = ['n0', 'n1'];
    const retain = { deletionPolicy: 'Retain' };
    await harness.apply(
      ...names.flatMap((name) => namespaced(name, 10, retain)),
      makeKey({ keyAlias: 'leaked', ...retain }, 'leaked', 'a'),
    );
    await harness.resync();
    const each = names.flatMap((name) => Array.from({ length: 10 }, (_, index) => [`k${index}`, name] as const));
    for (const [key, name] of [...each, ['leaked', 'a'] as const]) await harness.remove(virtualKeys, key, name);
    await harness.resync();
    for (const [key, name] of each) await harness.remove(RESOURCES.secrets, `${key}-key`, name);
    await harness.resync();
    await harness.remove(RESOURCES.secrets, 'leaked-key', 'a');
    await harness.resync();
    expect(await harness.aliases()).not.toContain('leaked');
  });

  test('a retained key whose Secret a person deleted ends, whatever other tenants lose', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `n${index}`);
    await harness.apply(
      ...names.flatMap((name) => namespaced(name, 5)),
      makeKey({ keyAlias: 'leaked', deletionPolicy: 'Retain' }, 'leaked', 'a'),
    );
    await harness.resync();
    await harness.remove(virtualKeys, 'leaked', 'a');
    await harness.resync();
    for (const name of names) await loseAll(name, 5);
    await harness.remove(RESOURCES.secrets, 'leaked-key', 'a');
    await harness.resync();
    expect(await harness.aliases()).not.toContain('leaked');
    expect(await harness.aliases()).toHaveLength(40);
  });
});
