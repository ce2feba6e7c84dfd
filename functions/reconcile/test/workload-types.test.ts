// The type of a workload: decided once, and changed without an interruption.
import { beforeEach, describe, expect, test } from 'vitest';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { acceptRoute, addressIngress, runDeployment, runKnative } from '../../../test/reconcile/controllers.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createWorkloads } from '../../../test/reconcile/workloads.ts';
import { WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';

const ELSEWHERE = 'https://llm.example.com';
let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  harness.servedAt = 'nobody';
  harness.knative = true;
  await harness.apply(...makeSecrets(), makeSecret('store', { host: 'redis', port: '6379', password: '' }));
});

const { main, ready, message, part, there } = createWorkloads(() => harness);
const workload = (spec: object) =>
  harness.edit(gatewayInstances, 'main', { spec: { workload: { url: null, scale: null, ...spec } } });

/** Makes discovery fail. */
const undiscovered = () =>
  harness.cluster.inject(({ verb, resource, name }) => {
    if (verb === 'get' && resource === WORKLOAD_OBJECTS.KnativeService && name === undefined)
      throw new ClusterError('the API server is too busy', 503);
    return undefined;
  });

describe('Auto', () => {
  test.each([
    [true, 'Knative', ['KnativeService']],
    [false, 'Deployment', ['Deployment', 'Service', 'PodDisruptionBudget']],
  ] as const)('with Knative installed (%s) is %s', async (knative, type, parts) => {
    harness.knative = knative;
    await harness.apply(makeInstance());
    await harness.resync();
    expect(await main()).toMatchObject({ workloadType: type });
    expect(there()).toEqual(parts);
  });

  test('is decided once: neither later changes of the cluster nor a failed discovery change it', async () => {
    harness.knative = false;
    await harness.apply(makeInstance());
    await harness.resync();
    await runDeployment(harness);
    await harness.resync();
    const before = harness.cluster.objects();
    harness.knative = true;
    expect((await harness.resync()).actions).toEqual({});
    undiscovered();
    expect(await harness.resync()).toMatchObject({ actions: {}, failed: {} });
    harness.restart();
    expect(await harness.resync()).toMatchObject({ actions: {}, failed: {} });
    expect(harness.cluster.objects()).toEqual(before);
  });

  test('whose discovery fails before the decision creates nothing, reports it, and tries again', async () => {
    undiscovered();
    await harness.apply(makeInstance(), makeKey());
    expect((await harness.resync()).failed).toEqual({});
    expect(there()).toEqual([]);
    expect(await ready()).toBe('False DiscoveryFailed');
    expect(await main()).not.toHaveProperty('workloadType');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
    harness.cluster.inject(() => undefined);
    await harness.resync();
    expect(await main()).toMatchObject({ workloadType: 'Knative' });
  });

  test('keeps the type that the spec had before', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await harness.resync();
    await runDeployment(harness);
    await harness.resync();
    await workload({ type: 'Auto' });
    const { ApplyWorkload: made, DeleteWorkload: removed } = (await harness.resync()).actions;
    expect([made, removed]).toEqual([undefined, undefined]);
    expect(await main()).toMatchObject({ workloadType: 'Deployment' });
  });
});

