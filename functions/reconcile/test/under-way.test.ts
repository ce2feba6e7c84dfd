// The report counts objects that change without another request, so that the caller sends the request again.
import { beforeEach, expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { runDeployment } from '../../../test/reconcile/controllers.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../limits.ts';
import { WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets());
});

test('a gateway that starts is under way until it is ready, also in a trigger for its key', async () => {
  harness.servedAt = 'nobody';
  await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
  expect(await harness.resync()).toMatchObject({ underWay: 1 });
  expect(await harness.trigger('VirtualKey', 'chat')).toMatchObject({ underWay: 1 });
  await runDeployment(harness);
  expect(await harness.trigger('GatewayInstance', 'main')).not.toHaveProperty('underWay');
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  expect(await harness.resync()).not.toHaveProperty('underWay');
});

test('a rollout that is stuck, and a paused instance, wait for a person: nothing is under way', async () => {
  harness.servedAt = 'nobody';
  await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
  await harness.resync();
  const conditions = [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'late.' }];
  await harness.editStatus(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { conditions });
  expect(await harness.resync()).not.toHaveProperty('underWay');
  await harness.editStatus(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { conditions: [] });
  expect(await harness.resync()).toMatchObject({ underWay: 1 });
  await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
  expect(await harness.resync()).not.toHaveProperty('underWay');
});

test('a deletion that waits for its database is under way until the key is released', async () => {
  await harness.apply(makeInstance(), makeKey());
  await harness.resync();
  harness.refuse(true);
  await harness.remove(virtualKeys, 'chat');
  expect(await harness.resync()).toMatchObject({ underWay: 1 });
  harness.clock.pass(21_000);
  expect(await harness.resync()).not.toHaveProperty('underWay');
});

test('keys that do not converge, however many, are not under way after each was tried', async () => {
  harness = createHarness({
    limits: { ...PROCESS_LIMITS, parts: 10, changedKeys: 5, secrets: 5, lookUps: 5, triggers: 1, resyncs: 1 },
  });
  await harness.apply(...makeSecrets(), makeInstance());
  const names = Array.from({ length: 12 }, (_, index) => `k${index}`);
  await harness.apply(...names.map((name) => makeSecret(`${name}-key`, { key: 'of somebody else' })));
  await harness.apply(...names.map((name) => makeKey({}, name)));
  expect(await harness.resync()).toMatchObject({ deferredKeys: 7, underWay: 7 });
  expect(await harness.resync()).toMatchObject({ deferredKeys: 7, underWay: 2 });
  const third = await harness.resync();
  expect(third).toMatchObject({ deferredKeys: 7 });
  expect(third).not.toHaveProperty('underWay');
  for (const name of names) expect(await harness.ready(virtualKeys, name)).toBe('False SecretConflict');
});

test('an object that a trigger names and that is not stored yet is under way; a deleted object is not', async () => {
  await harness.apply(makeInstance());
  await harness.resync();
  expect(await harness.trigger('VirtualKey', 'chat')).toMatchObject({ underWay: 1, notFound: true });
  await harness.apply(makeKey());
  const found = await harness.trigger('VirtualKey', 'chat');
  expect([found.underWay, found.notFound]).toEqual([undefined, undefined]);
  await harness.remove(virtualKeys, 'chat');
  expect(await harness.trigger('VirtualKey', 'chat')).not.toHaveProperty('underWay');
});
