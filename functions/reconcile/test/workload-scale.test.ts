// Scale of gateways: as the instance specifies, and one process if only one is allowed.
import { beforeEach, describe, expect, test } from 'vitest';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createWorkloads } from '../../../test/reconcile/workloads.ts';
import { WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  harness.servedAt = 'nobody';
  await harness.apply(...makeSecrets());
});
const { redis, ready, message, part, edit, resyncs, running } = createWorkloads(() => harness);

describe('scale', () => {
  const spec = () => part('Deployment')?.spec as { replicas?: number; strategy: object };

  test('with a min below max is decided by an autoscaler, and its decision stays', async () => {
    await redis();
    await running({ type: 'Deployment', scale: { min: 2, max: 4 } });
    expect(part('HorizontalPodAutoscaler')).toMatchObject({ spec: { minReplicas: 2, maxReplicas: 4 } });
    expect(spec().replicas).toBe(2);
    await harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { spec: { replicas: 3 } });
    expect(await resyncs()).toEqual([]);
    await edit({ image: 'other:2' });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(spec().replicas).toBe(3);
    await edit({ scale: { min: 3, max: 3 } });
    expect(await resyncs()).toEqual(['delete HorizontalPodAutoscaler']);
    expect(spec().replicas).toBe(3);
    expect(await resyncs()).toEqual([]);
  });

  test('left to another autoscaler has no HorizontalPodAutoscaler, and keeps its replicas within min and max', async () => {
    await redis();
    await running({ type: 'Deployment', scale: { min: 2, max: 4 } });
    await edit({ scale: { min: 2, max: 4, autoscaler: 'None' } });
    expect(await resyncs()).toEqual(['delete HorizontalPodAutoscaler']);
    await harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { spec: { replicas: 3 } });
    await edit({ image: 'other:2', scale: { min: 2, max: 4, autoscaler: 'None' } });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(spec().replicas).toBe(3);
    await edit({ scale: { min: 1, max: 2, autoscaler: 'None' } });
    await resyncs();
    expect(spec().replicas).toBe(2);
  });

  const scaled = (replicas: number) =>
    harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { spec: { replicas } });

  /** Once: the first read of a Deployment in a run is its look, the second one belongs to the write. */
  const meanwhile = (verb: 'get' | 'apply', act: () => Promise<unknown>) => {
    let left = verb === 'get' ? 2 : 1;
    harness.cluster.inject(async (call) => {
      if (call.verb === verb && call.resource.kind === 'Deployment') left -= 1;
      if (left !== 0) return undefined;
      left -= 1;
      await act();
      return undefined;
    });
  };

  test.each([
    ['before the write reads the Deployment', 'get'],
    ['while it is written', 'apply'],
  ] as const)('that an autoscaler sets after the look of a run, %s, stays', async (_, verb) => {
    await redis();
    await running({ type: 'Deployment', scale: { min: 2, max: 10 } });
    await resyncs();
    meanwhile(verb, () => scaled(9));
    expect((await harness.resync()).actions).toEqual({});
    expect(spec().replicas).toBe(9);
    meanwhile(verb, () => scaled(4));
    await edit({ image: 'other:2', scale: { min: 2, max: 10 } });
    expect((await harness.resync()).actions).toMatchObject({ ApplyWorkload: 1 });
    expect(spec().replicas).toBe(4);
    meanwhile(verb, () => scaled(7));
    await harness.trigger('GatewayInstance', 'main');
    expect(spec().replicas).toBe(7);
    meanwhile('apply', () => scaled(12));
    await resyncs();
    expect(spec().replicas).toBe(10);
  });

  test('by requests in flight is a second metric of the autoscaler, in addition to processor time', async () => {
    await redis();
    await running({ type: 'Deployment', scale: { min: 1, max: 4, targetRequestsInFlight: 50 } });
    expect((part('HorizontalPodAutoscaler')?.spec as { metrics: unknown } | undefined)?.metrics).toEqual([
      { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } },
      {
        type: 'Pods',
        pods: {
          metric: { name: 'gateway_operator_requests_in_flight' },
          target: { type: 'AverageValue', averageValue: '50' },
        },
      },
    ]);
  });

  test('with the memory store is one process, never two at a time', async () => {
    await running();
    expect(spec()).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    await redis();
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(spec().strategy).toMatchObject({ type: 'RollingUpdate' });
  });

  test.each([{ min: 2 }, { max: 2 }, { min: 1, max: 3 }])(
    '%j with the memory store is refused, and what runs is left',
    async (scale) => {
      await running();
      await edit({ scale });
      expect(await resyncs()).toEqual([]);
      expect(await ready()).toBe('False StoreNotShared');
      expect(await message('Ready')).toMatch(/Redis or Upstash.*or scale to 1/);
      expect(spec().replicas).toBe(1);
      await redis();
      expect(await resyncs()).not.toEqual([]);
    },
  );

  test('of the memory store outside the cluster is refused unless the platform runs one process', async () => {
    harness.manyProcesses = true;
    await harness.apply(makeInstance({ workload: { type: 'External', url: 'https://llm.example.com' } }));
    await harness.resync();
    expect(await ready()).toBe('False StoreNotShared');
    harness.manyProcesses = false;
    await harness.resync();
    expect(await ready()).toBe('True Ready');
  });
});
