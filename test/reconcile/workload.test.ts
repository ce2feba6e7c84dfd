// Is what runs a gateway word for word what was reviewed?
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { StoreConnection } from '#core/ports/backends.ts';
import { neededStoreFiles } from '#core/rules/connections.ts';
import { type GatewayInstance, GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { desiredParts } from '../../functions/reconcile/workload/desired-objects.ts';
import type { WorkloadType } from '../../functions/reconcile/workload/workload-objects.ts';
import { makeInstance } from './objects.ts';

const IMAGE = 'registry.example.com/gateway-operator:0.1.0';

function instanceOf(spec: object): GatewayInstance {
  const { apiVersion, kind, metadata, spec: given } = makeInstance(spec);
  const uid = '00000000-0000-7000-8000-000000000001';
  const own = { ...metadata, uid, generation: 1, resourceVersion: '1', creationTimestamp: '2026-11-21T12:00:00Z' };
  return { apiVersion, kind, metadata: own, spec: GatewayInstanceSpec.parse(given) } as GatewayInstance;
}

const build = (
  type: WorkloadType,
  spec: object = {},
  store: StoreConnection['type'] = 'redis',
  pullSecrets: ReadonlyArray<string> = [],
) =>
  desiredParts(type, {
    instance: instanceOf(spec),
    snapshot: { hash: 'abc', name: 'main-abc' },
    store,
    storeFiles: FILES[store],
    connections: '7.8',
    logins: 'l1',
    image: IMAGE,
    pullSecrets,
    version: '0.1.0',
  });

const filesAt = (host: string) =>
  neededStoreFiles({ keys: instanceOf({}).spec.redisSecretRef.keys }, { host: btoa(host) });
const FILES = { redis: filesAt('kv'), memory: filesAt('memory'), upstash: filesAt('https://eu1.example') };

const everything = {
  image: 'registry.example.com/own-gateway:2',
  scale: { min: 2, max: 5 },
  resources: { requests: { cpu: '0.5', memory: '256Mi' }, limits: { memory: '1Gi' } },
  env: [
    { name: 'LOG_LEVEL', value: 'warn' },
    { name: 'HTTPS_PROXY', valueFrom: { secretKeyRef: { name: 'proxy', key: 'url', optional: true } } },
    { name: 'REGION', valueFrom: { configMapKeyRef: { name: 'where', key: 'region' } } },
    { name: 'PORT', value: '9' },
    { name: 'DATABASE_DIR', value: '/elsewhere' },
  ],
  podLabels: { team: 'platform', 'app.kubernetes.io/instance': 'forged' },
  podAnnotations: { 'prometheus.io/scrape': 'true' },
  serviceAccountName: 'gateway',
};

test.each([
  ['deployment', 'Deployment', {}, 'redis'],
  ['deployment-memory', 'Deployment', {}, 'memory'],
  ['deployment-everything', 'Deployment', { workload: { type: 'Deployment', ...everything } }, 'upstash'],
  ['knative', 'Knative', {}, 'redis'],
  ['knative-everything', 'Knative', { workload: { type: 'Knative', ...everything } }, 'upstash'],
] as const)('%s', async (name, type, spec, store) => {
  const text = build(type, spec, store)
    .map(({ object }) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }))
    .join('---\n');
  await expect(text).toMatchFileSnapshot(`golden/${name}.golden.yaml`);
});

test.each(['Deployment', 'Knative'] as const)('a %s names the Secrets that pull its image', (type) => {
  const template = { spec: { imagePullSecrets: [{ name: 'registry' }] } };
  expect(build(type, {}, 'redis', ['registry'])[0]?.object.spec).toMatchObject({ template });
});

test('a gateway that runs elsewhere, or in the local stack, is made of nothing', () => {
  for (const type of ['External', 'Local'] as const) expect(build(type)).toEqual([]);
});

describe('a field of spec.workload', () => {
  const fields = Object.keys(everything) as Array<keyof typeof everything>;
  test.each(fields)('%s changes what is applied when it is set and when it is cleared', (field) => {
    for (const type of ['Deployment', 'Knative'] as const) {
      const hashes = (workload: object) => JSON.stringify(build(type, { workload: { type, ...workload } }));
      const { [field]: _, ...rest } = everything;
      expect(hashes({ [field]: everything[field] })).not.toBe(hashes({}));
      expect(hashes(everything)).not.toBe(hashes(rest));
    }
  });
});

