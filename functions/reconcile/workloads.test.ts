// Does reconcile make what runs a gateway, keep it, and leave alone what is not its own?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { OWNED_LABEL } from '#crds/group.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { runDeployment } from '../../test/reconcile/controllers.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, PASSWORD } from '../../test/reconcile/objects.ts';
import { PARTS, type PartName } from './workload/parts.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  bed.servedAt = 'nobody';
  await bed.apply(...makeSecrets());
});

const redis = () => bed.apply(makeSecret('store', { host: 'redis', port: '6379', password: '' }));
const main = () => bed.status(gatewayInstances, 'main');
const ready = () => bed.ready(gatewayInstances, 'main');
const message = async (type: string) => (await main()).conditions?.find((one) => one.type === type)?.message;
const part = (name: PartName) => bed.cluster.objects(PARTS[name])[0];
const there = () => (Object.keys(PARTS) as PartName[]).filter((name) => part(name) !== undefined);
const edit = (workload: object) => bed.edit(gatewayInstances, 'main', { spec: { workload } });
const writes = async (act: () => Promise<unknown>) => {
  const before = bed.cluster.calls.length;
  await act();
  return bed.cluster.calls
    .slice(before)
    .filter(({ verb }) => verb === 'apply' || verb === 'delete')
    .map(({ verb, resource }) => `${verb} ${resource.kind}`);
};
const sweeps = () => writes(bed.sweep);
type Template = { spec: { template: { metadata: { annotations: Record<string, string> } } } };
const servedSnapshot = () =>
  (part('Deployment') as unknown as Template).spec.template.metadata.annotations['gateway-operator.dev/snapshot'];

/** Until the Deployment runs and nothing is left to do. */
const running = async (workload: object = { type: 'Deployment' }) => {
  await bed.apply(makeInstance({ workload }), makeKey());
  await bed.sweep();
  await runDeployment(bed);
  await bed.sweep();
};

