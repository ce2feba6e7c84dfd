// Is what changes rolled out when it should be, and does nothing that runs stop for what is missing?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { runDeployment } from '../../test/reconcile/controllers.ts';
import { makeInstance, makeSecrets } from '../../test/reconcile/objects.ts';
import { createWorkloads } from '../../test/reconcile/workloads.ts';
import { PARTS } from './workload/parts.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  bed.servedAt = 'nobody';
  await bed.apply(...makeSecrets());
});
const { redis, main, ready, message, part, there, edit, sweeps, servedSnapshot, running } = createWorkloads(() => bed);

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

describe('an operator of an earlier version', () => {
  test('leaves what a later one has written, says so, and writes it again once the annotation is gone', async () => {
    await redis();
    bed.version = '1.10.0';
    await running();
    bed.version = '1.9.3';
    await edit({ resources: { limits: { memory: '1Gi' } } });
    expect(await sweeps()).toEqual([]);
    expect(await ready()).toBe('True Ready');
    expect(await message('WorkloadReady')).toContain('was written by version 1.10.0 of the operator');
    await edit({ type: 'External', url: 'https://llm.example.com' });
    expect(await sweeps()).toEqual([]);
    await edit({ type: 'Deployment', url: null });
    const metadata = { annotations: { 'gateway-operator.dev/version': null } };
    await bed.edit(PARTS.Deployment, 'main-gateway', { metadata });
    expect(await sweeps()).toEqual(['apply Deployment']);
    expect(part('Deployment')?.metadata.annotations).toMatchObject({ 'gateway-operator.dev/version': '1.9.3' });
  });

  test('writes with its own version, and a later one takes over', async () => {
    await redis();
    await running();
    bed.version = '1.3.0';
    await sweeps();
    expect(part('Deployment')?.metadata.annotations).toMatchObject({ 'gateway-operator.dev/version': '1.3.0' });
    expect(await sweeps()).toEqual([]);
  });
});
