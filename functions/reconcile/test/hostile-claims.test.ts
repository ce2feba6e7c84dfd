// The requests of a run are bounded, whatever objects the database of an instance names.
import { beforeEach, expect, test } from 'vitest';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import type { Claim } from '#core/ports/registry.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness, type HarnessOptions } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../limits.ts';

let harness: Harness;
const begin = async (options: HarnessOptions = {}) => {
  harness = createHarness(options);
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.resync();
};
beforeEach(() => begin());

const claimOf = (index: number, more: Partial<Claim> = {}): Claim => ({
  ...{ scopeId: `scope-${index}`, kind: 'key', alias: `alias-${index}`, anchor: 0, values: [] },
  holder: { uid: `uid-${index}`, namespace: 'foreign', name: `key-${index}` },
  ...more,
});
const retained = (index: number, secret: string) =>
  claimOf(index, { policy: { scopeId: `scope-${index}`, retained: secret } as NonNullable<Claim['policy']> });
/** Writes claims of these objects into the database. */
const tell = (claims: ReadonlyArray<Claim>) => {
  Object.assign(harness.database(), { claims: async () => claims });
  harness.cluster.calls.length = 0;
};
const asked = () => harness.cluster.calls.filter(({ verb, namespace }) => verb === 'get' && namespace === 'foreign');

test('if a database names 20,000 objects, a run looks up 5,000 of them, and the next run others', async () => {
  tell(Array.from({ length: 20_000 }, (_, index) => claimOf(index)));
  await harness.resync();
  const first = new Set(asked().map(({ name }) => name));
  expect(first.size).toBe(5000);
  harness.cluster.calls.length = 0;
  harness.clock.pass(60_000);
  await harness.resync();
  expect(asked()).toHaveLength(5000);
  expect(asked().filter(({ name }) => first.has(name ?? ''))).toEqual([]);
});

test('a Secret that all claims name is read once, without its data', async () => {
  await harness.apply(makeSecret('large', { large: 'x'.repeat(1000) }, 'foreign'));
  tell(Array.from({ length: 1000 }, (_, index) => retained(index, 'large')));
  await harness.resync();
  expect(asked()).toMatchObject([{ resource: RESOURCES.secrets, name: 'large', body: { metadataOnly: true } }]);
});

test('no output shows whether a Secret of others exists', async () => {
  await harness.apply(makeKey({}, 'key', 'foreign'));
  await harness.resync();
  await harness.apply(makeSecret('theirs', { a: 'b' }, 'foreign'));
  tell([retained(0, 'theirs'), retained(1, 'nothing'), retained(2, 'key-key')]);
  const plan = await harness.dryRun();
  expect(plan.filter(({ action }) => action === 'RetireScope')).toHaveLength(3);
});

test('the deletion guard also counts claims that were not searched yet', async () => {
  await begin({ limits: { ...PROCESS_LIMITS, lookUps: 5 } });
  await harness.apply(...Array.from({ length: 30 }, (_, index) => makeKey({}, `k${index}`)));
  await harness.resync();
  for (let index = 0; index < 20; index += 1) {
    await harness.edit(virtualKeys, `k${index}`, { metadata: { finalizers: [] } });
    await harness.remove(virtualKeys, `k${index}`);
  }
  expect((await harness.resync()).guarded).toMatchObject([{ action: 'RetireScope', count: 20, total: 30 }]);
  expect(await harness.aliases()).toHaveLength(30);
  await harness.edit(gatewayInstances, 'main', {
    metadata: { annotations: { 'instance.gateway-operator.dev/deletion-share': '80%' } },
  });
  for (let run = 0; run < 4; run += 1) expect((await harness.resync()).actions).toMatchObject({ RetireScope: 5 });
  expect(await harness.aliases()).toHaveLength(10);
});

test('look-ups that take too long end the observation of their instance, not the run', async () => {
  const pending = new Set<() => void>();
  const through = (memory: Cluster): Cluster => ({
    ...memory,
    get: (resource, namespace, ...rest) => {
      if (namespace !== 'foreign') return memory.get(resource, namespace, ...rest);
      for (const end of pending) end();
      return new Promise(() => undefined);
    },
  });
  const timer = (_: number, end: () => void) => {
    pending.add(end);
    return () => pending.delete(end);
  };
  await begin({ through, timer });
  tell([claimOf(0)]);
  await harness.resync();
  expect(JSON.stringify(harness.log.lines)).toContain('cannot read an instance');
});
