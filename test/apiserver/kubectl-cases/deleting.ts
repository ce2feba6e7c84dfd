// What does kubectl delete, when does it go, and what goes with it?
import { expect, test } from 'vitest';
import type { Bed } from './bed.ts';
import { configMap, widget } from './widgets.ts';

export function deletingCases(bed: () => Bed): void {
  test('delete and delete -f remove objects and wait until they are gone', async () => {
    await bed().must('apply -f -', widget('gone'), configMap('gone'));
    expect(await bed().must('delete -f -', widget('gone'), configMap('gone'))).toBe(
      'widget.kubectl.example.com "gone" deleted\nconfigmap "gone" deleted',
    );
    expect((await bed().kubectl('get wd gone')).code).toBe(1);
    expect((await bed().kubectl('delete wd gone')).err).toContain('widgets.kubectl.example.com "gone" not found');
    expect((await bed().kubectl('delete wd gone --ignore-not-found')).code).toBe(0);
  });

  test('a finalizer holds an object until it is removed, and no new one can be added meanwhile', async () => {
    await bed().must('apply -f -', widget('held', { color: 'red' }, { finalizers: ['example.com/hold'] }));
    await bed().must('delete wd held --wait=false');
    const held = await bed().get('wd held');
    expect(held.metadata).toMatchObject({
      deletionTimestamp: expect.any(String),
      deletionGracePeriodSeconds: 0,
      generation: 2,
    });
    await bed().must('delete wd held --wait=false');
    expect((await bed().get('wd held')).metadata.resourceVersion).toBe(held.metadata.resourceVersion);
    const added = await bed().kubectl(
      `patch wd held --type=merge -p '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'`,
    );
    expect(added.err).toContain(
      'no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}',
    );
    await bed().must(`patch wd held --type=merge -p '{"metadata":{"finalizers":null}}'`);
    expect((await bed().kubectl('get wd held')).code).toBe(1);
  });

  test('what an object owns is deleted after it, and what two own when both are gone', async () => {
    const [first, second] = [await owner(bed(), 'first'), await owner(bed(), 'second')];
    await bed().must(
      'apply -f -',
      configMap('of-first', {}, { ownerReferences: [first] }),
      configMap('of-both', {}, { ownerReferences: [first, second] }),
    );
    await bed().must('delete cm first');
    await bed().until('get cm of-first', ({ code }) => code === 1);
    await bed().until(
      `get cm of-both -o 'jsonpath={.metadata.ownerReferences[*].name}'`,
      ({ out }) => out === 'second',
    );
    await bed().must('delete cm second');
    await bed().until('get cm of-both', ({ code }) => code === 1);
  });

  test('an object whose owner does not exist is collected', async () => {
    const stale = { apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: '11111111-1111-1111-1111-111111111111' };
    await bed().must('create -f -', configMap('stale', {}, { ownerReferences: [stale] }));
    await bed().until('get cm stale', ({ code }) => code === 1);
  });

  test('foreground deletion removes dependents before the owner, orphaning leaves them without it', async () => {
    const blocking = { ...(await owner(bed(), 'fore')), blockOwnerDeletion: true };
    await bed().must(
      'apply -f -',
      configMap('of-fore', {}, { ownerReferences: [blocking], finalizers: ['example.com/hold'] }),
    );
    await bed().must('delete cm fore --cascade=foreground --wait=false');
    await bed().until(`get cm of-fore -o 'jsonpath={.metadata.deletionTimestamp}'`, ({ out }) => out !== '');
    expect((await bed().get('cm fore')).metadata.finalizers).toEqual(['foregroundDeletion']);
    await bed().must(`patch cm of-fore --type=merge -p '{"metadata":{"finalizers":null}}'`);
    await bed().until('get cm fore', ({ code }) => code === 1);
    await bed().must('apply -f -', configMap('of-left', {}, { ownerReferences: [await owner(bed(), 'left')] }));
    await bed().must('delete cm left --cascade=orphan');
    expect((await bed().get('cm of-left')).metadata).not.toHaveProperty('ownerReferences');
  });

  test('a precondition on the uid protects a namesake', async () => {
    await bed().must('create configmap namesake');
    const options = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: '11111111-1111-1111-1111-111111111111' },
    };
    const refused = await bed().kubectl(`delete --raw /api/v1/namespaces/default/configmaps/namesake -f -`, options);
    expect(refused.err).toMatch(
      /Operation cannot be fulfilled on ConfigMap "namesake": the UID in the precondition \(11111111-1111-1111-1111-111111111111\) does not match the UID in record \([-0-9a-f]+\)\. The object might have been deleted and then recreated/,
    );
    await bed().must('get cm namesake');
  });

  test('a namespace takes its content along, refuses new content meanwhile, and waits for finalizers', async () => {
    await bed().must('create namespace going');
    await bed().until('get sa default -n going', ({ code }) => code === 0);
    await bed().must(
      'apply -f -',
      configMap('inside', {}, { namespace: 'going' }),
      widget('inside', { color: 'red' }, { namespace: 'going', finalizers: ['example.com/hold'] }),
    );
    await bed().must('delete ns going --wait=false');
    expect(await bed().must('get ns going')).toMatch(/going +Terminating/);
    const refused = await bed().kubectl('create configmap late -n going');
    expect(refused.err).toContain(
      'configmaps "late" is forbidden: unable to create new content in namespace going because it is being terminated',
    );
    await bed().until('get cm inside -n going', ({ code }) => code === 1);
    await bed().until('describe ns going', ({ out }) => out.includes('example.com/hold in 1 resource instances'));
    await bed().must(`patch wd inside -n going --subresource=status --type=merge -p '{"status":{"phase":"Leaving"}}'`);
    await bed().must(`patch wd inside -n going --type=merge -p '{"metadata":{"finalizers":null}}'`);
    await bed().until('get ns going', ({ code }) => code === 1);
    expect((await bed().kubectl('create configmap x -n going')).err).toContain('namespaces "going" not found');
    expect((await bed().kubectl('delete ns default')).err).toContain('this namespace may not be deleted');
  });

  test('a file that begins with its namespace is deleted whole', async () => {
    const file = [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'whole' } },
      configMap('a', {}, { namespace: 'whole' }),
      widget('b', { color: 'red' }, { namespace: 'whole' }),
    ];
    await bed().must('apply -f -', ...file);
    expect(await bed().must('delete -f -', ...file)).toBe(
      'namespace "whole" deleted\nconfigmap "a" deleted\nwidget.kubectl.example.com "b" deleted',
    );
    expect((await bed().kubectl('get ns whole')).code).toBe(1);
  });

  test('all objects of a kind are deleted with one request', async () => {
    await bed().must(
      'apply -f -',
      configMap('m1', {}, { labels: { many: 'yes' } }),
      configMap('m2', {}, { labels: { many: 'yes' } }),
    );
    await bed().must(`delete --raw '/api/v1/namespaces/default/configmaps?labelSelector=many'`);
    expect(await bed().must('get cm -l many -o name')).toBe('');
  });

  test('a delete whose options ask for a dry run deletes nothing, of one object or of many', async () => {
    await bed().must('apply -f -', configMap('dry', {}, { labels: { dry: 'yes' } }));
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] };
    await bed().must('delete --raw /api/v1/namespaces/default/configmaps/dry -f -', options);
    await bed().must(`delete --raw '/api/v1/namespaces/default/configmaps?labelSelector=dry' -f -`, options);
    expect(await bed().must('get cm -l dry -o name')).toBe('configmap/dry');
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
    await bed().must('apply -f -', definition);
    await bed().must('wait --for=condition=Established crd/brief.kubectl.example.com --timeout=10s');
    await bed().until('get brief', ({ code }) => code === 0);
    await bed().must('create -f -', { apiVersion: 'kubectl.example.com/v1', kind: 'Brief', metadata: { name: 'one' } });
    await bed().must('delete crd brief.kubectl.example.com');
    await bed().until('get --raw /apis/kubectl.example.com/v1/brief', ({ code }) => code === 1);
    await bed().must('apply -f -', definition);
    await bed().until('get --raw /apis/kubectl.example.com/v1/brief', ({ code }) => code === 0);
    expect(JSON.parse(await bed().must('get --raw /apis/kubectl.example.com/v1/brief')).items).toEqual([]);
    await bed().must('delete crd brief.kubectl.example.com');
  });
}

async function owner(bed: Bed, name: string): Promise<object> {
  await bed.must('create -f -', configMap(name));
  const { metadata } = await bed.get(`cm ${name}`);
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: metadata.uid };
}