test('a Deployment has one replica at least: nothing would wake it', () => {
  const scaled = build('Deployment', { workload: { type: 'Deployment', scale: { min: 0 } } });
  expect(scaled[0]?.object.spec).toMatchObject({ replicas: 1 });
  const knative = build('Knative', {
    workload: { type: 'Knative', scale: { min: 0, max: 2, targetRequestsInFlight: 9 } },
  });
  const annotations = {
    'autoscaling.knative.dev/min-scale': '0',
    'autoscaling.knative.dev/max-scale': '2',
    'autoscaling.knative.dev/target': '9',
  };
  expect(knative[0]?.object.spec).toMatchObject({ template: { metadata: { annotations } } });
});

test('another snapshot is another template, so Pods are rolled', () => {
  const first = build('Deployment');
  const instance = instanceOf({});
  const next = desiredParts('Deployment', {
    instance,
    snapshot: { hash: 'def', name: 'main-def' },
    store: 'redis',
    storeFiles: FILES.redis,
    connections: '7.8',
    logins: 'l1',
    image: IMAGE,
    pullSecrets: [],
    version: '0.1.0',
  });
  const changed = next.filter((one, place) => JSON.stringify(one) !== JSON.stringify(first[place]));
  expect(changed.map(({ objectKind }) => objectKind)).toEqual(['Deployment']);
});

test('the credentials of a model named "gpt" and of one named "gpt-4o" are mounted apart, entry by entry', () => {
  const entry = (identifier: string) => ({
    modelName: identifier,
    identifier,
    requiresAuth: true,
    modelCredentials: { nameRef: identifier, keys: { apiKey: 'key', apiBase: 'base' } },
    gatewayParams: { model: `openai/${identifier}` },
  });
  const [made] = build('Deployment', { models: [entry('gpt-4o'), entry('gpt')] });
  const spec = made?.object.spec as { template: { spec: { volumes: Array<{ name: string; projected?: unknown }> } } };
  const items = (name: string) => [
    { key: 'base', path: `${name}/base` },
    { key: 'key', path: `${name}/key` },
  ];
  expect(spec.template.spec.volumes.find(({ name }) => name === 'credentials')?.projected).toEqual({
    sources: ['gpt', 'gpt-4o'].map((name) => ({ secret: { name, optional: true, items: items(name) } })),
  });
});

type Volume = { name: string; secret?: { items: object[] } };
type PodSpec = { template: { spec: { automountServiceAccountToken: boolean; volumes: Volume[] } } };
const podOf = (type: WorkloadType, spec: object = {}, store: StoreConnection['type'] = 'redis') => {
  const [made] = build(type, spec, store);
  if (made === undefined) throw new Error('nothing is made');
  return (made.object.spec as PodSpec).template.spec;
};

test.each(['Deployment', 'Knative'] as const)(
  'no Pod of a %s gets a token of the API server, whatever account it runs as',
  (type) => {
    expect(podOf(type).automountServiceAccountToken).toBe(false);
    expect(podOf(type, { workload: { type, serviceAccountName: 'gateway' } }).automountServiceAccountToken).toBe(false);
    const kinds = build(type, { workload: { type, ...everything } }).map(({ object }) => object.kind);
    expect(kinds.filter((kind) => /Role|Account|Secret/.test(kind))).toEqual([]);
  },
);

describe('a connection whose entries have names of their own', () => {
  const keys = (names: readonly string[]) => Object.fromEntries(names.map((name) => [`${name}Secret`, `MY_${name}`]));
  const database = ['host', 'port', 'username', 'password', 'dbname', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'];
  const counters = [
    'host',
    'port',
    'password',
    'username',
    'ca',
    'clientCertificate',
    'clientKey',
    'sentinelMaster',
    'sentinelPassword',
  ];
  const spec = {
    databaseSecretRef: { nameRef: 'db', keys: keys(database) },
    redisSecretRef: { nameRef: 'store', keys: keys(counters) },
  };
  const volume = (named: string, store: StoreConnection['type'] = 'redis') =>
    podOf('Deployment', spec, store).volumes.find(({ name }) => name === named);
  const items = (named: string, store: StoreConnection['type']) => volume(named, store)?.secret?.items;
  const mounted = (names: readonly string[]) => names.map((name) => ({ key: `MY_${name}`, path: name }));

  test('is mounted under the names that the gateway knows', () => {
    expect(items('database', 'redis')).toEqual(mounted(database));
    expect(items('store', 'redis')).toEqual(mounted(counters));
  });

  test('needs no entry that this kind of store does not have', () => {
    expect(
      [...filesAt('kv'), ...filesAt('a:1,kv'), ...filesAt('fd00::5')].filter((name) => name === 'port'),
    ).toHaveLength(3);
    expect(filesAt('rediss://a:26379,[fd00::5]:7')).toEqual(counters.filter((name) => name !== 'port'));
    expect(items('store', 'memory')).toEqual(mounted(['host']));
    expect(items('store', 'upstash')).toEqual(mounted(['host', 'password']));
  });
});
