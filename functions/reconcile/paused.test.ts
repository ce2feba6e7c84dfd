// Is an instance that is paused left alone, and does everybody see that it is?
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets } from '../../test/reconcile/objects.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets());
});

const main = () => bed.status(gatewayInstances, 'main');
const ready = () => bed.ready(gatewayInstances, 'main');
const condition = async (type: string) => {
  const found = (await main()).conditions?.find((one) => one.type === type);
  return found === undefined ? 'nothing' : `${found.status} ${found.reason}`;
};
const message = async (type: string) => (await main()).conditions?.find((one) => one.type === type)?.message;

describe('an instance', () => {
  test('that is paused is left alone, with its keys, but for deletion', async () => {
    await bed.apply(makeInstance({ paused: true }), makeKey());
    expect((await bed.sweep()).actions).toEqual({ WriteStatus: 1 });
    expect((await main()).conditions).toMatchObject([{ type: 'Paused', status: 'True', reason: 'Paused' }]);
    await bed.edit(gatewayInstances, 'main', { spec: { paused: false } });
    await bed.sweep();
    const value = await bed.value('chat-key');
    await bed.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '99' } });
    expect((await bed.sweep()).actions).toEqual({ WriteStatus: 1 });
    expect((await bed.sweep()).actions).toEqual({});
    expect(await bed.works(value)).toBe(true);
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    expect(await bed.get(virtualKeys, 'chat')).toBeUndefined();
    expect(await bed.works(value)).toBe(false);
  });

  test('that is paused says since when, in a condition beside Ready and in every dry run, until it goes on', async () => {
    await bed.apply(makeInstance(), makeKey());
    await bed.sweep();
    const before = await main();
    bed.clock.pass(60_000);
    await bed.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await bed.edit(virtualKeys, 'chat', { spec: { blocked: true } });
    await bed.sweep();
    const { conditions, ...others } = await main();
    expect({ ...others, conditions: conditions?.slice(1) }).toEqual(before);
    const lastTransitionTime = '2026-11-21T12:01:00Z';
    expect(conditions?.[0]).toMatchObject({ type: 'Paused', status: 'True', lastTransitionTime });
    expect(await message('Paused')).toMatch(
      /^spec.paused is true: since then nothing .* but deletion.*; delete a VirtualKey to stop it now$/,
    );
    const row = { action: 'Paused', kind: 'GatewayInstance', namespace: 'default', name: 'main' };
    expect(await bed.dryRun()).toEqual([{ ...row, why: 'nothing but deletions' }]);

    bed.clock.pass(60_000);
    await bed.edit(gatewayInstances, 'main', { spec: { routing: { retries: 5 } } });
    await bed.sweep();
    expect(await condition('Paused')).toBe('True Paused');
    expect((await main()).conditions?.[0]).toMatchObject({ lastTransitionTime });
    await bed.edit(gatewayInstances, 'main', { spec: { paused: false } });
    await bed.sweep();
    expect((await main()).conditions?.map(({ type }) => type)).toEqual(before.conditions?.map(({ type }) => type));
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False Blocked');
    expect((await bed.sweep()).actions).toEqual({});
    expect(await bed.dryRun()).toEqual([]);
  });

  test('that is deleted while it is paused goes', async () => {
    await bed.apply(makeInstance(), makeKey());
    await bed.sweep();
    await bed.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await bed.sweep();
    await bed.edit(gatewayInstances, 'main', {
      metadata: { finalizers: ['gateway-operator.dev/cleanup', 'somebody/else'] },
    });
    await bed.remove(gatewayInstances, 'main');
    await bed.sweep();
    expect(await ready()).toBe('False Deleting');
    expect((await main()).conditions?.map(({ type }) => type)).not.toContain('Paused');
    expect(await bed.dryRun()).toEqual([]);
  });
});
