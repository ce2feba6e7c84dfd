// What kubectl deletes, when it goes, and what goes with it.
import { expect, test } from 'vitest';
import { configMap, widget } from '../widgets.ts';
import type { KubectlHarness } from './harness.ts';

export function deletingCases(kubectl: () => KubectlHarness): void {
  test('delete and delete -f remove objects and wait until they are gone', async () => {
    await kubectl().must('apply -f -', widget('gone'), configMap('gone'));
    expect(await kubectl().must('delete -f -', widget('gone'), configMap('gone'))).toBe(
      'widget.kubectl.example.com "gone" deleted\nconfigmap "gone" deleted',
    );
    expect((await kubectl().run('get wd gone')).code).toBe(1);
    expect((await kubectl().run('delete wd gone')).err).toContain('widgets.kubectl.example.com "gone" not found');
    expect((await kubectl().run('delete wd gone --ignore-not-found')).code).toBe(0);
  });

  test('a finalizer holds an object until it is removed, and no new one can be added meanwhile', async () => {
    await kubectl().must('apply -f -', widget('held', { color: 'red' }, { finalizers: ['example.com/hold'] }));
    await kubectl().must('delete wd held --wait=false');
    const held = await kubectl().get('wd held');
    expect(held.metadata).toMatchObject({
      deletionTimestamp: expect.any(String),
      deletionGracePeriodSeconds: 0,
      generation: 2,
    });
    await kubectl().must('delete wd held --wait=false');
    expect((await kubectl().get('wd held')).metadata.resourceVersion).toBe(held.metadata.resourceVersion);
    const added = await kubectl().run(
      `patch wd held --type=merge -p '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'`,
    );
    expect(added.err).toContain(
      'no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}',
    );
    await kubectl().must(`patch wd held --type=merge -p '{"metadata":{"finalizers":null}}'`);
    expect((await kubectl().run('get wd held')).code).toBe(1);
  });

  test('what an object owns is deleted after it, and what two own when both are gone', async () => {
    const [first, second] = [await owner(kubectl(), 'first'), await owner(kubectl(), 'second')];
    await kubectl().must(
      'apply -f -',
      configMap('of-first', {}, { ownerReferences: [first] }),
      configMap('of-both', {}, { ownerReferences: [first, second] }),
    );
    await kubectl().must('delete cm first');
    await kubectl().until('get cm of-first', ({ code }) => code === 1);
    await kubectl().until(
      `get cm of-both -o 'jsonpath={.metadata.ownerReferences[*].name}'`,
      ({ out }) => out === 'second',
    );
    await kubectl().must('delete cm second');
    await kubectl().until('get cm of-both', ({ code }) => code === 1);
  });

  test('an object whose owner does not exist is collected', async () => {
    const stale = { apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: '11111111-1111-1111-1111-111111111111' };
    await kubectl().must('create -f -', configMap('stale', {}, { ownerReferences: [stale] }));
    await kubectl().until('get cm stale', ({ code }) => code === 1);
  });

  test('foreground deletion removes dependents before the owner, orphaning leaves them without it', async () => {
    const blocking = { ...(await owner(kubectl(), 'fore')), blockOwnerDeletion: true };
    await kubectl().must(
      'apply -f -',
      configMap('of-fore', {}, { ownerReferences: [blocking], finalizers: ['example.com/hold'] }),
    );
    await kubectl().must('delete cm fore --cascade=foreground --wait=false');
    await kubectl().until(`get cm of-fore -o 'jsonpath={.metadata.deletionTimestamp}'`, ({ out }) => out !== '');
    expect((await kubectl().get('cm fore')).metadata.finalizers).toEqual(['foregroundDeletion']);
    await kubectl().must(`patch cm of-fore --type=merge -p '{"metadata":{"finalizers":null}}'`);
    await kubectl().until('get cm fore', ({ code }) => code === 1);
    await kubectl().must('apply -f -', configMap('of-left', {}, { ownerReferences: [await owner(kubectl(), 'left')] }));
    await kubectl().must('delete cm left --cascade=orphan');
    expect((await kubectl().get('cm of-left')).metadata).not.toHaveProperty('ownerReferences');
  });

  test('a precondition on the uid protects a namesake', async () => {
    await kubectl().must('create configmap namesake');
    const options = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: '11111111-1111-1111-1111-111111111111' },
    };
    const refused = await kubectl().run(`delete --raw /api/v1/namespaces/default/configmaps/namesake -f -`, options);
    expect(refused.err).toMatch(
      /Operation cannot be fulfilled on ConfigMap "namesake": the UID in the precondition \(11111111-1111-1111-1111-111111111111\) does not match the UID in record \([-0-9a-f]+\)\. The object might have been deleted and then recreated/,
    );
    await kubectl().must('get cm namesake');
  });

  test('a namespace takes its content along, refuses new content meanwhile, and waits for finalizers', async () => {
    await kubectl().must('create namespace going');
    await kubectl().until('get sa default -n going', ({ code }) => code === 0);
    await kubectl().must(
      'apply -f -',
      configMap('inside', {}, { namespace: 'going' }),
      widget('inside', { color: 'red' }, { namespace: 'going', finalizers: ['example.com/hold'] }),
    );
    await kubectl().must('delete ns going --wait=false');
    expect(await kubectl().must('get ns going')).toMatch(/going +Terminating/);
    const refused = await kubectl().run('create configmap late -n going');
    expect(refused.err).toContain(
      'configmaps "late" is forbidden: unable to create new content in namespace going because it is being terminated',
    );
    await kubectl().until('get cm inside -n going', ({ code }) => code === 1);
    expect(await kubectl().must('get ns going')).toMatch(/going +Terminating/);
    await kubectl().must(
      `patch wd inside -n going --subresource=status --type=merge -p '{"status":{"phase":"Leaving"}}'`,
    );
    await kubectl().must(`patch wd inside -n going --type=merge -p '{"metadata":{"finalizers":null}}'`);
    await kubectl().until('get ns going', ({ code }) => code === 1);
    expect((await kubectl().run('create configmap x -n going')).err).toContain('namespaces "going" not found');
    expect((await kubectl().run('delete ns default')).err).toContain('this namespace may not be deleted');
  });

  test('a file that begins with its namespace is deleted whole', async () => {
    const file = [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'whole' } },
      configMap('a', {}, { namespace: 'whole' }),
      widget('b', { color: 'red' }, { namespace: 'whole' }),
    ];
    await kubectl().must('apply -f -', ...file);
    expect(await kubectl().must('delete -f -', ...file)).toBe(
      'namespace "whole" deleted\nconfigmap "a" deleted\nwidget.kubectl.example.com "b" deleted',
    );
    expect((await kubectl().run('get ns whole')).code).toBe(1);
  });

  test('all objects of a kind are deleted with one request', async () => {
    await kubectl().must(
      'apply -f -',
      configMap('m1', {}, { labels: { many: 'yes' } }),
      configMap('m2', {}, { labels: { many: 'yes' } }),
    );
    await kubectl().must(`delete --raw '/api/v1/namespaces/default/configmaps?labelSelector=many'`);
    expect(await kubectl().must('get cm -l many -o name')).toBe('');
  });

  test('a delete whose options ask for a dry run deletes nothing, of one object or of many', async () => {
    await kubectl().must('apply -f -', configMap('dry', {}, { labels: { dry: 'yes' } }));
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] };
    await kubectl().must('delete --raw /api/v1/namespaces/default/configmaps/dry -f -', options);
    await kubectl().must(`delete --raw '/api/v1/namespaces/default/configmaps?labelSelector=dry' -f -`, options);
    expect(await kubectl().must('get cm -l dry -o name')).toBe('configmap/dry');
  });

  test('a CRD takes its objects along', async () => {
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'brief.kubectl.example.com' },
      spec: {
        group: 'kubectl.example.com',
        scope: 'Cluster',
        names: { plural: 'brief', kind: 'Brief' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    };
    await kubectl().must('apply -f -', definition);
    await kubectl().must('wait --for=condition=Established crd/brief.kubectl.example.com --timeout=10s');
    await kubectl().until('get brief', ({ code }) => code === 0);
    await kubectl().must('create -f -', {
      apiVersion: 'kubectl.example.com/v1',
      kind: 'Brief',
      metadata: { name: 'one' },
    });
    await kubectl().must('delete crd brief.kubectl.example.com');
    await kubectl().until('get --raw /apis/kubectl.example.com/v1/brief', ({ code }) => code === 1);
    await kubectl().must('apply -f -', definition);
    await kubectl().until('get --raw /apis/kubectl.example.com/v1/brief', ({ code }) => code === 0);
    expect(JSON.parse(await kubectl().must('get --raw /apis/kubectl.example.com/v1/brief')).items).toEqual([]);
    await kubectl().must('delete crd brief.kubectl.example.com');
  });
}

async function owner(kubectl: KubectlHarness, name: string): Promise<object> {
  await kubectl.must('create -f -', configMap(name));
  const { metadata } = await kubectl.get(`cm ${name}`);
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: metadata.uid };
}
