import { expect, test } from 'vitest';
import { createObjectCache } from '../../store/object-cache.ts';

test('a list is in the order of namespace and name, whatever the order of writes', () => {
  const cache = createObjectCache();
  for (const path of ['b/a', 'a/z', 'a-b/a', 'a/b', 'a/b-c', 'a/b.c']) {
    const [namespace = '', name = ''] = path.split('/');
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name } };
    cache.apply({ resource: '/configmaps', namespace, name, type: 'ADDED', object });
  }
  const paths = (namespace?: string) =>
    cache.list('/configmaps', namespace).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  expect(paths()).toEqual(['a-b/a', 'a/b', 'a/b-c', 'a/b.c', 'a/z', 'b/a']);
  expect(paths('a')).toEqual(['a/b', 'a/b-c', 'a/b.c', 'a/z']);
  cache.apply({
    resource: '/configmaps',
    namespace: 'a',
    name: 'b',
    type: 'DELETED',
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} },
  });
  expect(paths('a')).toEqual(['a/b-c', 'a/b.c', 'a/z']);
  expect(cache.list('/secrets')).toEqual([]);
});
