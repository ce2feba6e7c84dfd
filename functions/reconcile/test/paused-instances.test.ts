// A paused instance is not changed, and its pause is visible.
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets());
});

const main = () => harness.status(gatewayInstances, 'main');
const ready = () => harness.ready(gatewayInstances, 'main');
const condition = async (type: string) => {
  const found = (await main()).conditions?.find((one) => one.type === type);
  return found === undefined ? 'nothing' : `${found.status} ${found.reason}`;
};
const message = async (type: string) => (await main()).conditions?.find((one) => one.type === type)?.message;

describe('an instance', () => {
  test('that is paused is not changed, nor are its keys, except by deletions', async () => {
    await harness.apply(makeInstance({ paused: true }), makeKey());
    expect((await harness.resync()).actions).toEqual({ WriteStatus: 1 });
    expect((await main()).conditions).toMatchObject([{ type: 'Paused', status: 'True', reason: 'Paused' }]);
    await harness.edit(gatewayInstances, 'main', { spec: { paused: false } });
    await harness.resync();
    const value = await harness.value('chat-key');
    await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '99' } });
    expect((await harness.resync()).actions).toEqual({ WriteStatus: 1 });
    expect((await harness.resync()).actions).toEqual({});
    expect(await harness.works(value)).toBe(true);
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await harness.get(virtualKeys, 'chat')).toBeUndefined();
    expect(await harness.works(value)).toBe(false);
  });

  test('that is paused has a condition with its time, and every dry run shows it, until the pause ends', async () => {
    await harness.apply(makeInstance(), makeKey());
    await harness.resync();
    const before = await main();
    harness.clock.pass(60_000);
    await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await harness.edit(virtualKeys, 'chat', { spec: { blocked: true } });
    await harness.resync();
    const { conditions, ...others } = await main();
    expect({ ...others, conditions: conditions?.slice(1) }).toEqual(before);
    const lastTransitionTime = '2026-11-21T12:01:00Z';
    expect(conditions?.[0]).toMatchObject({ type: 'Paused', status: 'True', lastTransitionTime });
    expect(await message('Paused')).toMatch(
      /^spec.paused is true: only deletions are processed, .*. To stop a VirtualKey now, delete it$/,
    );
    const row = { action: 'Paused', kind: 'GatewayInstance', namespace: 'default', name: 'main' };
    expect(await harness.dryRun()).toEqual([{ ...row, why: 'only deletions are done' }]);

    harness.clock.pass(60_000);
    await harness.edit(gatewayInstances, 'main', { spec: { routing: { retries: 5 } } });
    await harness.resync();
    expect(await condition('Paused')).toBe('True Paused');
    expect((await main()).conditions?.[0]).toMatchObject({ lastTransitionTime });
    await harness.edit(gatewayInstances, 'main', { spec: { paused: false } });
    await harness.resync();
    expect((await main()).conditions?.map(({ type }) => type)).toEqual(before.conditions?.map(({ type }) => type));
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False Blocked');
    expect((await harness.resync()).actions).toEqual({});
    expect(await harness.dryRun()).toEqual([]);
  });

  test('that is deleted while it is paused is cleaned up', async () => {
    await harness.apply(makeInstance(), makeKey());
    await harness.resync();
    await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await harness.resync();
    await harness.edit(gatewayInstances, 'main', {
      metadata: { finalizers: ['gateway-operator.dev/cleanup', 'somebody/else'] },
    });
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await ready()).toBe('False Deleting');
    expect((await main()).conditions?.map(({ type }) => type)).not.toContain('Paused');
    expect(await harness.dryRun()).toEqual([]);
  });
});
