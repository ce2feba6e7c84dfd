// What do tests of admission judge: a small world that is all right, and reviews about it?

import { type Cluster, type KubeObject, RESOURCES, type Requester, type Resource } from '#core/ports/cluster.ts';
import { gatewayInstances, type KindName, kinds, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { AUTH_API_VERSION, INSTANCE_API_VERSION } from '#crds/names/group.ts';
import { type AdmissionDependencies, createAdmission } from '../../functions/admission/app.ts';
import { createMemoryCluster, type MemoryCluster } from '../doubles/cluster.ts';

type Json = Record<string, unknown>;

export const CONNECTION = { instanceRef: { name: 'main', namespace: 'platform' } };
const SECRET_KEYS = { apiKey: 'apiKey' };

export const modelEntry = (modelName: string, more: Json = {}): Json => ({
  modelName,
  identifier: modelName,
  requiresAuth: true,
  modelCredentials: { nameRef: `creds-${modelName}`, keys: SECRET_KEYS },
  gatewayParams: {
    model: `openai/${modelName}`,
    inputCostPerMillionTokens: '2.5',
    outputCostPerMillionTokens: '10',
  },
  ...more,
});

/** The specs of the good world; a test changes what it is about. */
export const GOOD = {
  GatewayInstance: {
    databaseSecretRef: {
      nameRef: 'database',
      keys: { hostSecret: 'host', usernameSecret: 'user', passwordSecret: 'password', dbnameSecret: 'name' },
    },
    redisSecretRef: {
      nameRef: 'store',
      keys: { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' },
    },
    models: [modelEntry('gpt-4o'), modelEntry('claude')],
  },
  VirtualKey: {
    keyAlias: 'billing-service',
    models: ['gpt-4o'],
    maxBudget: '10',
    budgetDuration: '30d',
    connectionRef: CONNECTION,
    userRef: { name: 'alice' },
    teamRef: { name: 'research' },
  },
  User: {
    connectionRef: CONNECTION,
    userEmail: 'alice@example.com',
    userAlias: 'alice',
    autoCreateKey: true,
    keyAlias: 'alice',
    models: ['gpt-4o'],
    maxBudget: '25',
    budgetDuration: '30d',
    teamRefs: [{ name: 'research' }],
  },
  Team: { connectionRef: CONNECTION, teamAlias: 'research', maxBudget: '100', members: [{ name: 'alice' }] },
} as const satisfies Record<KindName, Json>;

const NAMES: Readonly<Record<KindName, readonly [namespace: string, name: string]>> = {
  GatewayInstance: ['platform', 'main'],
  VirtualKey: ['team-a', 'billing'],
  User: ['team-a', 'alice'],
  Team: ['team-a', 'research'],
};

export function objectOf(kind: KindName, spec: unknown = GOOD[kind], metadata: Json = {}): KubeObject {
  const [namespace, name] = NAMES[kind];
  const apiVersion = kind === 'GatewayInstance' ? INSTANCE_API_VERSION : AUTH_API_VERSION;
  return { apiVersion, kind, metadata: { name, namespace, ...metadata }, spec };
}

export const secretOf = (name: string, stringData: Record<string, string>, namespace = 'platform'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace },
  stringData,
});

export const ADA: Requester = { username: 'ada', uid: '1', groups: ['system:authenticated'] };

export interface World {
  readonly cluster: MemoryCluster;
  /** Puts an object there, past admission. */
  readonly put: (resource: Resource, object: KubeObject) => Promise<KubeObject>;
  readonly drop: (resource: Resource, namespace: string, name: string) => Promise<void>;
}

/**
 * Namespaces, Secrets, an instance with two models, a team, a user; no key. Nobody may read Secrets in `vault`, and
 * `not-yours`: so nobody may read all, except with `mayReadAll`.
 */