describe('another type', () => {
  const deployed = async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment', scale: { min: 1, max: 3 } } }), makeKey());
    await harness.resync();
    await runDeployment(harness);
    await harness.resync();
    expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget', 'HorizontalPodAutoscaler']);
  };

  test('starts beside the previous one, which serves until then and is removed afterwards', async () => {
    await deployed();
    const value = await harness.value('chat-key');
    await workload({ type: 'Knative' });
    await harness.resync();
    expect(there()).toEqual([
      'Deployment',
      'Service',
      'PodDisruptionBudget',
      'HorizontalPodAutoscaler',
      'KnativeService',
    ]);
    expect(await main()).toMatchObject({ url: 'http://main-gateway.default.svc', workloadType: 'Knative' });
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('serves while the new workload starts');
    expect((await harness.resync()).actions).toEqual({});
    await runKnative(harness);
    await harness.resync();
    expect(there()).toEqual(['KnativeService']);
    expect(await main()).toMatchObject({ url: 'http://main-serving.default.svc.cluster.local' });
    await workload({ type: 'Deployment' });
    await harness.resync();
    expect(await main()).toMatchObject({ url: 'http://main-serving.default.svc.cluster.local' });
    await runDeployment(harness);
    await harness.resync();
    expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget']);
    expect((await harness.resync()).actions).toEqual({});
    expect(await harness.value('chat-key')).toBe(value);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('starts beside the previous one also if an earlier version of the operator wrote no internalURL', async () => {
    await deployed();
    await harness.editStatus(gatewayInstances, 'main', { internalURL: null });
    await workload({ type: 'Knative' });
    await harness.resync();
    const url = 'http://main-gateway.default.svc';
    expect(await main()).toMatchObject({ url, internalURL: url });
  });

  test('outside the cluster removes the objects in the cluster immediately', async () => {
    await deployed();
    await workload({ type: 'External', url: ELSEWHERE });
    expect((await harness.resync()).actions).toMatchObject({ DeleteWorkload: 4 });
    expect(there()).toEqual([]);
    expect(await main()).toMatchObject({ url: ELSEWHERE, workloadType: 'External' });
    expect((await harness.resync()).actions).toEqual({});
  });

  test('never removes objects of others, nor a new object with the same name', async () => {
    await deployed();
    await harness.edit(WORKLOAD_OBJECTS.Service, 'main-gateway', { metadata: { ownerReferences: [] } });
    harness.cluster.inject(async ({ verb, resource, name }) => {
      if (verb !== 'delete' || resource !== WORKLOAD_OBJECTS.Deployment) return undefined;
      harness.cluster.inject(() => undefined);
      await harness.remove(WORKLOAD_OBJECTS.Deployment, name ?? '');
      const { apiVersion, kind } = { apiVersion: 'apps/v1', kind: 'Deployment' };
      const metadata = { name: 'main-gateway', namespace: 'default' };
      await harness.cluster.create(WORKLOAD_OBJECTS.Deployment, { apiVersion, kind, metadata, spec: { theirs: true } });
      return undefined;
    });
    await workload({ type: 'External', url: ELSEWHERE });
    await harness.resync();
    expect(there()).toEqual(['Deployment', 'Service']);
    expect(part('Deployment')).toMatchObject({ spec: { theirs: true } });
    expect(await ready()).toBe('True Ready');
    expect((await harness.resync()).actions).toEqual({});
  });

  test('that cannot be created leaves the previous one serving', async () => {
    await deployed();
    harness.knative = false;
    await workload({ type: 'Knative' });
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toMatch(/serves while the new workload starts.*not installed/);
    expect(there()).toContain('Deployment');
  });
});

/** Prepares a change of the workload. The next run dies, or overlaps with another run. */
const scenarios: ReadonlyArray<readonly [string, () => Promise<void>, () => Promise<void>]> = [
  [
    'a Deployment is to be created',
    async () => harness.apply(makeInstance({ workload: { type: 'Deployment', scale: { min: 1, max: 3 } } }), makeKey()),
    async () => {
      expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget', 'HorizontalPodAutoscaler']);
    },
  ],
  [
    'the models changed',
    async () => {
      await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
      await harness.resync();
      await runDeployment(harness);
      await harness.resync();
      await harness.edit(gatewayInstances, 'main', { spec: { routing: { retries: 7 } } });
    },
    async () => {
      await runDeployment(harness);
      await harness.resync();
      const maps = harness.cluster.objects(RESOURCES.configMaps).map(({ metadata }) => metadata.name);
      expect(maps).toContain(`main-${(await main()).snapshotHash}`);
      expect(JSON.stringify(part('Deployment'))).toContain(`main-${(await main()).snapshotHash}`);
    },
  ],
  [
    'a Knative Service that serves replaces a Deployment',
    async () => {
      await harness.apply(makeInstance({ workload: { type: 'Deployment', scale: { min: 1, max: 3 } } }), makeKey());
      await harness.resync();
      await runDeployment(harness);
      await harness.resync();
      await workload({ type: 'Knative' });
      await harness.resync();
      await runKnative(harness);
    },
    async () => {
      expect(there()).toEqual(['KnativeService']);
      expect(await main()).toMatchObject({ workloadType: 'Knative' });
    },
  ],
  [
    'an Ingress is to be created',
    async () => {
      await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
      await harness.resync();
      await runDeployment(harness);
      await harness.resync();
      await harness.edit(gatewayInstances, 'main', { spec: { ingress: { host: 'old.example.com' } } });
    },
    async () => {
      expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget', 'Ingress']);
      expect(await main()).toMatchObject({ url: 'http://main-gateway.default.svc' });
    },
  ],
  [
    'an HTTPRoute that works replaces an Ingress',
    async () => {
      const spec = { workload: { type: 'Deployment' }, ingress: { host: 'old.example.com' } };
      await harness.apply(makeInstance(spec), makeKey());
      await harness.resync();
      await runDeployment(harness);
      await harness.resync();
      await addressIngress(harness);
      await harness.resync();
      const httpRoute = { parentRefs: [{ name: 'public' }], hostnames: ['llm.example.com'] };
      await harness.edit(gatewayInstances, 'main', { spec: { ingress: null, httpRoute } });
      await harness.resync();
      await acceptRoute(harness);
    },
    async () => {
      expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget', 'HTTPRoute']);
      expect(await main()).toMatchObject({ url: 'https://llm.example.com' });
    },
  ],
];
const isWrite = (verb: string) => verb !== 'get' && verb !== 'list';

describe.each(scenarios)('%s', (_, prepare, check) => {
  /** The laws after any accident: the next run converges, and the one after that writes nothing. */
  const expectConverged = async () => {
    harness.cluster.inject(() => undefined);
    harness.restart();
    expect((await harness.resync()).failed).toEqual({});
    await check();
    await harness.resync();
    const quiet = harness.writes();
    expect((await harness.resync()).actions).toEqual({});
    expect(harness.writes()).toBe(quiet);
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
  };
  const again = async () => {
    harness = createHarness();
    harness.servedAt = 'nobody';
    harness.knative = true;
    await harness.apply(...makeSecrets(), makeSecret('store', { host: 'redis', port: '6379', password: '' }));
    await prepare();
  };

  test('and the run dies at any of its writes: one more run converges', async () => {
    for (const when of ['before', 'after'] as const) {
      let died = true;
      for (let step = 1; died; step += 1) {
        await again();
        let count = 0;
        died = false;
        harness.cluster.inject(({ verb }) => {
          if (!isWrite(verb)) return undefined;
          count += 1;
          if (count === step) died = true;
          if (count === step && when === 'after') return 'lost';
          if (died) throw new Error('killed');
          return undefined;
        });
        await harness.resync();
        await expectConverged();
      }
    }
  });

  test('and two runs overlap at every step: each object exists once, and nothing superfluous is left', async () => {
    for (let tosses = 0; tosses < 25; tosses += 1) {
      await again();
      let toss = tosses * 7919 * 31;
      harness.cluster.inject(async () => {
        const waits = toss % 3;
        toss = Math.floor(toss / 3);
        for (let wait = 0; wait < waits * 4; wait += 1) await Promise.resolve();
        if (waits === 2) await new Promise<void>((resolve) => setImmediate(resolve));
        return undefined;
      });
      await Promise.all([harness.resync(), harness.trigger('GatewayInstance', 'main'), harness.resync()]);
      await expectConverged();
    }
  });

  test('a dry run lists the first plan of the run, and changes nothing', async () => {
    await again();
    const writes = harness.writes();
    const planned = await harness.dryRun();
    expect(harness.writes()).toBe(writes);
    expect(planned).not.toEqual([]);
    expect((await harness.resync()).actions).toMatchObject(
      Object.fromEntries(planned.map(({ action }) => [action, expect.any(Number)])),
    );
  });
});
