// Rollouts: changes reach the Pods, and missing Secrets do not stop running Pods.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { runDeployment } from '../../../test/reconcile/controllers.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';
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

describe('a change of the models', () => {
  const change = (retries: number) => harness.edit(gatewayInstances, 'main', { spec: { routing: { retries } } });
  const snapshots = () => harness.cluster.objects(RESOURCES.configMaps).map(({ metadata }) => metadata.name);

  test('is a new snapshot, which the Pods get by a rollout; the status shows it when all Pods have it', async () => {
    await redis();
    await running();
    const before = (await main()).snapshotHash;
    await change(5);
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(servedSnapshot()).not.toBe(before);
    expect((await main()).snapshotHash).toBe(before);
    expect(snapshots()).toEqual(expect.arrayContaining([`main-${before}`, `main-${servedSnapshot()}`]));
    await runDeployment(harness, 'main-gateway', { updated: 0, old: 1 });
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('rolled out');
    expect((await main()).snapshotHash).toBe(before);
    await runDeployment(harness);
    await harness.resync();
    expect((await main()).snapshotHash).toBe(servedSnapshot());
  });

  test('whose rollout is stuck keeps the served snapshot, and every snapshot that a Pod may still need', async () => {
    await redis();
    await running();
    const first = (await main()).snapshotHash;
    for (const retries of [3, 4, 5, 6]) {
      harness.clock.pass(1000);
      await change(retries);
      await harness.resync();
      const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'timed out.' };
      const conditions = [{ type: 'Available', status: 'True' }, late];
      await runDeployment(harness, 'main-gateway', { updated: 0, old: 1, conditions });
      await harness.resync();
    }
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('timed out');
    expect((await main()).snapshotHash).toBe(first);
    expect(snapshots()).toHaveLength(5);
    await runDeployment(harness);
    await harness.resync();
    expect(snapshots().length).toBeLessThanOrEqual(3);
    expect(snapshots()).toContain(`main-${servedSnapshot()}`);
    expect((await harness.resync()).actions).toEqual({});
  });
});

describe('a gateway whose store is in memory, which never has two Pods', () => {
  const progressing = (reason: string, status = 'True') => ({ type: 'Progressing', status, reason });
  const stop = async (updated: 0 | 1, reason: string, status?: string) => {
    const conditions = [{ type: 'Available', status: 'False' }, progressing(reason, status)];
    await runDeployment(harness, 'main-gateway', { updated, conditions, available: 0 });
    await harness.resync();
  };
  const keys = async () => [(await main()).keys, await harness.ready(virtualKeys, 'chat')];

  test('is rolled out while its keys stay active', async () => {
    await running();
    const before = harness.events('chat');
    await edit({ image: 'other:2' });
    await harness.resync();
    for (const updated of [0, 1] as const) {
      await stop(updated, 'ReplicaSetUpdated');
      expect(await ready()).toBe('False WorkloadNotReady');
      expect(await keys()).toEqual([{ total: 1, active: 1 }, 'True Ready']);
    }
    await runDeployment(harness);
    await harness.resync();
    expect(harness.events('chat')).toEqual(before);
  });

  test('makes its keys inactive if it does not start by its deadline, or ends by itself', async () => {
    await running();
    const ends = [
      ['ProgressDeadlineExceeded', 'False'],
      ['NewReplicaSetAvailable', 'True'],
    ] as const;
    for (const [reason, status] of ends) {
      await stop(1, reason, status);
      expect(await keys()).toEqual([{ total: 1, active: 0 }, 'False InstanceNotReady']);
      await runDeployment(harness);
      await harness.resync();
      expect(await keys()).toEqual([{ total: 1, active: 1 }, 'True Ready']);
    }
  });

  test('does not make a key ready, while it starts, that was never ready', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    await harness.resync();
    await stop(1, 'NewReplicaSetCreated');
    expect(await keys()).toEqual([{ total: 1, active: 0 }, 'False InstanceNotReady']);
  });
});

