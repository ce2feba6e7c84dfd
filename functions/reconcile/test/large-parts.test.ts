// How much a run keeps of large objects that it reads by name or label.
import { expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { INSTANCE_LABEL } from '#crds/names/group.ts';
import { createHarness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { toOwnObjectView } from '../observe/objects.ts';
import { toLiveWorkloadObject } from '../workload/live-object.ts';

const texts = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a/${index}`, 'x']));
const named = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`gateway-operator.dev/${index}`, 'x']));
const env = Array.from({ length: 20_000 }, (_, index) => ({ name: `E${index}` }));

test('a run keeps less than 4 KB of a Deployment of 1.5 MB', () => {
  const condition = { type: 'Available', status: 'True', reason: 'x', message: 'y' };
  const huge: KubeObject = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: {
      ...{ name: 'main-gateway', namespace: 'default', uid: 'u', annotations: texts(10_000), labels: texts(10_000) },
      ownerReferences: env.map(({ name }) => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid: name })),
    },
    spec: { template: { metadata: { annotations: texts(10_000) }, spec: { containers: [{ name: 'c', env }] } } },
    status: { conditions: Array.from({ length: 1000 }, () => condition) },
  };
  const kept = JSON.stringify(toLiveWorkloadObject(huge, 'instance', sha256));
  expect(JSON.stringify(huge).length).toBeGreaterThan(1_500_000);
  expect(kept.length).toBeLessThan(4096);
});

test.each([
  ['labels', { labels: named(10_000) }],
  ['annotations', { annotations: named(10_000) }],
  ['owners', { ownerReferences: env.map(({ name }) => ({ apiVersion: 'v1', kind: 'User', name, uid: name })) }],
  ['finalizers', { finalizers: Object.keys(named(10_000)) }],
])('a run keeps less than 8 KB of a VirtualKey with very many %s', (_, more) => {
  const key = makeKey();
  const own = toOwnObjectView({ ...key, metadata: { ...key.metadata, ...more } });
  expect(JSON.stringify(own).length).toBeLessThan(8192);
});

test('the status of a VirtualKey with very many finalizers reports them, and none of them is removed', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  await harness.resync();
  const finalizers = ['gateway-operator.dev/cleanup', ...Object.keys(named(1000))];
  await harness.edit(virtualKeys, 'chat', { metadata: { finalizers } });
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  expect((await harness.get(virtualKeys, 'chat'))?.metadata.finalizers).toEqual(finalizers);
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False InvalidSpec');
  await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: finalizers.slice(0, 2) } });
  await harness.resync();
  expect((await harness.get(virtualKeys, 'chat'))?.metadata.finalizers).toEqual(finalizers.slice(1, 2));
});

test('a run reads ten ConfigMaps with the label of its snapshots, and finds its own among more', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.resync();
  const { uid = '' } = (await harness.get(gatewayInstances, 'main'))?.metadata ?? {};
  const labels = { [INSTANCE_LABEL]: uid };
  for (let index = 0; index < 90; index += 1) {
    const metadata = { name: `a-${index}`, namespace: 'default', labels };
    await harness.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata });
  }
  harness.cluster.calls.length = 0;
  expect((await harness.resync()).actions).toEqual({});
  const read = harness.cluster.calls.filter(({ resource }) => resource === RESOURCES.configMaps);
  expect(read).toMatchObject([
    { verb: 'list', body: { limit: 10, metadataOnly: true } },
    { verb: 'list', body: { fieldSelector: expect.stringMatching(/^metadata\.name=main-/), metadataOnly: true } },
  ]);
});
