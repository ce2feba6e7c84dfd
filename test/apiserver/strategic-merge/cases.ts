// Patches that show what a strategic merge does.
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';

export type StrategicCase = {
  readonly name: string;
  readonly apiVersion: string;
  readonly kind: 'ConfigMap' | 'Service' | 'Deployment' | 'ServiceAccount';
  readonly target: JsonObject;
  readonly patch: JsonObject;
};

const paths = {
  ConfigMap: '/api/v1/namespaces/default/configmaps',
  Service: '/api/v1/namespaces/default/services',
  ServiceAccount: '/api/v1/namespaces/default/serviceaccounts',
  Deployment: '/apis/apps/v1/namespaces/default/deployments',
} as const;

/** Where objects of a kind are. */
export function folderOf(kind: StrategicCase['kind']): string {
  return paths[kind];
}

const pod = (containers: readonly JsonObject[], more: JsonObject = {}) => ({
  spec: {
    replicas: 1,
    selector: { matchLabels: { a: 'b' } },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers, ...more } },
  },
});
const three = [
  {
    name: 'a',
    image: 'a:1',
    env: [
      { name: 'X', value: '1' },
      { name: 'Y', value: '2' },
    ],
    args: ['p', 'q'],
  },
  { name: 'b', image: 'b:1', ports: [{ containerPort: 80 }, { containerPort: 81 }] },
  { name: 'c', image: 'c:1' },
];
const podPatch = (spec: JsonObject) => ({ spec: { template: { spec } } });

const deployment = (name: string, patch: JsonObject, target: JsonObject = pod(three)): StrategicCase => ({
  name,
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  target,
  patch,
});
const configMap = (name: string, patch: JsonObject, target: JsonObject): StrategicCase => ({
  name,
  apiVersion: 'v1',
  kind: 'ConfigMap',
  target,
  patch,
});

/** What a real API server had before the patch and after it, or said against it. */
export type StrategicAnswer = { readonly live: JsonObject; readonly patched?: JsonObject; readonly refused?: string };