describe('a Deployment', () => {
  test('is made with Service and disruption budget, and the instance is ready when it is available', async () => {
    await bed.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    expect((await bed.sweep()).actions).toMatchObject({ ApplyWorkload: 3 });
    expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget']);
    expect(await ready()).toBe('False WorkloadNotReady');
    expect(await message('WorkloadReady')).toContain('0 of 1 replicas');
    expect(await main()).not.toHaveProperty('snapshotHash');
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False InstanceNotReady');
    await runDeployment(bed);
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
    expect(await main()).toMatchObject({
      url: 'http://main-gateway.default.svc',
      workloadType: 'Deployment',
      snapshotHash: servedSnapshot(),
      keys: { total: 1, active: 1 },
    });
    expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('that is as it should be is not written again, however often one looks', async () => {
    await running({ type: 'Deployment', scale: { min: 1, max: 1 } });
    const before = bed.cluster.objects();
    for (let turn = 0; turn < 5; turn += 1) {
      bed.clock.pass(60_000);
      expect((await bed.sweep()).actions).toEqual({});
      bed.restart();
      expect((await bed.sweep()).actions).toEqual({ OpenDatabase: 1 });
    }
    expect(bed.cluster.objects()).toEqual(before);
  });

  test('follows each field of spec.workload with one write, and its clearing with one more', async () => {
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
        expect(await sweeps()).toEqual(['apply Deployment']);
        expect(await sweeps()).toEqual([]);
      }
      expect(JSON.stringify(part('Deployment')?.spec)).toBe(untouched);
    }
  });

  test('keeps labels, annotations and fields of others, and takes back what is its own', async () => {
    await running();
    const theirs = { annotations: { 'reloader.example.com/on': 'yes' }, labels: { team: 'a' } };
    await bed.edit(PARTS.Deployment, 'main-gateway', { metadata: theirs, spec: { paused: true, replicas: 7 } });
    await bed.edit(PARTS.Service, 'main-gateway', { metadata: theirs, spec: { ports: [] } });
    expect(await sweeps()).toEqual(['apply Deployment', 'apply Service']);
    expect(part('Deployment')).toMatchObject({ metadata: theirs, spec: { paused: true, replicas: 1 } });
    expect(part('Service')).toMatchObject({ metadata: theirs, spec: { ports: [{ port: 80 }] } });
    expect(await sweeps()).toEqual([]);
    await bed.edit(PARTS.Deployment, 'main-gateway', { metadata: { labels: { [OWNED_LABEL]: null } } });
    expect(await sweeps()).toEqual([]);
    expect(await message('WorkloadReady')).toContain('is not this instance');
  });

  test('whose image a webhook replaces is not fought over', async () => {
    const { apply } = bed.cluster;
    const rewritten = { ...bed.cluster, apply: bed.cluster.apply };
    rewritten.apply = (resource, object) => {
      const text = JSON.stringify(object).replace('registry.test/', 'mirror.test/');
      return apply(resource, JSON.parse(text));
    };
    Object.assign(bed.cluster, rewritten);
    await running();
    expect(JSON.stringify(part('Deployment'))).toContain('mirror.test/gateway');
    for (let turn = 0; turn < 3; turn += 1) expect(await sweeps()).toEqual([]);
    await bed.edit(PARTS.Deployment, 'main-gateway', { spec: { replicas: 4 } });
    expect((await sweeps()).length).toBeGreaterThan(0);
    expect(await sweeps()).toEqual([]);
    expect(part('Deployment')).toMatchObject({ spec: { replicas: 1 } });
  });

  test.each(['Deployment', 'Service', 'PodDisruptionBudget'] as const)('gets its %s back', async (name) => {
    await running();
    await bed.remove(PARTS[name], 'main-gateway');
    expect(await sweeps()).toEqual([`apply ${name}`]);
    expect(await sweeps()).toEqual([]);
  });

  test.each(['Deployment', 'Service', 'PodDisruptionBudget'] as const)(
    'never takes over a %s of that name that is not its own',
    async (name) => {
      const { group, version, kind } = PARTS[name];
      const foreign = {
        apiVersion: group === '' ? version : `${group}/${version}`,
        kind,
        metadata: { name: 'main-gateway', namespace: 'default', labels: { [OWNED_LABEL]: 'true' } },
        spec: { theirs: true },
      };
      await bed.cluster.create(PARTS[name], foreign);
      await bed.apply(makeInstance({ workload: { type: 'Deployment' } }));
      await bed.sweep();
      expect(part(name)).toMatchObject({ spec: { theirs: true } });
      expect(await ready()).toBe('False WorkloadConflict');
      expect(await message('Ready')).toMatch(/"main-gateway" is there and is not.*delete it/);
      await bed.remove(PARTS[name], 'main-gateway');
      await bed.sweep();
      await runDeployment(bed);
      await bed.sweep();
      expect(await ready()).toBe('True Ready');
    },
  );

  test('that runs behind a Service which is not its own does not count as serving', async () => {
    await running();
    await bed.edit(PARTS.Service, 'main-gateway', { metadata: { ownerReferences: [] } });
    await bed.sweep();
    expect(await ready()).toBe('False WorkloadConflict');
    await bed.remove(PARTS.Service, 'main-gateway');
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
  });

  test('made meanwhile by another run is met, not made twice', async () => {
    await bed.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await Promise.all([bed.sweep(), bed.hint('GatewayInstance', 'main'), bed.sweep()]);
    await bed.sweep();
    expect(await sweeps()).toEqual([]);
    expect(bed.cluster.objects(PARTS.Deployment)).toHaveLength(1);
  });

  test('that does not come up says what its controller says, and what to do', async () => {
    await bed.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await bed.sweep();
    const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'timed out.' };
    const unavailable = { type: 'Available', status: 'False' };
    await runDeployment(bed, 'main-gateway', { updated: 0, conditions: [unavailable, late] });
    await bed.sweep();
    expect(await ready()).toBe('False ProgressDeadlineExceeded');
    expect(await message('Ready')).toMatch(/timed out.*kubectl -n default get pods/);
    const failure = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota' };
    await runDeployment(bed, 'main-gateway', { updated: 0, conditions: [unavailable, failure] });
    await bed.sweep();
    expect(await ready()).toBe('False ReplicaFailure');
    expect(await message('Ready')).toContain('exceeded quota');
  });

  test('that the API server refuses is told in its words, and keeps no key from being made', async () => {
    bed.cluster.inject(({ verb, resource }) =>
      verb === 'apply' && resource.kind === 'Deployment' ? 'invalid' : undefined,
    );
    await bed.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    const report = await bed.sweep();
    expect(report.failed).toEqual({ ApplyWorkload: 1 });
    expect(await ready()).toBe('False WorkloadRefused');
    expect(await bed.works(await bed.value('chat-key'))).toBe(true);
    bed.cluster.inject(() => undefined);
    await bed.sweep();
    await runDeployment(bed);
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
  });

  test('that may not be read keeps no key from being made', async () => {
    const { ClusterError } = await import('#core/ports/cluster.ts');
    bed.cluster.inject(({ resource }) => {
      if (resource.kind === 'Deployment') throw new ClusterError('forbidden', 403);
      return undefined;
    });
    await bed.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    expect((await bed.sweep()).failed).toEqual({});
    expect(await ready()).toBe('False WorkloadUnreadable');
    expect(await bed.works(await bed.value('chat-key'))).toBe(true);
  });
});

