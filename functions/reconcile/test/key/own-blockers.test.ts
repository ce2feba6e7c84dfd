// A cause that blocks an object and is in the object itself has its effect everywhere, whatever the cause is. Each test
// puts another cause, `CAUSE`, in the place of that of a reason: code that reads `spec.blocked` itself does not see it.
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { OwnBlockingReason } from '#core/conditions/reasons.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { FINALIZER } from '#crds/names/group.ts';
import { createHarness, type Harness } from '../../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../../test/reconcile/objects.ts';
import { OWN_BLOCKERS } from '../../key/own-blockers.ts';
import { BLOCKED_ANNOTATION } from '../../key/secret-shape.ts';
import { PROCESS_LIMITS } from '../../limits.ts';

const CAUSE = { spec: { maxBudget: '13' } };
const FOREIGN = 'example.com/theirs';
const TENANT = 'tenant';
const CHARGED = { userRef: { name: 'alice' }, teamRef: { name: 'research' } };

describe.each(Object.keys(OWN_BLOCKERS) as OwnBlockingReason[])('an object with the cause of %s', (reason) => {
  let harness: Harness;
  let value: string | undefined;
  const start = async (limits: Partial<typeof PROCESS_LIMITS> = {}, spec: object = {}) => {
    harness = createHarness({ limits: { ...PROCESS_LIMITS, ...limits } });
    await harness.apply(...makeSecrets(), makeInstance(), makeTeam({}, 'research', TENANT));
    await harness.apply(makeUser({ autoCreateKey: false }, 'alice', TENANT));
    await harness.apply(makeKey({ ...CHARGED, ...spec }, 'chat', TENANT));
    await harness.resync();
    value = await harness.value('chat-key', TENANT);
    expect(await harness.policy(value)).toMatchObject({ blocked: false });
  };
  const cause = () => harness.edit(virtualKeys, 'chat', CAUSE, TENANT);
  const remove = () => harness.remove(virtualKeys, 'chat', TENANT);
  const isBlocked = async () => (await harness.policy(value))?.blocked;
  const allow = (allowedNamespaces: object) => harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces } });

  beforeEach(() => {
    const find = ({ spec }: { readonly spec: object }) =>
      'maxBudget' in spec && spec.maxBudget === CAUSE.spec.maxBudget ? 'it has the cause' : undefined;
    const spy = vi.spyOn(OWN_BLOCKERS, reason).mockImplementation(find);
    return () => spy.mockRestore();
  });

  test('is blocked, and shows the reason', async () => {
    await start();
    await cause();
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat', TENANT)).toBe(`False ${reason}`);
    expect(await harness.policy(value)).toMatchObject({ blocked: true });
    await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '10' } }, TENANT);
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat', TENANT)).toBe('True Ready');
    expect(await isBlocked()).toBe(false);
  });

  test('is not reported to clients as a missing owner, also if one is missing', async () => {
    await start();
    await harness.remove(teams, 'research', TENANT);
    await cause();
    await harness.resync();
    expect(await harness.policy(value)).toMatchObject({ blocked: true });
    expect((await harness.policy(value))?.missingOwnerReason).toBeUndefined();
  });

  test.each([
    [users, 'alice'],
    [teams, 'research'],
  ] as const)('blocks the keys of its $kind', async (kind, name) => {
    await start();
    await harness.edit(kind, name, CAUSE, TENANT);
    await harness.resync();
    expect(await harness.ready(kind, name, TENANT)).toBe(`False ${reason}`);
    expect(await harness.ready(virtualKeys, 'chat', TENANT)).toBe(`False ${reason}`);
    const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    const claim = (await harness.database().claims(uid)).find(({ holder }) => holder.name === name);
    expect(claim?.policy?.blocked).toBe(true);
  });

  test('is retained blocked if it is deleted before a resync', async () => {
    await start({}, { deletionPolicy: 'Retain' });
    await cause();
    await remove();
    await harness.resync();
    expect(await harness.get(virtualKeys, 'chat', TENANT)).toBeUndefined();
    expect(await harness.policy(value)).toMatchObject({ blocked: true, retained: 'chat-key' });
  });

  test('is retained blocked by its Secret if it is deleted while the database is away', async () => {
    await start({}, { deletionPolicy: 'Retain' });
    harness.refuse(true);
    await cause();
    await remove();
    harness.clock.pass(60_000);
    await harness.resync();
    await harness.resync();
    expect(await harness.get(virtualKeys, 'chat', TENANT)).toBeUndefined();
    const { annotations } = (await harness.get(RESOURCES.secrets, 'chat-key', TENANT))?.metadata ?? {};
    expect(annotations).toMatchObject({ [BLOCKED_ANNOTATION]: 'true' });
    harness.refuse(false);
    await harness.resync();
    expect(await harness.policy(value)).toMatchObject({ blocked: true, retained: 'chat-key' });
  });

  test('is blocked if it is retained and another finalizer keeps it', async () => {
    await start({}, { deletionPolicy: 'Retain' });
    await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [FINALIZER, FOREIGN] } }, TENANT);
    await remove();
    await harness.resync();
    expect(await harness.policy(value)).toMatchObject({ blocked: false, retained: 'chat-key' });
    await cause();
    await harness.resync();
    expect(await isBlocked()).toBe(true);
  });

  test('is blocked while the labels of its namespace cannot be read, and shows the reason', async () => {
    await start();
    await harness.edit(users, 'alice', CAUSE, TENANT);
    await allow({ from: 'Selector', selector: { matchLabels: { llm: 'allowed' } } });
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'get' && resource === RESOURCES.namespaces) throw new Error('refused');
    });
    await cause();
    await harness.trigger('VirtualKey', 'chat', TENANT);
    const ready = () => harness.ready(virtualKeys, 'chat', TENANT);
    expect(await isBlocked()).toBe(true);
    expect(await ready()).toBe(`False ${reason}`);
    expect(await harness.status(virtualKeys, 'chat', TENANT)).toMatchObject({ isActive: false });
    expect((await harness.resync()).failed).toEqual({});
    expect(await harness.ready(users, 'alice', TENANT)).toBe(`False ${reason}`);
    expect(await harness.status(gatewayInstances, 'main')).toMatchObject({ keys: { total: 1, active: 0 } });
    expect((await harness.resync()).actions).toEqual({});
    // The policy stays blocked while the labels are unknown, so the status does too.
    await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '10' } }, TENANT);
    await harness.edit(users, 'alice', { spec: { maxBudget: '10' } }, TENANT);
    await harness.resync();
    expect(await isBlocked()).toBe(true);
    expect(await ready()).toBe(`False ${reason}`);
    harness.cluster.inject(() => undefined);
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'All' } } });
    await harness.resync();
    expect(await isBlocked()).toBe(false);
    expect(await ready()).toBe('True Ready');
  });

  test('is blocked in a namespace whose objects are not loaded', async () => {
    await start({ objectBytes: 100_000 });
    const secretTemplate = { data: { a: 'ä'.repeat(4000), b: '→'.repeat(4000), c: '→'.repeat(4000) } };
    for (let index = 0; index < 8; index += 1)
      await harness.apply(makeKey({ secretTemplate }, `large-${index}`, TENANT));
    await cause();
    expect((await harness.resync()).oversizedNamespaces).toHaveLength(1);
    expect(await isBlocked()).toBe(true);
  });

  test('is blocked while it is deferred', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `other-${index}`);
    await start({ changedKeys: 5, secrets: 5 });
    await harness.apply(...names.map((name) => makeKey({}, name, TENANT)));
    for (let run = 0; run < 6; run += 1) await harness.resync();
    const all = ['chat', ...names];
    const values = await Promise.all(all.map((name) => harness.value(`${name}-key`, TENANT)));
    for (const name of all) await harness.edit(virtualKeys, name, CAUSE, TENANT);
    await harness.resync();
    const policies = await Promise.all(values.map((one) => harness.policy(one)));
    expect(policies.map((policy) => policy?.blocked)).toEqual(all.map(() => true));
    // Some had no turn: only their block is new.
    expect(new Set(policies.map((policy) => policy?.budget?.limit))).toEqual(new Set(['10000000000', '13000000000']));
  });
});
