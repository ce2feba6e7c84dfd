// Objects that run gateways: they are created and repaired, and objects of others are not changed.
import { beforeEach, describe, expect, test } from 'vitest';
import { type Cluster, ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { OWNED_LABEL } from '#crds/names/group.ts';
import { runDeployment } from '../../../test/reconcile/controllers.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, PASSWORD } from '../../../test/reconcile/objects.ts';
import { createWorkloads } from '../../../test/reconcile/workloads.ts';
import { WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  harness.servedAt = 'nobody';
  await harness.apply(...makeSecrets());
});
const { redis, main, ready, message, part, there, edit, resyncs, servedSnapshot, running } = createWorkloads(
  () => harness,
);

describe('a Deployment', () => {
  test('is created with a Service and a disruption budget, and the instance is ready when the Deployment is available', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    expect((await harness.resync()).actions).toMatchObject({ ApplyWorkload: 3 });
    expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget']);
    expect(await ready()).toBe('False WorkloadNotReady');
    expect(await message('WorkloadReady')).toContain('0 of 1 replicas');
    expect(await main()).not.toHaveProperty('snapshotHash');
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotReady');
    await runDeployment(harness);
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await main()).toMatchObject({
      url: 'http://main-gateway.default.svc',
      workloadType: 'Deployment',
      snapshotHash: servedSnapshot(),
      keys: { total: 1, active: 1 },
    });
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('mounts no port of the counter store if every host of the Secret has one', async () => {
    const mounted = async (secret: Readonly<Record<string, string>>) => {
      await harness.apply(makeSecret('store', secret));
      await running();
      return JSON.stringify(part('Deployment')?.spec).includes('"path":"port"');
    };
    expect(await mounted({ host: 'redis', port: '6379', password: '' })).toBe(true);
    expect(await mounted({ host: 'redis:6379', password: '' })).toBe(false);
    expect(await ready()).toBe('True Ready');
  });

  test('that is as desired is not written again, however many runs there are', async () => {
    await running({ type: 'Deployment', scale: { min: 1, max: 1 } });
    const before = harness.cluster.objects();
    for (let turn = 0; turn < 5; turn += 1) {
      harness.clock.pass(60_000);
      expect((await harness.resync()).actions).toEqual({});
      harness.restart();
      expect((await harness.resync()).actions).toEqual({});
    }
    expect(harness.cluster.objects()).toEqual(before);
  });

  test('whose write fails, as if a webhook of another program is broken, has the cause in WorkloadReady', async () => {
    let fails = true;
    harness.cluster.inject(({ verb, resource }) => {
      if (fails && verb === 'apply' && resource.kind === 'Deployment')
        throw new ClusterError('failed calling webhook', 500);
      return undefined;
    });
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await harness.resync();
    expect(await ready()).toBe('False WorkloadRefused');
    expect(await message('WorkloadReady')).toContain('does not take Deployment "main-gateway": failed calling webhook');
    fails = false;
    await running();
    fails = true;
    await edit({ image: 'other:2' });
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('changes wait');
  });

  test('whose dry run fails is in the plan, with everything else', async () => {
    let fails = false;
    const through = (memory: Cluster): Cluster => ({
      ...memory,
      apply: async (resource, object, how) => {
        if (fails && how?.isDry && resource.kind === 'Deployment')
          throw new ClusterError('failed calling webhook', 500);
        return memory.apply(resource, object, how);
      },
    });
    harness = createHarness({ through });
    harness.servedAt = 'nobody';
    await harness.apply(...makeSecrets());
    await running();
    await harness.apply(makeKey({ keyAlias: 'more' }, 'more'));
    expect((await harness.dryRun()).map(({ action }) => action)).not.toContain('ApplyWorkload');
    fails = true;
    const planned = (await harness.dryRun()).map(({ action, name }) => `${action} ${name}`);
    expect(planned).toEqual(expect.arrayContaining(['ApplyWorkload main', 'PutScope more']));
  });

  test('whose controller has written a revision number is as desired', async () => {
    await running({ type: 'Deployment', scale: { min: 1, max: 1 } });
    let revision = 1;
    harness.cluster.inject(async ({ verb, resource }) => {
      if (verb !== 'apply' || resource.kind !== 'Deployment') return undefined;
      revision += 1;
      const annotations = { 'deployment.kubernetes.io/revision': `${revision}` };
      await harness.cluster.patch(WORKLOAD_OBJECTS.Deployment, 'default', 'main-gateway', {
        metadata: { annotations },
      });
      return undefined;
    });
    expect((await harness.resync()).actions).toEqual({});
    expect(revision).toBeGreaterThan(1);
  });

  test('follows an edit of each field of spec.workload with one write, and its clearing with one more', async () => {
    await redis();
    await running();
    const fields = {
      image: 'registry.example.com/own:1',
      resources: { limits: { memory: '1Gi' } },
      env: [{ name: 'LOG_LEVEL', value: 'warn' }],
      podLabels: { team: 'platform' },
      podAnnotations: { scrape: 'true' },
      serviceAccountName: 'gateway',
    };
    for (const [field, value] of Object.entries(fields)) {
      const untouched = JSON.stringify(part('Deployment')?.spec);
      for (const next of [value, null]) {
        await edit({ [field]: next });
        expect(await resyncs()).toEqual(['apply Deployment']);
        expect(await resyncs()).toEqual([]);
      }
      expect(JSON.stringify(part('Deployment')?.spec)).toBe(untouched);
    }
  });

  test('keeps labels, annotations and fields of others, and restores its own', async () => {
    await running();
    const theirs = { annotations: { 'reloader.example.com/on': 'yes' }, labels: { team: 'a' } };
    await harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', {
      metadata: theirs,
      spec: { paused: true, replicas: 7 },
    });
    await harness.edit(WORKLOAD_OBJECTS.Service, 'main-gateway', { metadata: theirs, spec: { ports: [] } });
    expect(await resyncs()).toEqual(['apply Deployment', 'apply Service']);
    expect(part('Deployment')).toMatchObject({ metadata: theirs, spec: { paused: true, replicas: 1 } });
    expect(part('Service')).toMatchObject({ metadata: theirs, spec: { ports: [{ port: 80 }] } });
    expect(await resyncs()).toEqual([]);
    await harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { metadata: { labels: { [OWNED_LABEL]: null } } });
    expect(await resyncs()).toEqual([]);
    expect(await message('WorkloadReady')).toContain('does not belong to this instance');
  });

  test('whose image a webhook replaces is not written again and again', async () => {
    const { apply } = harness.cluster;
    const rewritten = { ...harness.cluster, apply: harness.cluster.apply };
    rewritten.apply = (resource, object) => {
      const text = JSON.stringify(object).replace('registry.test/', 'mirror.test/');
      return apply(resource, JSON.parse(text));
    };
    Object.assign(harness.cluster, rewritten);
    await running();
    expect(JSON.stringify(part('Deployment'))).toContain('mirror.test/gateway');
    for (let turn = 0; turn < 3; turn += 1) expect(await resyncs()).toEqual([]);
    await harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { spec: { replicas: 4 } });
    expect((await resyncs()).length).toBeGreaterThan(0);
    expect(await resyncs()).toEqual([]);
    expect(part('Deployment')).toMatchObject({ spec: { replicas: 1 } });
  });

  test.each(['Deployment', 'Service', 'PodDisruptionBudget'] as const)('has its %s restored', async (name) => {
    await running();
    await harness.remove(WORKLOAD_OBJECTS[name], 'main-gateway');
    expect(await resyncs()).toEqual([`apply ${name}`]);
    expect(await resyncs()).toEqual([]);
  });

  test.each(['Deployment', 'Service', 'PodDisruptionBudget'] as const)(
    'never takes over a %s of that name that is not its own',
    async (name) => {
      const { group, version, kind } = WORKLOAD_OBJECTS[name];
      const foreign = {
        apiVersion: group === '' ? version : `${group}/${version}`,
        kind,
        metadata: { name: 'main-gateway', namespace: 'default', labels: { [OWNED_LABEL]: 'true' } },
        spec: { theirs: true },
      };
      await harness.cluster.create(WORKLOAD_OBJECTS[name], foreign);
      await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
      await harness.resync();
      expect(part(name)).toMatchObject({ spec: { theirs: true } });
      expect(await ready()).toBe('False WorkloadConflict');
      expect(await message('Ready')).toMatch(/"main-gateway" exists and does not belong to this instance.*delete it/);
      await harness.remove(WORKLOAD_OBJECTS[name], 'main-gateway');
      await harness.resync();
      await runDeployment(harness);
      await harness.resync();
      expect(await ready()).toBe('True Ready');
    },
  );

  test('that runs behind a Service which is not its own does not count as serving', async () => {
    await running();
    await harness.edit(WORKLOAD_OBJECTS.Service, 'main-gateway', { metadata: { ownerReferences: [] } });
    await harness.resync();
    expect(await ready()).toBe('False WorkloadConflict');
    await harness.remove(WORKLOAD_OBJECTS.Service, 'main-gateway');
    await harness.resync();
    expect(await ready()).toBe('True Ready');
  });

  test('that another run has created meanwhile is not created twice', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await Promise.all([harness.resync(), harness.trigger('GatewayInstance', 'main'), harness.resync()]);
    await harness.resync();
    expect(await resyncs()).toEqual([]);
    expect(harness.cluster.objects(WORKLOAD_OBJECTS.Deployment)).toHaveLength(1);
  });

  test('that does not start is reported with the message of its controller and the next step', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await harness.resync();
    const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'timed out.' };
    const unavailable = { type: 'Available', status: 'False' };
    await runDeployment(harness, 'main-gateway', { updated: 0, conditions: [unavailable, late] });
    await harness.resync();
    expect(await ready()).toBe('False ProgressDeadlineExceeded');
    expect(await message('Ready')).toMatch(/timed out.*kubectl -n default get pods/);
    const failure = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota' };
    await runDeployment(harness, 'main-gateway', { updated: 0, conditions: [unavailable, failure] });
    await harness.resync();
    expect(await ready()).toBe('False ReplicaFailure');
    expect(await message('Ready')).toContain('exceeded quota');
  });

  test('that the API server refuses is reported with its message, and keys are still created', async () => {
    harness.cluster.inject(({ verb, resource }) =>
      verb === 'apply' && resource.kind === 'Deployment' ? 'invalid' : undefined,
    );
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    const report = await harness.resync();
    expect(report.failed).toEqual({ ApplyWorkload: 1 });
    expect(await ready()).toBe('False WorkloadRefused');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
    harness.cluster.inject(() => undefined);
    await harness.resync();
    await runDeployment(harness);
    await harness.resync();
    expect(await ready()).toBe('True Ready');
  });

  test('that the operator has no right to read does not keep keys from being created', async () => {
    const { ClusterError } = await import('#core/ports/cluster.ts');
    harness.cluster.inject(({ resource }) => {
      if (resource.kind === 'Deployment') throw new ClusterError('forbidden', 403);
      return undefined;
    });
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    expect((await harness.resync()).failed).toEqual({});
    expect(await ready()).toBe('False WorkloadUnreadable');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
  });
});