test('no value of a Secret stands in what runs a gateway', async () => {
  await running();
  const text = JSON.stringify(Object.values(PARTS).flatMap((resource) => bed.cluster.objects(resource)));
  for (const value of [PASSWORD, 'sk-upstream']) {
    expect(text).not.toContain(value);
    expect(text).not.toContain(btoa(value));
  }
});

describe('a change of the models', () => {
  const change = (retries: number) => bed.edit(gatewayInstances, 'main', { spec: { routing: { retries } } });
  const snapshots = () => bed.cluster.objects(RESOURCES.configMaps).map(({ metadata }) => metadata.name);

  test('is a new snapshot, which the Pods get by a rollout; status names it when all of them have it', async () => {
    await redis();
    await running();
    const before = (await main()).snapshotHash;
    await change(5);
    expect(await sweeps()).toEqual(['apply Deployment']);
    expect(servedSnapshot()).not.toBe(before);
    expect((await main()).snapshotHash).toBe(before);
    expect(snapshots()).toEqual(expect.arrayContaining([`main-${before}`, `main-${servedSnapshot()}`]));
    await runDeployment(bed, 'main-gateway', { updated: 0, old: 1 });
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('rolled out');
    expect((await main()).snapshotHash).toBe(before);
    await runDeployment(bed);
    await bed.sweep();
    expect((await main()).snapshotHash).toBe(servedSnapshot());
  });

  test('whose rollout is stuck keeps the one that serves, and every snapshot that a Pod may still need', async () => {
    await redis();
    await running();
    const first = (await main()).snapshotHash;
    for (const retries of [3, 4, 5, 6]) {
      bed.clock.pass(1000);
      await change(retries);
      await bed.sweep();
      const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'timed out.' };
      const conditions = [{ type: 'Available', status: 'True' }, late];
      await runDeployment(bed, 'main-gateway', { updated: 0, old: 1, conditions });
      await bed.sweep();
    }
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('timed out');
    expect((await main()).snapshotHash).toBe(first);
    expect(snapshots()).toHaveLength(5);
    await runDeployment(bed);
    await bed.sweep();
    expect(snapshots().length).toBeLessThanOrEqual(3);
    expect(snapshots()).toContain(`main-${servedSnapshot()}`);
    expect((await bed.sweep()).actions).toEqual({});
  });
});

describe('a Secret that is missing', () => {
  test('of a model changes nothing that runs', async () => {
    await running();
    await bed.remove(RESOURCES.secrets, 'openai');
    expect(await sweeps()).toEqual([]);
    expect(await ready()).toBe('True Ready');
  });

  test.each(['db', 'store'])('of the %s lets what runs go on, and holds changes until it is back', async (name) => {
    await running();
    await bed.remove(RESOURCES.secrets, name);
    await edit({ image: 'other:2' });
    expect(await sweeps()).toEqual([]);
    expect(await message('WorkloadReady')).toContain('changes wait');
    await bed.apply(...makeSecrets());
    expect(await sweeps()).toEqual(['apply Deployment']);
  });

  test.each(['db', 'store'])('of the %s from the beginning makes nothing that could not start', async (name) => {
    await bed.remove(RESOURCES.secrets, name);
    await bed.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await bed.sweep();
    expect(there()).toEqual([]);
    expect(await ready()).toBe('False SecretNotFound');
  });
});

