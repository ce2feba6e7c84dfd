// Rotation of a key that does not work, or whose Secret a person edits.
import { beforeEach, describe, expect, test } from 'vitest';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createRotation, HOUR, HOURLY, MINUTE } from '../../../test/reconcile/rotation.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const { published, working, editKey, pass, rotation } = createRotation(() => harness);

test('a published value works only until the end of its overlap, also if no status ever showed it', async () => {
  await working({ rotation: { every: '5m', overlap: '1m' } });
  harness.cluster.inject(({ verb, subresource }) => {
    if (verb === 'patch' && subresource === 'status') throw new Error('etcd is slow');
    return undefined;
  });
  await pass(5 * MINUTE);
  const second = await published();
  await pass(5 * MINUTE);
  harness.cluster.inject(() => undefined);
  expect(await published()).not.toBe(second);
  expect(await harness.works(second)).toBe(true);
  await pass(2 * MINUTE);
  expect(await harness.works(second)).toBe(false);
});

describe('a key that does not work', () => {
  test('because it is blocked is rotated too: no value gets older than `every`', async () => {
    const first = await working({ ...HOURLY, blocked: true });
    await pass(HOUR);
    expect(await published()).not.toBe(first);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False Blocked');
  });

  test('because it expired keeps its value, reports that, and is rotated when its duration is lengthened', async () => {
    const first = await working({ ...HOURLY, duration: '30m' });
    await pass(2 * HOUR);
    expect(await published()).toBe(first);
    expect(await rotation()).toMatchObject({ status: 'False', reason: 'Expired' });
    await editKey({ duration: '10h' });
    await pass(0);
    expect(await published()).not.toBe(first);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('because its instance is paused or its database cannot be reached is rotated afterwards', async () => {
    const first = await working();
    await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await pass(HOUR);
    expect(await published()).toBe(first);
    await harness.edit(gatewayInstances, 'main', { spec: { paused: false } });
    harness.refuse(true);
    await pass(HOUR);
    expect(await published()).toBe(first);
    harness.refuse(false);
    await pass(0);
    expect(await published()).not.toBe(first);
    expect(await harness.works(first)).toBe(true);
  });

  test('because its instance is gone is not rotated', async () => {
    const first = await working();
    await harness.remove(gatewayInstances, 'main');
    await pass(2 * HOUR);
    expect(await published()).toBe(first);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
  });

  test('because its namespace was not allowed for a while keeps the age of its value', async () => {
    await harness.apply(makeKey(HOURLY, 'far', 'apps'));
    await harness.resync();
    const far = () => harness.value('far-key', 'apps');
    const first = await far();
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    await pass(30 * MINUTE);
    expect(await harness.works(first)).toBe(false);
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'All' } } });
    await pass(30 * MINUTE - 1000);
    expect(await far()).toBe(first);
    expect(await harness.works(first)).toBe(true);
    await pass(1000);
    expect(await far()).not.toBe(first);
  });
});

describe('a Secret that is edited during an overlap', () => {
  test('and has the previous value again gets the correct value back', async () => {
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa(first) } });
    await pass(MINUTE);
    expect(await published()).toBe(second);
    expect(await harness.works(first)).toBe(true);
  });

  test('and has the previous value, while no status shows the correct one, gets a new value; both others continue working', async () => {
    await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa(first) } });
    await pass(MINUTE);
    const third = await published();
    expect(new Set([first, second, third]).size).toBe(3);
    expect(await Promise.all([first, second, third].map((value) => harness.works(value)))).toEqual([true, true, true]);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect((await pass(1000)).actions).toEqual({});
  });

  test('and deleted gets a new value; the replaced value works until its end, the lost value does not work', async () => {
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await pass(MINUTE);
    const third = await published();
    expect(await Promise.all([first, second, third].map((value) => harness.works(value)))).toEqual([true, false, true]);
  });

  test('and changed back after the overlap never makes the ended value work', async () => {
    const first = await working();
    await pass(HOUR);
    await pass(10 * MINUTE);
    await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa(first) } });
    await pass(MINUTE);
    expect(await harness.works(first)).toBe(false);
    expect(await published()).not.toBe(first);
    expect(await harness.works(await published())).toBe(true);
  });
});

describe('a Secret that cannot be written', () => {
  const message = async () => {
    const { conditions } = await harness.status(virtualKeys, 'chat');
    return conditions?.find(({ type }) => type === 'Ready')?.message;
  };
  const refuse = (refusal: 'forbidden' | 'webhook' | undefined) =>
    harness.cluster.inject(({ verb, resource }) => {
      if (verb !== 'patch' || resource.plural !== 'secrets' || refusal === undefined) return undefined;
      if (refusal === 'webhook') throw new ClusterError('failed calling webhook', 500);
      return refusal;
    });

  test.each([
    ['immutable', 'Secret "chat-key" is immutable, so it cannot be changed: delete it'],
    ['forbidden', 'injected: forbidden'],
    ['webhook', 'failed calling webhook'],
  ])('(%s) does not keep a value working beyond its rotation', async (why, shown) => {
    const first = await working();
    if (why === 'immutable') await harness.edit(RESOURCES.secrets, 'chat-key', { immutable: true });
    else refuse(why as 'forbidden' | 'webhook');
    let removed = 0;
    harness.onDatabase = (method) => {
      if (method === 'removeValue') removed += 1;
    };
    await pass(HOUR);
    expect(await harness.works(first)).toBe(true);
    expect(await message()).toContain(shown);
    await pass(11 * MINUTE);
    for (let resync = 0; resync < 3; resync += 1) {
      await pass(MINUTE);
      expect([await published(), await harness.works(first)]).toEqual([first, false]);
      expect(await message()).toContain(shown);
    }
    // After an error of the API server, the new value may be published.
    expect(removed).toBe(why === 'webhook' ? 0 : 5);
    // Somebody follows the advice.
    refuse(undefined);
    if (why === 'immutable') await harness.remove(RESOURCES.secrets, 'chat-key');
    await pass(MINUTE);
    const second = await published();
    expect([await harness.works(first), await harness.works(second)]).toEqual([false, true]);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });
});