describe('a ConfigMap of authorities', () => {
  const workload = { caConfigMapRef: { name: 'corporate-ca', key: 'bundle.pem' } };
  const write = (text: string) =>
    harness.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'default', name: 'corporate-ca' },
      data: { 'bundle.pem': text },
    });

  test('is mounted, and Node reads it; each change replaces the Pods', async () => {
    await write('one');
    await running({ ...workload, env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/of/the/spec' }] });
    const {
      spec: { template },
    } = part('Deployment') as unknown as { spec: { template: { spec: object } } };
    expect(template.spec).toMatchObject({
      containers: [
        {
          env: expect.arrayContaining([{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/gateway/ca/ca.crt' }]),
          volumeMounts: expect.arrayContaining([{ name: 'ca', mountPath: '/etc/gateway/ca', readOnly: true }]),
        },
      ],
      volumes: expect.arrayContaining([
        { name: 'ca', configMap: { name: 'corporate-ca', items: [{ key: 'bundle.pem', path: 'ca.crt' }] } },
      ]),
    });
    expect(JSON.stringify(template.spec)).not.toContain('/of/the/spec');
    await write('two');
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(await resyncs()).toEqual([]);
  });

  test('that changes in nothing that a Pod reads causes no rollout', async () => {
    await write('one');
    await running(workload);
    const annotations = { 'example.com/last-sync': 'today' };
    await harness.edit(RESOURCES.configMaps, 'corporate-ca', { metadata: { annotations }, data: { 'other.pem': 'x' } });
    expect(await resyncs()).toEqual([]);
  });

  test('with very many keys is not read, which delays changes', async () => {
    await write('one');
    await running(workload);
    const data = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, '']));
    await harness.edit(RESOURCES.configMaps, 'corporate-ca', { data });
    expect(await resyncs()).toEqual([]);
    expect(await message('WorkloadReady')).toContain('has more than 1000 keys');
  });

  test('that is missing lets running Pods continue, and delays changes until it exists', async () => {
    await running();
    await edit(workload);
    expect(await resyncs()).toEqual([]);
    expect(await message('WorkloadReady')).toContain(
      'changes wait: ConfigMap "corporate-ca" of spec.workload.caConfigMapRef',
    );
    await write('one');
    expect(await resyncs()).toEqual(['apply Deployment']);
  });

  test('without the key lets running Pods continue: a new Pod could not mount it', async () => {
    await write('one');
    await running(workload);
    await edit({ caConfigMapRef: { name: 'corporate-ca', key: 'other.pem' } });
    expect(await resyncs()).toEqual([]);
    expect(await message('WorkloadReady')).toContain(
      'changes wait: ConfigMap "corporate-ca" of spec.workload.caConfigMapRef has no key "other.pem"',
    );
  });

  test('that is missing from the beginning is the reason of the instance', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment', ...workload } }));
    await harness.resync();
    expect(await ready()).toBe('False ConfigMapNotFound');
  });
});

describe('a Secret that is missing', () => {
  test('of a model changes nothing in running Pods', async () => {
    await running();
    await harness.remove(RESOURCES.secrets, 'openai');
    expect(await resyncs()).toEqual([]);
    expect(await ready()).toBe('True Ready');
  });

  test.each(['db', 'store'])(
    'of the %s lets running Pods continue, and delays changes until it exists again',
    async (name) => {
      await running();
      await harness.remove(RESOURCES.secrets, name);
      await edit({ image: 'other:2' });
      expect(await resyncs()).toEqual([]);
      expect(await message('WorkloadReady')).toContain('changes wait');
      await harness.apply(...makeSecrets());
      expect(await resyncs()).toEqual(['apply Deployment']);
    },
  );

  test.each(['db', 'store'])(
    'of the %s from the beginning prevents the creation of Pods that could not start',
    async (name) => {
      await harness.remove(RESOURCES.secrets, name);
      await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
      await harness.resync();
      expect(there()).toEqual([]);
      expect(await ready()).toBe('False SecretNotFound');
    },
  );
});