export const strategicCases: readonly StrategicCase[] = [
  configMap('members merge, null removes', { data: { a: null, b: '2', c: '3' } }, { data: { a: '1', b: '1' } }),
  configMap('$patch: replace on a map', { data: { $patch: 'replace', c: '3' } }, { data: { a: '1', b: '1' } }),
  configMap('$patch: delete on a map', { data: { $patch: 'delete' } }, { data: { a: '1' } }),
  configMap('$retainKeys', { data: { $retainKeys: ['a'], a: '2' } }, { data: { a: '1', b: '1' } }),
  configMap(
    'finalizers merge as a set',
    { metadata: { finalizers: ['x/b', 'x/c'] } },
    { metadata: { finalizers: ['x/a', 'x/b'] } },
  ),
  configMap(
    '$deleteFromPrimitiveList',
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['x/a'] } },
    { metadata: { finalizers: ['x/a', 'x/b'] } },
  ),
  configMap(
    '$setElementOrder of primitives',
    { metadata: { '$setElementOrder/finalizers': ['x/c', 'x/a'], finalizers: ['x/c'] } },
    { metadata: { finalizers: ['x/a', 'x/b'] } },
  ),
  configMap(
    'owners merge by uid',
    {
      metadata: {
        ownerReferences: [
          { apiVersion: 'v1', kind: 'ConfigMap', name: 'n', uid: 'u1', controller: true },
          { apiVersion: 'v1', kind: 'ConfigMap', name: 'm', uid: 'u2' },
        ],
      },
    },
    { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'n', uid: 'u1' }] } },
  ),
  deployment('a container merges by its name', podPatch({ containers: [{ name: 'b', image: 'b:2' }] })),
  deployment(
    'a new container comes last',
    podPatch({
      containers: [
        { name: 'd', image: 'd:1' },
        { name: 'a', image: 'a:2' },
      ],
    }),
  ),
  deployment('$patch: delete of a container', podPatch({ containers: [{ name: 'b', $patch: 'delete' }] })),
  deployment(
    '$patch: replace of the containers',
    podPatch({ containers: [{ name: 'z', image: 'z:1' }, { $patch: 'replace' }] }),
  ),
  deployment(
    '$patch: replace inside a container',
    podPatch({ containers: [{ name: 'a', image: 'a:9', $patch: 'replace' }] }),
  ),
  deployment('$patch: delete of what is not there', podPatch({ containers: [{ name: 'nope', $patch: 'delete' }] })),
  deployment(
    'environment merges by name',
    podPatch({
      containers: [
        {
          name: 'a',
          env: [
            { name: 'Y', value: '3' },
            { name: 'Z', value: '4' },
          ],
        },
      ],
    }),
  ),
  deployment('null inside a container removes', podPatch({ containers: [{ name: 'a', args: null, env: null }] })),
  deployment('a list without a merge key is replaced', podPatch({ containers: [{ name: 'a', args: ['r'] }] })),
  deployment(
    'ports merge by their number',
    podPatch({ containers: [{ name: 'b', ports: [{ containerPort: 81, name: 'x' }, { containerPort: 82 }] }] }),
  ),
  deployment(
    '$setElementOrder',
    podPatch({
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }],
      containers: [{ name: 'a', image: 'a:3' }],
    }),
  ),
  deployment(
    '$setElementOrder with a new container in the middle',
    podPatch({
      '$setElementOrder/containers': [{ name: 'a' }, { name: 'n' }, { name: 'b' }, { name: 'c' }],
      containers: [{ name: 'n', image: 'n:1' }],
    }),
  ),
  deployment(
    '$setElementOrder and a deletion',
    podPatch({
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'b' }],
      containers: [
        { name: 'a', $patch: 'delete' },
        { name: 'b', image: 'b:5' },
      ],
    }),
  ),
  deployment(
    '$setElementOrder that says less than the server has',
    podPatch({
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'x' }],
      containers: [{ name: 'x', image: 'x:1' }],
    }),
  ),
  deployment('$retainKeys of a strategy', {
    spec: { strategy: { $retainKeys: ['type'], type: 'Recreate', rollingUpdate: null } },
  }),
  deployment(
    'volumes merge by name and retain their keys',
    podPatch({ volumes: [{ name: 'v', $retainKeys: ['name', 'configMap'], configMap: { name: 'x' } }] }),
    pod(three, { volumes: [{ name: 'v', emptyDir: {} }] }),
  ),
  deployment(
    'volumes keep one source',
    podPatch({
      volumes: [
        { name: 'v', emptyDir: null, secret: { secretName: 's' } },
        { name: 'w', emptyDir: {} },
      ],
    }),
    pod(three, { volumes: [{ name: 'v', emptyDir: {} }] }),
  ),
  deployment(
    'pull secrets merge by name',
    podPatch({ imagePullSecrets: [{ name: 'b' }] }),
    pod(three, { imagePullSecrets: [{ name: 'a' }] }),
  ),
  deployment(
    'tolerations are replaced',
    podPatch({ tolerations: [{ operator: 'Exists' }] }),
    pod(three, { tolerations: [{ key: 'a', operator: 'Exists' }] }),
  ),
  deployment(
    'node selector merges as a map',
    podPatch({ nodeSelector: { b: '2', a: null } }),
    pod(three, { nodeSelector: { a: '1', c: '1' } }),
  ),
  deployment(
    'resources merge as maps',
    podPatch({ containers: [{ name: 'c', resources: { limits: { cpu: '2' } } }] }),
    pod([{ name: 'c', image: 'c:1', resources: { limits: { cpu: '1', memory: '1Gi' } } }]),
  ),
  deployment('an element without its key', podPatch({ containers: [{ image: 'z:1' }] })),
  deployment('an unknown directive', podPatch({ containers: [{ name: 'a', $patch: 'nope' }] })),
  deployment('an object for a list', podPatch({ containers: { name: 'a' } })),
  deployment('a list for an object', { spec: { template: [] } }),
  deployment('text for an object', { spec: { template: 'x' } }),
  deployment('a new map', podPatch({ securityContext: { runAsUser: 1, seLinuxOptions: null } })),
  {
    name: 'ports of a service merge by port',
    apiVersion: 'v1',
    kind: 'Service',
    target: {
      spec: {
        clusterIP: 'None',
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 81 },
        ],
      },
    },
    patch: {
      spec: {
        ports: [
          { port: 81, name: 'c' },
          { port: 82, name: 'd' },
        ],
      },
    },
  },
  {
    name: 'secrets of a service account merge by name',
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    target: { secrets: [{ name: 'a' }] },
    patch: { secrets: [{ name: 'b' }, { name: 'a' }] },
  },
];
