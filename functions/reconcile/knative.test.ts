// Is a gateway run by Knative where that is wanted, and said to be ready when it serves?
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { runKnative } from '../../test/reconcile/controllers.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../test/reconcile/objects.ts';
import { createWorkloads } from '../../test/reconcile/workloads.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  bed.servedAt = 'nobody';
  bed.knative = true;
  await bed.apply(...makeSecrets(), makeSecret('store', { host: 'redis', port: '6379', password: '' }));
});

const { main, ready, message, there } = createWorkloads(() => bed);

describe('Knative', () => {
  test('makes one Knative Service, and the instance is ready where it says that it serves', async () => {
    await bed.apply(makeInstance({ workload: { type: 'Knative' } }), makeKey());
    await bed.sweep();
    expect(there()).toEqual(['KnativeService']);
    expect(await ready()).toBe('False WorkloadNotReady');
    await runKnative(bed);
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
    expect(await main()).toMatchObject({
      url: 'http://main-serving.default.svc.cluster.local',
      workloadType: 'Knative',
      snapshotHash: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
    const before = bed.cluster.objects();
    for (let turn = 0; turn < 3; turn += 1) expect((await bed.sweep()).actions).toEqual({});
    expect(bed.cluster.objects()).toEqual(before);
  });

  test('tells why no revision comes up, and while an earlier one serves the instance stays ready', async () => {
    await bed.apply(makeInstance({ workload: { type: 'Knative' } }));
    await bed.sweep();
    const failed = { type: 'ConfigurationsReady', status: 'False', reason: 'RevisionFailed', message: 'no such image' };
    const notReady = { type: 'Ready', status: 'False', reason: 'RevisionFailed', message: 'not ready' };
    const routes = (status: string) => ({ type: 'RoutesReady', status });
    await runKnative(bed, 'main-serving', [failed, notReady, routes('Unknown')]);
    await bed.sweep();
    expect(await ready()).toBe('False RevisionFailed');
    expect(await message('Ready')).toContain('no such image');
    await runKnative(bed);
    await bed.sweep();
    const { snapshotHash } = await main();
    await bed.edit(gatewayInstances, 'main', { spec: { routing: { retries: 5 } } });
    await bed.sweep();
    await runKnative(bed, 'main-serving', [failed, notReady, routes('True')]);
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('no such image');
    expect((await main()).snapshotHash).toBe(snapshotHash);
  });

  test('with the memory store is refused: its processes come and go', async () => {
    await bed.apply(...makeSecrets(), makeInstance({ workload: { type: 'Knative', scale: { max: 1 } } }));
    await bed.sweep();
    expect(await ready()).toBe('False StoreNotShared');
    expect(await message('Ready')).toMatch(/Redis or Upstash.*set spec.workload.type to Deployment/);
    expect(there()).toEqual([]);
  });

  test('that is not installed says so, and is made once it is', async () => {
    bed.knative = false;
    await bed.apply(makeInstance({ workload: { type: 'Knative' } }), makeKey());
    await bed.sweep();
    expect(await ready()).toBe('False KnativeNotInstalled');
    expect(await bed.works(await bed.value('chat-key'))).toBe(true);
    bed.knative = true;
    await bed.sweep();
    expect(there()).toEqual(['KnativeService']);
  });
});
