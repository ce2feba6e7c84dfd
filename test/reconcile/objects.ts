// Which objects do tests of reconcile begin with? The sample's, with what a test wants otherwise.
import { type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds/kinds.ts';
import { AUTH_API_VERSION, INSTANCE_API_VERSION } from '#crds/names/group.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import type { PlatformView } from '../../functions/reconcile/world.ts';

const CORE = [
  RESOURCES.secrets,
  RESOURCES.configMaps,
  RESOURCES.namespaces,
  RESOURCES.events,
  WORKLOAD_OBJECTS.Deployment,
];
export function resourceOf({ kind }: KubeObject): Resource {
  const found = [...kinds, ...CORE].find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no resource for ${kind}`);
  return found;
}

/** The platform of a world that no platform has. */
export const PLATFORM: PlatformView = {
  gatewayImage: '',
  gatewayPullSecrets: [],
  secretPrefixes: [],
  version: '',
  manyProcesses: false,
  knative: false,
};

const base64 = (text: string) => Buffer.from(text).toString('base64');

export const makeSecret = (
  name: string,
  data: Readonly<Record<string, string>>,
  namespace = 'default',
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  type: 'Opaque',
  metadata: { name, namespace },
  data: Object.fromEntries(Object.entries(data).map(([entry, text]) => [entry, base64(text)])),
});

export const PASSWORD = 'the-database-password';

/** The Secrets of an instance, before the instance. */
export const makeSecrets = (dbname = 'gateway'): KubeObject[] => [
  makeSecret('db', { host: 'db', username: 'gateway', password: PASSWORD, dbname }),
  makeSecret('store', { host: 'memory', port: '6379', password: '' }),
  makeSecret('openai', { apiKey: 'sk-upstream', apiBase: 'http://upstream.test/v1' }),
];

export const makeInstance = (spec: object = {}, name = 'main', namespace = 'default'): KubeObject => ({
  apiVersion: INSTANCE_API_VERSION,
  kind: 'GatewayInstance',
  metadata: { name, namespace },
  spec: {
    databaseSecretRef: {
      nameRef: 'db',
      keys: { hostSecret: 'host', usernameSecret: 'username', passwordSecret: 'password', dbnameSecret: 'dbname' },
    },
    redisSecretRef: { nameRef: 'store', keys: { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' } },
    models: [
      {
        modelName: 'small',
        identifier: 'small',
        requiresAuth: true,
        modelCredentials: { nameRef: 'openai', keys: { apiKey: 'apiKey', apiBase: 'apiBase' } },
        gatewayParams: { model: 'openai/small', inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '2' },
      },
      {
        modelName: 'free',
        identifier: 'free',
        requiresAuth: false,
        gatewayParams: { model: 'ollama/free', inputCostPerMillionTokens: '0', outputCostPerMillionTokens: '0' },
      },
    ],
    ...spec,
  },
});

const connectionRef = { instanceRef: { name: 'main', namespace: 'default' } };
const member = (kind: string, name: string, namespace: string, spec: object): KubeObject => ({
  apiVersion: AUTH_API_VERSION,
  kind,
  metadata: { name, namespace },
  spec: { connectionRef, ...spec },
});

export const makeKey = (spec: object = {}, name = 'chat', namespace = 'default'): KubeObject =>
  member('VirtualKey', name, namespace, { keyAlias: name, maxBudget: '10', budgetDuration: '30d', ...spec });

export const makeUser = (spec: object = {}, name = 'alice', namespace = 'default'): KubeObject =>
  member('User', name, namespace, {
    userEmail: `${name}@example.com`,
    autoCreateKey: true,
    keyAlias: `${name}-key`,
    maxBudget: '25',
    budgetDuration: '30d',
    ...spec,
  });

export const makeTeam = (spec: object = {}, name = 'research', namespace = 'default'): KubeObject =>
  member('Team', name, namespace, { teamAlias: name, maxBudget: '100', budgetDuration: '30d', ...spec });
