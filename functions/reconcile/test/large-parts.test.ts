// What does a run keep of objects that others fill, of those that it looks for by name or label?
import { expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { INSTANCE_LABEL } from '#crds/names/group.ts';
import { createHarness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeSecrets } from '../../../test/reconcile/objects.ts';
import { toLivePart } from '../workload/live-part.ts';

const texts = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a/${index}`, 'x']));

test('of a Deployment of 1.5 MB it keeps less than 4 KB', () => {
  const env = Array.from({ length: 20_000 }, (_, index) => ({ name: `E${index}` }));
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
  const kept = JSON.stringify(toLivePart(huge, 'instance', sha256));
  expect(JSON.stringify(huge).length).toBeGreaterThan(1_500_000);
  expect(kept.length).toBeLessThan(4096);
});

test('of ConfigMaps with the label of its snapshots it reads ten, and finds its own among more', async () => {
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
    { verb: 'get', body: { metadataOnly: true } },
  ]);
});