test('no value of a Secret is in what runs a gateway', async () => {
  await running();
  const text = JSON.stringify(Object.values(WORKLOAD_OBJECTS).flatMap((resource) => harness.cluster.objects(resource)));
  for (const value of [PASSWORD, 'sk-upstream']) {
    expect(text).not.toContain(value);
    expect(text).not.toContain(btoa(value));
  }
});

describe('an instance', () => {
  test('that is paused is not changed, whatever happens to its parts', async () => {
    await running();
    await edit({ image: 'other:2' });
    await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await harness.remove(WORKLOAD_OBJECTS.Service, 'main-gateway');
    await harness.resync();
    expect(await resyncs()).toEqual([]);
    expect(await harness.get(WORKLOAD_OBJECTS.Service, 'main-gateway')).toBeUndefined();
  });

  test('that is deleted has its workload deleted too', async () => {
    await running();
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
    harness.cluster.collectGarbage();
    expect(there()).toEqual([]);
    expect(harness.cluster.objects(RESOURCES.configMaps)).toEqual([]);
  });

  test('and another one have parts of their own names', async () => {
    const workload = { type: 'Deployment' };
    await harness.apply(makeInstance({ workload }), makeInstance({ workload }, 'second'));
    await harness.resync();
    expect(harness.cluster.objects(WORKLOAD_OBJECTS.Deployment).map(({ metadata }) => metadata.name)).toEqual([
      'main-gateway',
      'second-gateway',
    ]);
  });
});
