import { expect, test } from 'vitest';
import type { KubeObject } from '../../object.ts';
import { crdKey, createRegistry } from '../../resources/registry.ts';

const crd = (plural: string, jsonPath: string): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.example.com` },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural, kind: plural },
    versions: ['v1', 'v2'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      additionalPrinterColumns: [{ name: 'X', type: 'string', jsonPath }],
    })),
  },
  status: { conditions: [{ type: 'Established', status: 'True' }] },
});

test('a definition that cannot be read stops none of the others, and is named in the log', () => {
  const errors: unknown[] = [];
  const log = {
    info: () => undefined,
    warn: () => undefined,
    error: (_: string, fields?: object) => void errors.push(fields),
  };
  const list = (resource: string) => (resource === crdKey ? [crd('bad', '.spec['), crd('good', '.spec.x')] : []);
  const registry = createRegistry({ list, get: () => undefined, subscribe: () => () => {} }, log);
  expect(registry.find('example.com', 'v2', 'good')).toMatchObject({ storedAs: 'example.com/good' });
  expect(registry.find('example.com', 'v1', 'bad')).toBeUndefined();
  expect(errors).toEqual([expect.objectContaining({ name: 'bad.example.com' })]);
});
