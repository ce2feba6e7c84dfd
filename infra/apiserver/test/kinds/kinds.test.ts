import { expect, test } from 'vitest';
import { customResourceDefinition } from '../../kinds/custom-resource-definition.ts';
import { configMap, secret } from '../../kinds/data.ts';
import { namespace } from '../../kinds/namespace.ts';
import type { KubeObject } from '../../object.ts';

const made = (kind: string, members: object, apiVersion = 'v1'): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name: 'a' },
  ...members,
});

test('stringData wins over data, becomes base64 and is not kept', () => {
  const prepared = secret.applyDefaults?.(made('Secret', { data: { a: 'eA==', b: 'eA==' }, stringData: { b: 'y' } }));
  expect(prepared).toMatchObject({ type: 'Opaque', data: { a: 'eA==', b: 'eQ==' } });
  expect(prepared).not.toHaveProperty('stringData');
});

test('a Secret of a known type has the entries of its type', () => {
  const fields = secret
    .validate?.(made('Secret', { type: 'kubernetes.io/tls', data: { 'tls.crt': '' } }))
    ?.map(({ field }) => field);
  expect(fields).toEqual(['data[tls.key]']);
});

test('what is immutable stays so, in Secrets and ConfigMaps', () => {
  for (const strategy of [secret, configMap]) {
    const old = made('X', { immutable: true, data: { a: 'eA==' } });
    const changed = strategy.validate?.(made('X', { data: { a: 'eQ==' } }), old)?.map(({ field }) => field);
    expect(changed).toEqual(['immutable', 'data']);
  }
});

test('a namespace is labelled with its name and keeps its finalizer', () => {
  expect(namespace.prepareForCreate?.(made('Namespace', {}))).toMatchObject({
    metadata: { labels: { 'kubernetes.io/metadata.name': 'a' } },
    spec: { finalizers: ['kubernetes'] },
  });
  const changed = made('Namespace', { spec: { finalizers: [] } });
  expect(namespace.prepareForUpdate?.(changed, made('Namespace', { spec: { finalizers: ['x'] } }))).toMatchObject({
    spec: { finalizers: ['x'] },
  });
  const leaving = { ...made('Namespace', {}), metadata: { name: 'a', deletionTimestamp: '2026-01-01T00:00:00Z' } };
  expect(namespace.updateStatus?.(leaving, '')).toMatchObject({ status: { phase: 'Terminating' } });
});

const crd = (change: object = {}, version: object = {}): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'toys.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'toys', kind: 'Toy' },
    versions: [
      { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } }, ...version },
    ],
    ...change,
  },
});

test('a CRD is established when it is written', () => {
  const observed = customResourceDefinition.updateStatus?.(crd(), '2026-01-01T00:00:00Z');
  expect(observed).toMatchObject({
    status: {
      storedVersions: ['v1'],
      conditions: [
        { type: 'NamesAccepted', status: 'True' },
        { type: 'Established', status: 'True' },
      ],
    },
  });
  expect(observed && customResourceDefinition.updateStatus?.(observed, '2027-01-01T00:00:00Z')).toEqual(observed);
});

test.each([
  [crd(), []],
  [{ ...crd(), metadata: { name: 'toy.example.com' } }, ['metadata.name']],
  [crd({ conversion: { strategy: 'Webhook' } }), ['spec.conversion.strategy']],
  [crd({}, { storage: false }), ['spec.versions']],
  [crd({}, { schema: undefined }), ['spec.versions[0].schema.openAPIV3Schema']],
  [
    crd({}, { schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-validations': [{ rule: 'self.(' }] } } }),
    [expect.stringContaining('spec.versions[0].schema.openAPIV3Schema')],
  ],
  [crd({ scope: 'Everywhere' }), ['spec.scope']],
  [crd({}, { selectableFields: [{ jsonPath: '.spec[' }] }), ['spec.versions[0].selectableFields[0].jsonPath']],
  [crd({}, { subresources: { scale: {} } }), ['spec.versions[0].subresources.scale']],
])('CRD %# is judged before it is served', (object, fields) => {
  expect(customResourceDefinition.validate?.(object)?.map(({ field }) => field)).toEqual(fields);
});
