// The OpenAPI of a group version says what kubectl looks for in it.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createOpenApi } from '../../discovery/openapi.ts';
import { coreResources } from '../../resources/core-resources.ts';
import { customResources } from '../../resources/custom-resources.ts';
import { coreSchema } from '../../schema/core-schemas.ts';
import { isObject, type JsonObject } from '../../schema/json.ts';
import { prune } from '../../schema/prune.ts';

const schema = {
  type: 'object',
  description: 'A sample.',
  properties: { spec: { type: 'object', properties: { a: { type: 'string' } } }, metadata: { type: 'object' } },
};
const samples = customResources({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {},
  spec: {
    group: 'sample.gateway-operator.dev',
    scope: 'Namespaced',
    names: { plural: 'samples', kind: 'Sample' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
});
const openApi = createOpenApi(() => [...coreResources, ...samples]);
const documentAt = (path: string) => openApi().get(path)?.body ?? {};
const custom = documentAt('apis/sample.gateway-operator.dev/v1');
const core = documentAt('api/v1');

const at = (value: unknown, ...path: readonly string[]) =>
  path.reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), value);

function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (!isObject(value)) return [];
  const here = typeof value.$ref === 'string' ? [value.$ref] : [];
  return [...here, ...Object.values(value).flatMap(references)];
}

describe('a document', () => {
  test.each([
    ['a core group', core],
    ['a custom group', custom],
  ])('of %s refers to nothing that it does not have', (_, document) => {
    const schemas = at(document, 'components', 'schemas') as JsonObject;
    const missing = references(document).filter(
      (reference) => !Object.hasOwn(schemas, reference.replace('#/components/schemas/', '')),
    );
    expect(references(document).length).toBeGreaterThan(10);
    expect(missing).toEqual([]);
  });

  test.each([
    ['/api/v1/namespaces/{namespace}/secrets/{name}', core, { group: '', kind: 'Secret', version: 'v1' }],
    ['/api/v1/namespaces/{name}', core, { group: '', kind: 'Namespace', version: 'v1' }],
    [
      '/apis/sample.gateway-operator.dev/v1/namespaces/{namespace}/samples/{name}',
      custom,
      { group: 'sample.gateway-operator.dev', kind: 'Sample', version: 'v1' },
    ],
  ])(
    'says at the PATCH of %s that fields are validated, so kubectl does not validate by itself',
    (path, document, gvk) => {
      const patch = at(document, 'paths', path, 'patch') as { parameters: { name: string }[] };
      expect(at(patch, 'x-kubernetes-group-version-kind')).toEqual(gvk);
      expect(patch.parameters.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['fieldValidation', 'dryRun', 'force']),
      );
    },
  );

  test('describes a custom kind with the metadata of every object', () => {
    const definition = at(custom, 'components', 'schemas', 'dev.gateway-operator.sample.v1.Sample');
    expect(at(definition, 'description')).toBe('A sample.');
    expect(at(definition, 'properties', 'spec', 'properties', 'a', 'type')).toBe('string');
    expect(JSON.stringify(at(definition, 'properties', 'metadata'))).toContain(
      'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
    );
    expect(at(definition, 'x-kubernetes-group-version-kind')).toEqual([
      { group: 'sample.gateway-operator.dev', kind: 'Sample', version: 'v1' },
    ]);
  });
});

test('every group version has a document, with the hash of what it says', () => {
  const hash = createHash('sha512').update(JSON.stringify(core)).digest('hex').toUpperCase();
  expect(openApi().get('api/v1')?.hash).toBe(hash);
  expect([...openApi().keys()]).toEqual(
    expect.arrayContaining(['apis/apps/v1', 'apis/sample.gateway-operator.dev/v1']),
  );
});

describe('the schema of a core kind', () => {
  const unknownOf = (apiVersion: string, kind: string, object: JsonObject) => {
    const own = coreSchema(apiVersion, kind);
    if (own === undefined) throw new Error(`${kind} is not known`);
    return prune(own, { apiVersion, kind, ...object }).unknown;
  };

  test('knows its fields, and names the others as strict decoding does', () => {
    const container = {
      name: 'a',
      image: 'b',
      foo: 1,
      env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k', bar: 1 } } }],
    };
    const object = {
      metadata: { name: 'd', labels: { any: 'thing' }, baz: 1 },
      spec: { template: { spec: { containers: [container] } } },
    };
    expect(unknownOf('apps/v1', 'Deployment', object)).toEqual([
      'metadata.baz',
      'spec.template.spec.containers[0].env[0].valueFrom.secretKeyRef.bar',
      'spec.template.spec.containers[0].foo',
    ]);
  });

  test('takes any object where the kind does', () => {
    const review = { spec: { user: 'u', extra: { any: ['x'] }, resourceAttributes: { verb: 'get' } } };
    expect(unknownOf('authorization.k8s.io/v1', 'SubjectAccessReview', review)).toEqual([]);
    const versions = [
      {
        name: 'v1',
        schema: { openAPIV3Schema: { properties: { a: { properties: { b: { type: 'string', not: {} } } } }, foo: 1 } },
      },
    ];
    expect(unknownOf('apiextensions.k8s.io/v1', 'CustomResourceDefinition', { spec: { versions } })).toEqual([
      'spec.versions[0].schema.openAPIV3Schema.foo',
    ]);
  });

  test('is there for what is built in, and for nothing else', () => {
    expect(coreSchema('v1', 'Secret')?.type).toBe('object');
    expect(coreSchema('apps/v1', 'Secret')).toBeUndefined();
  });
});
