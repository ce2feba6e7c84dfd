// Promises of every cluster: run by the test double and by the HTTP client against real API servers.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUTH_API_VERSION, AUTH_GROUP, FINALIZER, VERSION } from '#crds/names/group.ts';
import {
  type Cluster,
  ClusterError,
  hasTooManyKeys,
  type KubeObject,
  MAX_KEYS,
  RESOURCES,
  type Resource,
  toFieldSelector,
} from '../cluster.ts';

export interface ClusterUnderTest {
  readonly cluster: Cluster;
  /** An existing, empty namespace that only this suite uses. */
  readonly namespace: string;
  readonly close?: () => Promise<void>;
}

const VIRTUAL_KEYS: Resource = { group: AUTH_GROUP, version: VERSION, plural: 'virtualkeys', kind: 'VirtualKey' };

/**
 * The promises of ports/cluster.ts. VirtualKey must be known to the cluster, with a status subresource and selectable
 * fields.
 */
export function describeCluster(name: string, make: () => Promise<ClusterUnderTest>): void {
  describe(name, () => {
    let subject: ClusterUnderTest;
    let count = 0;
    beforeAll(async () => {
      subject = await make();
    });
    afterAll(async () => {
      await subject?.close?.();
    });
    const newName = (prefix: string) => {
      count += 1;
      return `${prefix}-${count}`;
    };
    const configMap = (name: string, more: Partial<KubeObject['metadata']> = {}, data = {}): KubeObject => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: subject.namespace, ...more },
      data,
    });
    const virtualKey = (name: string, spec = {}, more: Partial<KubeObject['metadata']> = {}): KubeObject => ({
      apiVersion: AUTH_API_VERSION,
      kind: 'VirtualKey',
      metadata: { name, namespace: subject.namespace, ...more },
      spec: {
        keyAlias: name,
        maxBudget: '10',
        budgetDuration: '30d',
        connectionRef: { instanceRef: { name: 'main', namespace: subject.namespace } },
        ...spec,
      },
    });
    const create = async (resource: Resource, object: KubeObject): Promise<KubeObject> => {
      const written = await subject.cluster.create(resource, object);
      if (!written.ok) throw new Error(`${written.refusal}: ${written.message}`);
      return written.object;
    };
    const read = (resource: Resource, object: KubeObject) =>
      subject.cluster.get(resource, subject.namespace, object.metadata.name);

    test('what is created can be read, with uid, resourceVersion and creation time; what is not there is undefined', async () => {
      const object = await create(RESOURCES.configMaps, configMap(newName('map'), {}, { a: '1' }));
      expect(object.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
      expect(object.metadata.resourceVersion).toMatch(/^\d+$/);
      expect(object.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(await read(RESOURCES.configMaps, object)).toEqual(object);
      expect(await subject.cluster.get(RESOURCES.configMaps, subject.namespace, 'nobody')).toBeUndefined();
    });

    test('a second object of the same name is refused as `exists`, a malformed one as `invalid`', async () => {
      const name = newName('map');
      await create(RESOURCES.configMaps, configMap(name));
      expect(await subject.cluster.create(RESOURCES.configMaps, configMap(name))).toMatchObject({ refusal: 'exists' });
      expect(await subject.cluster.create(RESOURCES.configMaps, configMap('Not A Name'))).toMatchObject({
        refusal: 'invalid',
      });
    });

    test('a list of metadata has the metadata of each object', async () => {
      const labels = { 'example.com/set': newName('set') };
      const objects = [
        await create(RESOURCES.configMaps, configMap(newName('map'), { labels }, { a: 'x'.repeat(1000) })),
        await create(RESOURCES.configMaps, configMap(newName('map'), { labels })),
      ];
      const selection = { namespace: subject.namespace, labelSelector: `example.com/set=${labels['example.com/set']}` };
      const listed = await subject.cluster.list(RESOURCES.configMaps, { ...selection, metadataOnly: true });
      expect(listed.map(({ metadata }) => metadata)).toEqual(
        (await subject.cluster.list(RESOURCES.configMaps, selection)).map(({ metadata }) => metadata),
      );
      expect(new Set(listed.map(({ metadata }) => metadata.uid))).toEqual(
        new Set(objects.map(({ metadata }) => metadata.uid)),
      );
    });

    test('of an object only its metadata may be read', async () => {
      const object = await create(RESOURCES.configMaps, configMap(newName('map'), {}, { a: '1' }));
      const { apiVersion, kind, metadata } = object;
      const how = { metadataOnly: true } as const;
      const found = await subject.cluster.get(RESOURCES.configMaps, subject.namespace, metadata.name, how);
      expect(found).toEqual({ apiVersion, kind, metadata });
      expect(await subject.cluster.get(RESOURCES.configMaps, subject.namespace, 'nobody', how)).toBeUndefined();
    });

    test('of a Secret or ConfigMap with very many keys only the name is read, of one with as many as allowed everything', async () => {
      const { cluster, namespace } = subject;
      const fill = (length: number) => Object.fromEntries(Array.from({ length }, (_, index) => [`k${index}`, '']));
      const ofSecret = async (keys: number) => {
        const type = { apiVersion: 'v1', kind: 'Secret' };
        const metadata = { name: newName('secret'), namespace };
        await create(RESOURCES.secrets, { ...type, metadata, data: fill(keys) });
        return cluster.get(RESOURCES.secrets, namespace, metadata.name);
      };
      expect((await ofSecret(MAX_KEYS))?.data).toEqual(fill(MAX_KEYS));
      const found = await ofSecret(5 * MAX_KEYS);
      expect(found?.metadata).toEqual({ name: expect.any(String), namespace });
      expect(found && hasTooManyKeys(found)).toBe(true);
      const map = await create(RESOURCES.configMaps, configMap(newName('map'), {}, fill(5 * MAX_KEYS)));
      const fieldSelector = toFieldSelector({ 'metadata.name': map.metadata.name });
      const listed = await cluster.list(RESOURCES.configMaps, { namespace, fieldSelector, limit: 1 });
      expect(listed.map(hasTooManyKeys)).toEqual([true]);
    });

    test('a Secret written with stringData is read back as base64 data', async () => {
      const object = await create(RESOURCES.secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: newName('secret'), namespace: subject.namespace },
        stringData: { key: 'sk-ä' },
      });
      expect(object.stringData).toBeUndefined();
      expect(object.data).toEqual({ key: 'c2stw6Q=' });
    });

    test('a merge patch merges maps, replaces lists, removes with null, and keeps the rest', async () => {
      const { metadata } = await create(
        RESOURCES.configMaps,
        configMap(newName('map'), { labels: { x: '1' } }, { a: '1', b: '2' }),
      );
      const patched = await subject.cluster.patch(RESOURCES.configMaps, subject.namespace, metadata.name, {
        metadata: { labels: { y: '2' } },
        data: { a: null, c: '3' },
      });
      expect(patched).toMatchObject({
        ok: true,
        object: { metadata: { labels: { x: '1', y: '2' } }, data: { b: '2', c: '3' } },
      });
      expect(patched.ok && patched.object.data).toEqual({ b: '2', c: '3' });
      expect(patched.ok && patched.object.metadata.resourceVersion).not.toBe(metadata.resourceVersion);
    });

    test('a patch that changes nothing keeps the resourceVersion', async () => {
      const { metadata } = await create(RESOURCES.configMaps, configMap(newName('map'), {}, { a: '1' }));
      const patched = await subject.cluster.patch(RESOURCES.configMaps, subject.namespace, metadata.name, {
        data: { a: '1' },
      });
      expect(patched.ok && patched.object.metadata.resourceVersion).toBe(metadata.resourceVersion);
    });

    test('a stale resourceVersion or another uid in a patch is a `conflict`, a missing object is `gone`', async () => {
      const { metadata } = await create(RESOURCES.configMaps, configMap(newName('map')));
      const patch = (body: Record<string, unknown>, name = metadata.name) =>
        subject.cluster.patch(RESOURCES.configMaps, subject.namespace, name, body);
      const { resourceVersion } = metadata;
      expect(await patch({ metadata: { resourceVersion }, data: { a: '1' } })).toMatchObject({ ok: true });
      expect(await patch({ metadata: { resourceVersion }, data: { a: '2' } })).toMatchObject({ refusal: 'conflict' });
      const uid = '00000000-0000-4000-8000-000000000000';
      expect(await patch({ metadata: { uid }, data: { a: '3' } })).toMatchObject({ refusal: 'conflict' });
      expect(await patch({ data: {} }, 'nobody')).toMatchObject({ refusal: 'gone' });
    });

    test('generation counts edits of spec only, and status is written by its subresource only', async () => {
      const name = newName('key');
      const created = await create(VIRTUAL_KEYS, { ...virtualKey(name), status: { isActive: true } });
      expect(created.metadata.generation).toBe(1);
      expect(created.status).toBeUndefined();
      const patch = (body: Record<string, unknown>, part?: 'status') =>
        subject.cluster.patch(VIRTUAL_KEYS, subject.namespace, name, body, part);
      const labelPatched = await patch({ metadata: { labels: { a: 'b' } }, status: { isActive: true } });
      expect(labelPatched).toMatchObject({ ok: true, object: { metadata: { generation: 1 } } });
      expect(labelPatched.ok && labelPatched.object.status).toBeUndefined();
      const statusPatched = await patch({ spec: { maxBudget: '99' }, status: { isActive: true } }, 'status');
      expect(statusPatched).toMatchObject({
        ok: true,
        object: { metadata: { generation: 1 }, spec: { maxBudget: '10' }, status: { isActive: true } },
      });
      const edited = await patch({ spec: { maxBudget: '99' } });
      expect(edited).toMatchObject({
        ok: true,
        object: { metadata: { generation: 2 }, spec: { maxBudget: '99' }, status: { isActive: true } },
      });
    });

    test('a list is by namespace, label and selectable field; a field that is not selectable throws', async () => {
      const one = newName('listed');
      const two = newName('listed');
      await create(VIRTUAL_KEYS, virtualKey(one, { keyAlias: `alias, of=${one}\\` }, { labels: { set: one } }));
      await create(VIRTUAL_KEYS, virtualKey(two, {}, { labels: { set: two } }));
      const names = async (selection: { fieldSelector?: string; labelSelector?: string; limit?: number }) =>
        (await subject.cluster.list(VIRTUAL_KEYS, { namespace: subject.namespace, ...selection })).map(
          ({ metadata }) => metadata.name,
        );
      expect(await names({})).toEqual(expect.arrayContaining([one, two]));
      expect(await names({ limit: 1 })).toHaveLength(1);
      expect(await names({ labelSelector: `set=${two}` })).toEqual([two]);
      expect(await names({ labelSelector: `set in (${one},${two}),set!=${two}` })).toEqual([one]);
      expect(await names({ labelSelector: 'set,!other,set notin (nothing)' })).toEqual([one, two]);
      expect(await names({ fieldSelector: `metadata.name=${one}` })).toEqual([one]);
      expect(await names({ fieldSelector: `spec.keyAlias=alias\\, of\\=${one}\\\\` })).toEqual([one]);
      expect(await names({ fieldSelector: `spec.connectionRef.instanceRef.name=main,spec.keyAlias=${two}` })).toEqual([
        two,
      ]);
      await expect(names({ fieldSelector: 'spec.maxBudget=10' })).rejects.toThrow(ClusterError);
      const allNamespaces = await subject.cluster.list(VIRTUAL_KEYS, { labelSelector: `set=${one}` });
      const ownNamespace = allNamespaces.filter(({ metadata }) => metadata.namespace === subject.namespace);
      expect(ownNamespace.map(({ kind, apiVersion }) => `${apiVersion} ${kind}`)).toEqual([
        `${AUTH_API_VERSION} VirtualKey`,
      ]);
    });

    test('a delete of another uid is a `conflict`, of nothing `gone`', async () => {
      const { metadata } = await create(RESOURCES.configMaps, configMap(newName('map')));
      const remove = (uid: string) =>
        subject.cluster.delete(RESOURCES.configMaps, subject.namespace, metadata.name, uid);
      expect(await remove('00000000-0000-4000-8000-000000000000')).toMatchObject({ refusal: 'conflict' });
      expect(await remove(metadata.uid ?? '')).toMatchObject({ ok: true });
      expect(await remove(metadata.uid ?? '')).toMatchObject({ refusal: 'gone' });
    });

    test('a finalizer holds a deleted object, none can be added then, and the last one taken away lets it go', async () => {
      const name = newName('reserved');
      const { metadata } = await create(VIRTUAL_KEYS, virtualKey(name, {}, { finalizers: [FINALIZER] }));
      const remove = () => subject.cluster.delete(VIRTUAL_KEYS, subject.namespace, name, metadata.uid ?? '');
      expect(await remove()).toMatchObject({ ok: true });
      const deleted = await subject.cluster.get(VIRTUAL_KEYS, subject.namespace, name);
      expect(deleted?.metadata.deletionTimestamp).toMatch(/Z$/);
      expect(await remove()).toMatchObject({ ok: true });
      const patch = (finalizers: string[]) =>
        subject.cluster.patch(VIRTUAL_KEYS, subject.namespace, name, { metadata: { finalizers } });
      expect(await patch([FINALIZER, 'example.com/more'])).toMatchObject({ refusal: 'invalid' });
      expect(await patch([])).toMatchObject({ ok: true });
      expect(await subject.cluster.get(VIRTUAL_KEYS, subject.namespace, name)).toBeUndefined();
    });

    test('server-side apply creates, updates, and removes what it applies no longer, but not what others wrote', async () => {
      const name = newName('applied');
      const first = await subject.cluster.apply(RESOURCES.configMaps, configMap(name, {}, { a: '1', b: '2' }));
      expect(first).toMatchObject({ ok: true, object: { data: { a: '1', b: '2' } } });
      await subject.cluster.patch(RESOURCES.configMaps, subject.namespace, name, {
        metadata: { labels: { theirs: 'x' } },
      });
      const second = await subject.cluster.apply(
        RESOURCES.configMaps,
        configMap(name, { labels: { ours: 'y' } }, { a: '1', c: '3' }),
      );
      expect(second.ok && second.object.data).toEqual({ a: '1', c: '3' });
      expect(second.ok && second.object.metadata.labels).toMatchObject({ ours: 'y', theirs: 'x' });
    });

    test('server-side apply with a uid writes to that object only: another one, or none, is a `conflict`', async () => {
      const name = newName('applied');
      const apply = (uid: string, a: string) =>
        subject.cluster.apply(RESOURCES.configMaps, configMap(name, { uid }, { a }));
      const nobody = '00000000-0000-4000-8000-000000000000';
      expect(await apply(nobody, '1')).toMatchObject({ refusal: 'conflict' });
      const { metadata } = await create(RESOURCES.configMaps, configMap(name, {}, { a: '1' }));
      expect(await apply(nobody, '2')).toMatchObject({ refusal: 'conflict' });
      expect(await apply(metadata.uid ?? '', '3')).toMatchObject({ ok: true, object: { data: { a: '3' } } });
    });

    test('server-side apply with a resourceVersion writes over that version only: a later one is a `conflict`', async () => {
      const name = newName('applied');
      const apply = (metadata: Partial<KubeObject['metadata']>, a: string) =>
        subject.cluster.apply(RESOURCES.configMaps, configMap(name, metadata, { a }));
      const { metadata } = await create(RESOURCES.configMaps, configMap(name, {}, { a: '1' }));
      const { resourceVersion = '' } = metadata;
      expect(await apply({ resourceVersion }, '2')).toMatchObject({ ok: true, object: { data: { a: '2' } } });
      expect(await apply({ resourceVersion }, '3')).toMatchObject({ refusal: 'conflict' });
      expect(await apply({}, '4')).toMatchObject({ ok: true, object: { data: { a: '4' } } });
    });

    test('discovery tells what is served, and what is not', async () => {
      expect(await subject.cluster.serves(RESOURCES.configMaps)).toBe(true);
      expect(await subject.cluster.serves(VIRTUAL_KEYS)).toBe(true);
      expect(await subject.cluster.serves({ ...VIRTUAL_KEYS, plural: 'widgets' })).toBe(false);
      const nowhere: Resource = { group: 'nobody.example.com', version: 'v1', plural: 'widgets', kind: 'Widget' };
      expect(await subject.cluster.serves(nowhere)).toBe(false);
    });

    test('nothing is created in a namespace that is being deleted: `terminating`', async () => {
      const name = newName(`${subject.namespace}-dying`);
      const namespace = await create(RESOURCES.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      // An object that its finalizer keeps, so that the namespace stays too.
      await create(RESOURCES.configMaps, configMap('holder', { namespace: name, finalizers: ['example.com/hold'] }));
      await subject.cluster.delete(RESOURCES.namespaces, undefined, name, namespace.metadata.uid ?? '');
      const result = await subject.cluster.create(RESOURCES.configMaps, configMap('late', { namespace: name }));
      expect(result).toMatchObject({ refusal: 'terminating' });
      await subject.cluster.patch(RESOURCES.configMaps, name, 'holder', { metadata: { finalizers: null } });
    });

    test('an administrator may read a Secret, and all of a namespace', async () => {
      const admin = {
        username: 'admin',
        groups: ['system:masters', 'system:authenticated'],
        extra: { 'example.com/Scope': ['a'] },
      };
      for (const name of ['any', undefined])
        expect(await subject.cluster.may(admin, 'get', RESOURCES.secrets, subject.namespace, name)).toBe(true);
    });
  });
}