describe('a Secret that changes', () => {
  test('of a model is used by the Pods that run: nothing is rolled', async () => {
    await running();
    await bed.edit(RESOURCES.secrets, 'openai', { data: { apiKey: btoa('sk-another') } });
    expect(await sweeps()).toEqual([]);
  });

  test.each(['db', 'store'])('of the %s is read at start only: the Pods are rolled, once', async (name) => {
    await redis();
    await running();
    await bed.edit(RESOURCES.secrets, name, { data: { password: btoa('rotated') } });
    expect(await sweeps()).toEqual(['apply Deployment']);
    expect(await sweeps()).toEqual([]);
    expect(JSON.stringify(part('Deployment'))).not.toContain(btoa('rotated'));
  });
});

describe('scale', () => {
  const spec = () => part('Deployment')?.spec as { replicas?: number; strategy: object };

  test('with room between min and max is left to an autoscaler, and what that decided stays', async () => {
    await redis();
    await running({ type: 'Deployment', scale: { min: 2, max: 4 } });
    expect(part('HorizontalPodAutoscaler')).toMatchObject({ spec: { minReplicas: 2, maxReplicas: 4 } });
    expect(spec().replicas).toBe(2);
    await bed.edit(PARTS.Deployment, 'main-gateway', { spec: { replicas: 3 } });
    expect(await sweeps()).toEqual([]);
    await edit({ image: 'other:2' });
    expect(await sweeps()).toEqual(['apply Deployment']);
    expect(spec().replicas).toBe(3);
    await edit({ scale: { min: 3, max: 3 } });
    expect(await sweeps()).toEqual(['apply Deployment', 'delete HorizontalPodAutoscaler']);
    expect(spec().replicas).toBe(3);
    expect(await sweeps()).toEqual([]);
  });

  test('with the memory store is one process, never two at a time', async () => {
    await running();
    expect(spec()).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    await redis();
    expect(await sweeps()).toEqual(['apply Deployment']);
    expect(spec().strategy).toMatchObject({ type: 'RollingUpdate' });
  });

  test.each([{ min: 2 }, { max: 2 }, { min: 1, max: 3 }])(
    '%j with the memory store is refused, and what runs is left',
    async (scale) => {
      await running();
      await edit({ scale });
      expect(await sweeps()).toEqual([]);
      expect(await ready()).toBe('False StoreNotShared');
      expect(await message('Ready')).toMatch(/Redis or Upstash.*or scale to 1/);
      expect(spec().replicas).toBe(1);
      await redis();
      expect(await sweeps()).not.toEqual([]);
    },
  );

  test('of the memory store elsewhere is refused unless one process is promised', async () => {
    bed.manyProcesses = true;
    await bed.apply(makeInstance({ workload: { type: 'External', url: 'https://llm.example.com' } }));
    await bed.sweep();
    expect(await ready()).toBe('False StoreNotShared');
    bed.manyProcesses = false;
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
  });
});

describe('an instance', () => {
  test('that is paused is left alone, whatever becomes of its parts', async () => {
    await running();
    await edit({ image: 'other:2' });
    await bed.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await bed.remove(PARTS.Service, 'main-gateway');
    await bed.sweep();
    expect(await sweeps()).toEqual([]);
    expect(await bed.get(PARTS.Service, 'main-gateway')).toBeUndefined();
  });

  test('that is deleted takes what runs it along', async () => {
    await running();
    await bed.remove(gatewayInstances, 'main');
    await bed.sweep();
    expect(await bed.get(gatewayInstances, 'main')).toBeUndefined();
    bed.cluster.collectGarbage();
    expect(there()).toEqual([]);
    expect(bed.cluster.objects(RESOURCES.configMaps)).toEqual([]);
  });

  test('and another one have parts of their own names', async () => {
    const workload = { type: 'Deployment' };
    await bed.apply(makeInstance({ workload }), makeInstance({ workload }, 'second'));
    await bed.sweep();
    expect(bed.cluster.objects(PARTS.Deployment).map(({ metadata }) => metadata.name)).toEqual([
      'main-gateway',
      'second-gateway',
    ]);
  });
});
