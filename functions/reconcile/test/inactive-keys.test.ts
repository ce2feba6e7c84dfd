// A key is inactive exactly while something keeps it from working, and its status shows the first cause.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createChat } from '../../../test/reconcile/chat.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const { chat, ready, working, editKey } = createChat(() => harness);

describe('a key is not active, and its status shows the first cause', () => {
  test('while its instance does not exist', async () => {
    await harness.apply(makeKey({ connectionRef: { instanceRef: { name: 'none', namespace: 'default' } } }));
    await harness.resync();
    expect(await ready()).toBe('False InstanceNotFound');
  });

  test('while its instance is not ready; it is active again in the run in which the instance becomes ready', async () => {
    await harness.remove(RESOURCES.secrets, 'store');
    await harness.apply(makeKey());
    await harness.resync();
    expect(await ready()).toBe('False InstanceNotReady');
    await harness.apply(...makeSecrets());
    await harness.trigger('GatewayInstance', 'main');
    expect(await ready()).toBe('True Ready');
  });

  test('while the database cannot be reached; the status keeps its spend and value, and the key recovers', async () => {
    const value = await working();
    harness.refuse(true);
    await harness.resync();
    expect(await ready()).toBe('False InstanceNotReady');
    expect(await chat()).toMatchObject({
      isActive: false,
      keyValue: value,
      currentSpend: '0',
      keySecretRef: 'chat-key',
    });
    harness.refuse(false);
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await harness.value('chat-key')).toBe(value);
  });

  test('while its namespace is not allowed; its value stops working, and works again when the namespace is allowed again', async () => {
    await harness.apply(makeKey({}, 'chat', 'team-a'));
    await harness.resync();
    const value = await harness.value('chat-key', 'team-a');
    expect(await harness.works(value)).toBe(true);
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat', 'team-a')).toBe('False NamespaceNotAllowed');
    expect(await harness.works(value)).toBe(false);
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'All' } } });
    await harness.resync();
    expect(await harness.works(value)).toBe(true);
    expect(await harness.ready(virtualKeys, 'chat', 'team-a')).toBe('True Ready');
  });

  test('unless a selector matches the labels of its namespace', async () => {
    const namespace = (name: string, labels: Record<string, string>) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    });
    await harness.apply(namespace('team-a', { tier: 'gold' }), namespace('team-b', {}));
    const selector = { matchExpressions: [{ key: 'tier', operator: 'In', values: ['gold', 'silver'] }] };
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Selector', selector } } });
    await harness.apply(makeKey({ keyAlias: 'a' }, 'chat', 'team-a'), makeKey({ keyAlias: 'b' }, 'chat', 'team-b'));
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat', 'team-a')).toBe('True Ready');
    // Never allowed: the message is that of a missing instance.
    expect(await harness.ready(virtualKeys, 'chat', 'team-b')).toBe('False InstanceNotFound');
  });

  test('when another key has its alias: the older object gets it, and the other one never has a value', async () => {
    await harness.apply(makeKey({ keyAlias: 'same' }, 'first'));
    harness.clock.pass(1000);
    await harness.apply(makeKey({ keyAlias: 'same' }, 'a-second'));
    await harness.resync();
    expect([await ready('first'), await ready('a-second')]).toEqual(['True Ready', 'False AliasTaken']);
    expect(await harness.get(RESOURCES.secrets, 'a-second-key')).toBeUndefined();
    expect(harness.events('a-second')).toEqual(['AliasTaken']);
    await harness.remove(virtualKeys, 'first');
    await harness.resync();
    expect(await ready('a-second')).toBe('True Ready');
  });

  test('while it is blocked', async () => {
    const value = await working({ blocked: true });
    expect(await ready()).toBe('False Blocked');
    expect(await harness.works(value)).toBe(true);
    await editKey({ blocked: false });
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await harness.value('chat-key')).toBe(value);
  });

  test('when it has expired; runs do not move its end, and a longer duration makes it work again', async () => {
    await working({ duration: '24h' });
    for (let hour = 1; hour < 24; hour += 1) {
      harness.clock.pass(HOUR);
      const before = harness.writes();
      await harness.resync();
      expect(harness.writes()).toBe(before);
    }
    expect(await chat()).toMatchObject({ expiryDate: '2026-11-22T12:00:00Z', isActive: true });
    harness.clock.pass(HOUR);
    await harness.resync();
    expect(await ready()).toBe('False Expired');
    await editKey({ duration: '48h' });
    await harness.resync();
    expect(await chat()).toMatchObject({ expiryDate: '2026-11-23T12:00:00Z', isActive: true });
    await editKey({ duration: null });
    await harness.resync();
    expect(await chat()).not.toHaveProperty('expiryDate');
  });

  test('when its budget is spent, until it is raised or the window ends', async () => {
    await working();
    await harness.spend('chat', '10');
    await harness.resync();
    expect(await ready()).toBe('False BudgetExceeded');
    expect(await chat()).toMatchObject({ currentSpend: '10', isActive: false });
    await editKey({ maxBudget: '10.000000001' });
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    await harness.spend('chat', '1');
    await harness.resync();
    expect(await ready()).toBe('False BudgetExceeded');
    harness.clock.pass(30 * DAY);
    await harness.resync();
    expect(await chat()).toMatchObject({ currentSpend: '0', isActive: true, budgetResetDate: '2027-01-20T12:00:00Z' });
  });

  test('with a budget of zero, always', async () => {
    await working({ maxBudget: '0' });
    expect(await ready()).toBe('False BudgetExceeded');
  });

  test('when none of its models is served; if only some are not, ModelsReady reports them and the key works', async () => {
    await working({ models: ['small', 'withdrawn'] });
    expect(await ready()).toBe('True Ready');
    const { conditions } = await chat();
    expect(conditions?.find(({ type }) => type === 'ModelsReady')).toMatchObject({
      status: 'False',
      reason: 'ModelNotServed',
      message: expect.stringContaining('"withdrawn"'),
    });
    await editKey({ models: ['Small'] });
    await harness.resync();
    expect(await ready()).toBe('False ModelNotServed');
  });
});
