// Is what changes rolled out when it should be, and does nothing that runs stop for what is missing?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { runDeployment } from '../../../test/reconcile/controllers.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createWorkloads } from '../../../test/reconcile/workloads.ts';
import { PARTS } from '../workload/object-parts.ts';

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

  test('is a new snapshot, which the Pods get by a rollout; status names it when all of them have it', async () => {
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

  test('whose rollout is stuck keeps the one that serves, and every snapshot that a Pod may still need', async () => {
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

describe('a gateway whose store is in memory, whose Pods are never two', () => {
  const progressing = (reason: string, status = 'True') => ({ type: 'Progressing', status, reason });
  const stop = async (updated: 0 | 1, reason: string, status?: string) => {
    const conditions = [{ type: 'Available', status: 'False' }, progressing(reason, status)];
    await runDeployment(harness, 'main-gateway', { updated, conditions, available: 0 });
    await harness.resync();
  };
  const keys = async () => [(await main()).keys, await harness.ready(virtualKeys, 'chat')];

  test('is rolled without a word about its keys, which stay active', async () => {
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

  test('shows in its keys when it does not come up by its deadline, and when it ends by itself', async () => {
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

  test('does not make a key ready that never was, while it starts', async () => {
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
    await harness.resync();
    await stop(1, 'NewReplicaSetCreated');
    expect(await keys()).toEqual([{ total: 1, active: 0 }, 'False InstanceNotReady']);
  });
});

describe('a Secret that is missing', () => {
  test('of a model changes nothing that runs', async () => {
    await running();
    await harness.remove(RESOURCES.secrets, 'openai');
    expect(await resyncs()).toEqual([]);
    expect(await ready()).toBe('True Ready');
  });

  test.each(['db', 'store'])('of the %s lets what runs continue, and holds changes until it is back', async (name) => {
    await running();
    await harness.remove(RESOURCES.secrets, name);
    await edit({ image: 'other:2' });
    expect(await resyncs()).toEqual([]);
    expect(await message('WorkloadReady')).toContain('changes wait');
    await harness.apply(...makeSecrets());
    expect(await resyncs()).toEqual(['apply Deployment']);
  });

  test.each(['db', 'store'])('of the %s from the beginning makes nothing that could not start', async (name) => {
    await harness.remove(RESOURCES.secrets, name);
    await harness.apply(makeInstance({ workload: { type: 'Deployment' } }));
    await harness.resync();
    expect(there()).toEqual([]);
    expect(await ready()).toBe('False SecretNotFound');
  });
});

describe('a Secret that changes', () => {
  test('of a model is used by the Pods that run: nothing is rolled', async () => {
    await running();
    await harness.edit(RESOURCES.secrets, 'openai', { data: { apiKey: btoa('sk-another') } });
    expect(await resyncs()).toEqual([]);
  });

  test.each(['db', 'store'])('of the %s is read at start only: the Pods are rolled, once', async (name) => {
    await redis();
    await running();
    await harness.edit(RESOURCES.secrets, name, { data: { password: btoa('rotated') } });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(await resyncs()).toEqual([]);
    expect(JSON.stringify(part('Deployment'))).not.toContain(btoa('rotated'));
  });

  test('of the database, which then does not answer, rolls nothing until it does: what runs continues', async () => {
    await running();
    harness.refuse(true);
    await harness.edit(RESOURCES.secrets, 'db', { data: { password: btoa('wrong') } });
    await edit({ image: 'other:2' });
    expect(await resyncs()).toEqual([]);
    expect(await message('WorkloadReady')).toContain('changes wait');
    harness.refuse(false);
    expect(await resyncs()).toEqual(['apply Deployment']);
  });

  test('of nothing, while the database is away, holds back no change', async () => {
    await running();
    harness.refuse(true);
    await edit({ image: 'other:2' });
    expect(await resyncs()).toEqual(['apply Deployment']);
  });
});

describe('an operator of an earlier version', () => {
  test('leaves what a later one has written, says so, and writes it again once the annotation is gone', async () => {
    await redis();
    harness.version = '1.10.0';
    await running();
    harness.version = '1.9.3';
    await edit({ resources: { limits: { memory: '1Gi' } } });
    expect(await resyncs()).toEqual([]);
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('was written by version 1.10.0 of the operator');
    await edit({ type: 'External', url: 'https://llm.example.com' });
    expect(await resyncs()).toEqual([]);
    await edit({ type: 'Deployment', url: null });
    const metadata = { annotations: { 'gateway-operator.dev/version': null } };
    await harness.edit(PARTS.Deployment, 'main-gateway', { metadata });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(part('Deployment')?.metadata.annotations).toMatchObject({ 'gateway-operator.dev/version': '1.9.3' });
  });

  test('writes with its own version, and a later one takes over', async () => {
    await redis();
    await running();
    harness.version = '1.3.0';
    await resyncs();
    expect(part('Deployment')?.metadata.annotations).toMatchObject({ 'gateway-operator.dev/version': '1.3.0' });
    expect(await resyncs()).toEqual([]);
  });
});
