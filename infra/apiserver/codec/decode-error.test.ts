// Are wrong types refused in the words of a real API server? Each line was answered so by Kubernetes 1.34.4.
import { expect, test } from 'vitest';
import type { JsonObject } from '../schema/json.ts';
import { objectMeta } from '../schema/object-meta.ts';
import { coreSchema } from './core-kinds.ts';
import { decodeError } from './decode-error.ts';

const pod = (spec: unknown) => ({ spec: { template: { spec } } });
const quantities = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const field = (kind: string, name: string, type: string) =>
  `json: cannot unmarshal ${kind} into Go struct field ${name} of type ${type}`;

const table: ReadonlyArray<[apiVersion: string, kind: string, object: JsonObject, words: string | undefined]> = [
  [
    'v1',
    'ConfigMap',
    { data: { a: 'b' }, binaryData: { c: 'AAEC' }, immutable: null, metadata: { labels: null } },
    undefined,
  ],
  ['v1', 'ConfigMap', { data: { a: 1 } }, field('number', 'ConfigMap.data', 'string')],
  ['v1', 'ConfigMap', { data: { a: true, b: {} } }, field('bool', 'ConfigMap.data', 'string')],
  ['v1', 'ConfigMap', { data: 'x' }, field('string', 'ConfigMap.data', 'map[string]string')],
  ['v1', 'ConfigMap', { data: [] }, field('array', 'ConfigMap.data', 'map[string]string')],
  ['v1', 'ConfigMap', { immutable: 'x' }, field('string', 'ConfigMap.immutable', 'bool')],
  ['v1', 'ConfigMap', { metadata: { labels: { a: 1 } } }, field('number', 'ObjectMeta.metadata.labels', 'string')],
  ['v1', 'ConfigMap', { metadata: 'x' }, field('string', 'ConfigMap.metadata', 'v1.ObjectMeta')],
  ['v1', 'ConfigMap', { binaryData: { a: '!!' } }, 'illegal base64 data at input byte 0'],
  ['v1', 'Secret', { data: { a: 'not base64' } }, 'illegal base64 data at input byte 3'],
  ['v1', 'Secret', { data: { a: 5 } }, field('number', 'Secret.data', '[]uint8')],
  [
    'v1',
    'Service',
    {
      spec: {
        ports: [
          { port: 80, targetPort: 'http' },
          { port: 81, targetPort: 82 },
        ],
      },
    },
    undefined,
  ],
  ['v1', 'Service', { spec: { ports: [{ port: 'x' }] } }, field('string', 'ServicePort.spec.ports.port', 'int32')],
  [
    'v1',
    'Service',
    { spec: { ports: [{ port: 80.5 }] } },
    field('number 80.5', 'ServicePort.spec.ports.port', 'int32'),
  ],
  [
    'v1',
    'Service',
    { spec: { ports: [{ port: 99999999999 }] } },
    field('number 99999999999', 'ServicePort.spec.ports.port', 'int32'),
  ],
  [
    'v1',
    'Service',
    { spec: { ports: [{ port: 80, targetPort: true }] } },
    field('bool', 'ServicePort.spec.ports.targetPort', 'int32'),
  ],
  ['apps/v1', 'Deployment', { spec: { replicas: 'x' } }, field('string', 'DeploymentSpec.spec.replicas', 'int32')],
  ['apps/v1', 'Deployment', { spec: 5 }, field('number', 'Deployment.spec', 'v1.DeploymentSpec')],
  [
    'apps/v1',
    'Deployment',
    pod({ containers: 'x' }),
    field('string', 'PodSpec.spec.template.spec.containers', '[]v1.Container'),
  ],
  [
    'apps/v1',
    'Deployment',
    pod({ containers: [{ name: 1 }] }),
    field('number', 'Container.spec.template.spec.containers.name', 'string'),
  ],
  [
    'apps/v1',
    'Deployment',
    pod({ containers: [{ env: [{ value: 1 }] }] }),
    field('number', 'EnvVar.spec.template.spec.containers.env.value', 'string'),
  ],
  [
    'apps/v1',
    'Deployment',
    pod({ hostNetwork: 'yes' }),
    field('string', 'PodSpec.spec.template.spec.hostNetwork', 'bool'),
  ],
  ['apps/v1', 'Deployment', pod([]), field('array', 'PodTemplateSpec.spec.template.spec', 'v1.PodSpec')],
  ['apps/v1', 'Deployment', pod({ containers: [{ resources: { limits: { cpu: 'x' } } }] }), quantities],
  [
    'apps/v1',
    'Deployment',
    pod({ containers: [{ resources: { limits: { cpu: '100m', memory: 1.5, 'a/b': '1e3' } } }] }),
    undefined,
  ],
  [
    'rbac.authorization.k8s.io/v1',
    'Role',
    { rules: [{ verbs: 'get' }] },
    field('string', 'PolicyRule.rules.verbs', '[]string'),
  ],
  ['rbac.authorization.k8s.io/v1', 'Role', { rules: {} }, field('object', 'Role.rules', '[]v1.PolicyRule')],
  ['coordination.k8s.io/v1', 'Lease', { spec: { renewTime: '2020-01-01T00:00:00.000000Z' } }, undefined],
];

test.each(table)('%s %s %j', (apiVersion, kind, object, words) => {
  expect(decodeError(coreSchema(apiVersion, kind), object, kind)).toBe(words);
});

test('of a custom object the metadata is typed', () => {
  expect(decodeError(objectMeta, { labels: { a: 1 } }, 'ObjectMeta')).toBe(
    field('number', 'ObjectMeta.labels', 'string'),
  );
  expect(decodeError(objectMeta, { creationTimestamp: null, finalizers: ['a'] }, 'ObjectMeta')).toBeUndefined();
});