export async function createWorld({ mayReadAll = false } = {}): Promise<World> {
  const cluster = createMemoryCluster({
    clock: { now: () => 0 },
    ids: { next: counter((count) => `00000000-0000-7000-8000-${String(count).padStart(12, '0')}`) },
    allows: (_user, _verb, _resource, namespace, name) =>
      mayReadAll || (namespace !== 'vault' && name !== 'not-yours' && name !== undefined),
  });
  const put = async (resource: Resource, object: KubeObject) => {
    const written = await cluster.create(resource, object);
    if (!written.ok) throw new Error(written.message);
    return written.object;
  };
  const drop = async (resource: Resource, namespace: string, name: string) => {
    const object = await cluster.get(resource, namespace, name);
    await cluster.delete(resource, namespace, name, object?.metadata.uid ?? '');
  };
  const database = { host: 'postgres', user: 'gateway', password: 'x', name: 'gateway' };
  for (const name of ['platform', 'team-a', 'team-b']) {
    const metadata = { name, labels: { 'kubernetes.io/metadata.name': name } };
    await put(RESOURCES.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
  }
  await put(RESOURCES.secrets, secretOf('database', database));
  await put(RESOURCES.secrets, secretOf('store', { host: 'valkey', port: '6379', password: '' }));
  await put(RESOURCES.secrets, secretOf('creds-gpt-4o', { apiKey: 'x' }));
  await put(RESOURCES.secrets, secretOf('creds-claude', { apiKey: 'x' }));
  await put(gatewayInstances, objectOf('GatewayInstance'));
  await put(teams, objectOf('Team'));
  await put(users, objectOf('User'));
  return { cluster, put, drop };
}

function counter(to: (count: number) => string): () => string {
  let count = 0;
  return () => {
    count += 1;
    return to(count);
  };
}

/** What stands before /mutate and /validate in tests. */
export const SEGMENT = 'an-unguessable-segment';

/** The dependencies of an admission function that runs for itself. */
export const depsOf = (cluster: Cluster, more: Partial<AdmissionDependencies> = {}): AdmissionDependencies => ({
  cluster,
  clock: { now: () => Date.now() },
  timer: (millis, callback) => {
    const timer = setTimeout(callback, millis);
    return () => clearTimeout(timer);
  },
  hash: () => 'c0ffee00c0ffee00',
  pathSecrets: [SEGMENT],
  ...more,
});

export function requestOf(object: KubeObject, more: Json = {}): Json {
  const kind = kinds.find((one) => one.kind === object.kind) ?? virtualKeys;
  const { namespace, name } = object.metadata;
  return {
    uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
    kind: { group: kind.group, version: kind.version, kind: object.kind },
    resource: { group: kind.group, version: kind.version, resource: kind.plural },
    operation: 'oldObject' in more ? 'UPDATE' : 'CREATE',
    namespace,
    name,
    userInfo: ADA,
    object,
    oldObject: null,
    dryRun: false,
    ...more,
  };
}

export interface Response {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: { readonly code: number; readonly message: string };
  readonly warnings?: ReadonlyArray<string>;
  readonly patchType?: string;
  readonly patch?: string;
}

const apps = new WeakMap<AdmissionDependencies, ReturnType<typeof createAdmission>>();

/** One app for each set of dependencies: thousands of requests go to the same. */
function appOf(deps: AdmissionDependencies): ReturnType<typeof createAdmission> {
  const app = apps.get(deps) ?? createAdmission(deps);
  apps.set(deps, app);
  return app;
}

/** `path` is what stands behind the segment. The body's length is announced, as the API server does. */
export async function post(deps: AdmissionDependencies, path: string, body: unknown): Promise<globalThis.Response> {
  const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return appOf(deps).request(`/${SEGMENT}${path}`, {
    method: 'POST',
    body: text as string,
    headers: { 'content-type': 'application/json', 'content-length': `${Buffer.byteLength(text)}` },
  });
}

/** Sends a review and reads the answer, which must be one. */
export async function ask(deps: AdmissionDependencies, path: string, request: Json): Promise<Response> {
  const reply = await post(deps, path, { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
  const review = (await reply.json()) as { response?: Response };
  if (reply.status !== 200 || review.response === undefined)
    throw new Error(`${reply.status} ${JSON.stringify(review)}`);
  return review.response;
}