describe('a Secret that changes', () => {
  test('of a model is used by running Pods without a rollout', async () => {
    await running();
    await harness.edit(RESOURCES.secrets, 'openai', { data: { apiKey: btoa('sk-another') } });
    expect(await resyncs()).toEqual([]);
  });

  const template = () => {
    const { spec } = part('Deployment') as unknown as { spec: { template: object } };
    return JSON.stringify(spec.template);
  };

  test.each(['db', 'store'])('of the %s with another address: there is one rollout', async (name) => {
    await redis();
    await running();
    const before = template();
    await harness.edit(RESOURCES.secrets, name, { data: { host: btoa('elsewhere') } });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(await resyncs()).toEqual([]);
    expect(template()).not.toBe(before);
  });

  test.each(['db', 'store'])(
    'of the %s with another password, which running Pods read: no Pod is replaced',
    async (name) => {
      await redis();
      await running();
      const before = template();
      await harness.edit(RESOURCES.secrets, name, { data: { password: btoa('rotated') } });
      expect(await resyncs()).toEqual(['apply Deployment']);
      expect(await resyncs()).toEqual([]);
      expect(template()).toBe(before);
      expect(JSON.stringify(part('Deployment'))).not.toContain(btoa('rotated'));
    },
  );

  test('of Upstash with another token, which running Pods read: no Pod is replaced; with another address: there is one rollout', async () => {
    await harness.apply(makeSecret('store', { host: 'https://eu1.example', port: '443', password: 'token' }));
    await running();
    const before = template();
    await harness.edit(RESOURCES.secrets, 'store', { data: { password: btoa('rotated') } });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(template()).toBe(before);
    await harness.edit(RESOURCES.secrets, 'store', { data: { host: btoa('https://us1.example') } });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(template()).not.toBe(before);
  });

  test.each(['db', 'store'])('of the %s in nothing that a Pod reads causes no rollout', async (name) => {
    await redis();
    await running();
    const annotations = { 'example.com/last-sync': 'today' };
    await harness.edit(RESOURCES.secrets, name, { metadata: { annotations }, data: { unused: btoa('x') } });
    expect(await resyncs()).toEqual([]);
  });

  test('of the database, which then does not answer, causes no rollout until it answers: running Pods continue', async () => {
    await running();
    harness.refuse(true);
    await harness.edit(RESOURCES.secrets, 'db', { data: { password: btoa('wrong') } });
    await edit({ image: 'other:2' });
    expect(await resyncs()).toEqual([]);
    expect(await message('WorkloadReady')).toContain('changes wait');
    harness.refuse(false);
    expect(await resyncs()).toEqual(['apply Deployment']);
  });

  test('not at all: other changes are rolled out while the database cannot be reached', async () => {
    await running();
    harness.refuse(true);
    await edit({ image: 'other:2' });
    expect(await resyncs()).toEqual(['apply Deployment']);
  });
});

describe('an operator of an earlier version', () => {
  test('does not change what a later version has written, reports that, and writes it again when the annotation is removed', async () => {
    await redis();
    harness.version = '1.10.0';
    await running();
    harness.version = '1.9.3';
    await edit({ resources: { limits: { memory: '1Gi' } } });
    expect(await resyncs()).toEqual([]);
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('was written by version 1.10.0 of the operator');
    await runDeployment(harness, 'main-gateway', { updated: 0, available: 0 });
    await resyncs();
    expect(await ready()).toBe('False WorkloadNotReady');
    expect(await message('WorkloadReady')).toContain('was written by version 1.10.0 of the operator');
    await edit({ type: 'External', url: 'https://llm.example.com' });
    expect(await resyncs()).toEqual([]);
    await edit({ type: 'Deployment', url: null });
    const metadata = { annotations: { 'gateway-operator.dev/version': null } };
    await harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { metadata });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(part('Deployment')?.metadata.annotations).toMatchObject({ 'gateway-operator.dev/version': '1.9.3' });
  });

  test('writes its own version, and a later operator takes over', async () => {
    await redis();
    await running();
    harness.version = '1.3.0';
    await resyncs();
    expect(part('Deployment')?.metadata.annotations).toMatchObject({ 'gateway-operator.dev/version': '1.3.0' });
    expect(await resyncs()).toEqual([]);
  });
});
