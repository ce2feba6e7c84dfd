// Gateways on Knative: their objects, and when their instance is ready.
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { runKnative } from '../../../test/reconcile/controllers.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createWorkloads } from '../../../test/reconcile/workloads.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  harness.servedAt = 'nobody';
  harness.knative = true;
  await harness.apply(...makeSecrets(), makeSecret('store', { host: 'redis', port: '6379', password: '' }));
});

const { main, ready, message, there } = createWorkloads(() => harness);

describe('Knative', () => {
  test('gets one Knative Service, and the instance is ready at the address that Knative reports', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Knative' } }), makeKey());
    await harness.resync();
    expect(there()).toEqual(['KnativeService']);
    expect(await ready()).toBe('False WorkloadNotReady');
    await runKnative(harness);
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await main()).toMatchObject({
      url: 'http://main-serving.default.svc.cluster.local',
      workloadType: 'Knative',
      snapshotHash: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    const before = harness.cluster.objects();
    for (let turn = 0; turn < 3; turn += 1) expect((await harness.resync()).actions).toEqual({});
    expect(harness.cluster.objects()).toEqual(before);
  });

  test('reports why no revision starts; while an earlier revision serves, the instance stays ready', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Knative' } }));
    await harness.resync();
    const failed = { type: 'ConfigurationsReady', status: 'False', reason: 'RevisionFailed', message: 'no such image' };
    const notReady = { type: 'Ready', status: 'False', reason: 'RevisionFailed', message: 'not ready' };
    const routes = (status: string) => ({ type: 'RoutesReady', status });
    await runKnative(harness, 'main-serving', [failed, notReady, routes('Unknown')]);
    await harness.resync();
    expect(await ready()).toBe('False RevisionFailed');
    expect(await message('Ready')).toContain('no such image');
    await runKnative(harness);
    await harness.resync();
    const { snapshotHash } = await main();
    await harness.edit(gatewayInstances, 'main', { spec: { routing: { retries: 5 } } });
    await harness.resync();
    await runKnative(harness, 'main-serving', [failed, notReady, routes('True')]);
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('no such image');
    expect((await main()).snapshotHash).toBe(snapshotHash);
  });

  test('with the memory store is refused, because it starts and stops processes', async () => {
    await harness.apply(...makeSecrets(), makeInstance({ workload: { type: 'Knative', scale: { max: 1 } } }));
    await harness.resync();
    expect(await ready()).toBe('False StoreNotShared');
    expect(await message('Ready')).toMatch(/Redis or Upstash.*set spec.workload.type to Deployment/);
    expect(there()).toEqual([]);
  });

  test('that is not installed is reported, and the Knative Service is created after its installation', async () => {
    harness.knative = false;
    await harness.apply(makeInstance({ workload: { type: 'Knative' } }), makeKey());
    await harness.resync();
    expect(await ready()).toBe('False KnativeNotInstalled');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
    harness.knative = true;
    await harness.resync();
    expect(there()).toEqual(['KnativeService']);
  });
});
