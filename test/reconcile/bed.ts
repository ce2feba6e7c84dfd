// What does a test of reconcile stand on? A cluster, databases and a clock in memory, and the sample's objects.
import { createHash } from 'node:crypto';
import type { Hono } from 'hono';
import { createMemoryBooks } from '#adapters/memory/books.ts';
import { createMemoryCluster, type MemoryCluster } from '#adapters/memory/cluster.ts';
import { createMemoryLog, type MemoryLog } from '#adapters/memory/log.ts';
import { createMemoryRegistry } from '#adapters/memory/registry.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { type Backends, DatabaseUnreachable, type StoreHealth } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Metrics } from '#core/ports/clock.ts';
import { type Cluster, type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { Policies } from '#core/ports/policy.ts';
import type { Registry } from '#core/ports/registry.ts';
import type { Tracer } from '#core/ports/tracer.ts';
import { AUTH_API_VERSION, INSTANCE_API_VERSION } from '#crds/group.ts';
import { gatewayInstances, kinds, teams, users, virtualKeys } from '#crds/kinds.ts';
import { createReconcile } from '../../functions/reconcile/app.ts';
import type { Report } from '../../functions/reconcile/report.ts';
import { PARTS } from '../../functions/reconcile/workload/parts.ts';
import { openObjects } from '../open-objects.ts';
import { findShown, noting, searchAfterTest, toOpenText } from './silence.ts';

export const START = Date.parse('2026-11-21T12:00:00Z');
export const URL = 'http://gateway.test/default/main';

export type Database = Registry & Books & { policies(instanceUid: string): Policies };

export interface BedOptions {
  /** Real databases in place of those in memory. */
  readonly openDatabase?: (dbname: string) => Database;
  /** In place of none. */
  readonly tracer?: Tracer;
  /** In place of real time. */
  readonly timer?: Timer;
  /** When the clock begins. */
  readonly start?: number;
  /** A real cluster in place of the one in memory: as whoever prepares a test, and as reconcile. */
  readonly clusters?: { readonly ours: Cluster; readonly reconciles: Cluster };
  /** Between the cluster in memory and all who use it. */
  readonly through?: (memory: MemoryCluster) => Cluster;
}

export interface Bed {
  readonly cluster: MemoryCluster;
  readonly log: MemoryLog;
  readonly metrics: Metrics;
  readonly clock: { now(): number; pass(millis: number): void };
  /** The database of this name, as its owner sees it. */
  database(dbname?: string): Database;
  /** From now on the database refuses, or answers again. */
  refuse(refused: boolean, dbname?: string): void;
  store: StoreHealth;
  manyProcesses: boolean;
  /** Whether Knative is installed. */
  knative: boolean;
  /** `nobody`: the platform serves no instance itself. */
  servedAt: string | 'nobody' | undefined;
  /** Called before each call to a database: throw to fail it; `lost`: it happens, and its answer never arrives. */
  onDatabase: (method: string) => Lost | Promise<Lost>;
  readonly app: Hono;
  /** A process that knows nothing of the ones before. */
  restart(): void;
  sweep(): Promise<Report>;
  hint(kind: string, name: string, namespace?: string): Promise<Report>;
  dryRun(): Promise<ReadonlyArray<{ action: string; kind: string; namespace: string; name: string; why: string }>>;
  apply(...objects: KubeObject[]): Promise<void>;
  edit(kind: Resource, name: string, patch: Readonly<Record<string, unknown>>, namespace?: string): Promise<KubeObject>;
  /** As the object's controller. */
  editStatus(kind: Resource, name: string, status: object): Promise<void>;
  remove(kind: Resource, name: string, namespace?: string): Promise<void>;
  get(kind: Resource, name: string, namespace?: string): Promise<KubeObject | undefined>;
  status(kind: Resource, name: string, namespace?: string): Promise<Status>;
  ready(kind: Resource, name: string, namespace?: string): Promise<string>;
  /** The value in a key's Secret. */
  value(secret: string, namespace?: string): Promise<string | undefined>;
  /** Whether the gateway would know this value. */
  works(value: string | undefined, instance?: string): Promise<boolean>;
  /** Books a charge to the scope with this alias, in its current window; and to its budget for the model, if it has one. */
  spend(alias: string, dollars: string, model?: string): Promise<void>;
  /** Reasons of the events about an object, in the order of their creation. */
  events(name: string): ReadonlyArray<string>;
  /** Writes to the cluster in memory so far. */
  writes(): number;
  /** Of all keys and passwords that were in Secrets so far, those that its cluster, its reports, plans, logs or metrics show. */
  shown(): Promise<ReadonlyArray<string>>;
}

// biome-ignore lint/suspicious/noConfusingVoidType: most say nothing
type Lost = 'lost' | void;

export type Status = Readonly<Record<string, unknown>> & {
  readonly conditions?: ReadonlyArray<{
    type: string;
    status: string;
    reason: string;
    message: string;
    lastTransitionTime: string;
  }>;
};

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export function createBed({ openDatabase, start = START, clusters, timer, tracer, through }: BedOptions = {}): Bed {
  let now = start;
  const clock = { now: () => now, pass: (millis: number) => (now += millis) };
  const ids = counter();
  const values = new Set<string>();
  const serves = ({ group }: Resource) => group !== 'serving.knative.dev' || bed.knative;
  const memory = noting(createMemoryCluster({ clock, ids, serves }), values);
  const seen = through?.(memory) ?? memory;
  const cluster: Cluster = clusters === undefined ? seen : noting(clusters.ours, values);
  const reconciles = clusters === undefined ? seen : noting(clusters.reconciles, values);
  const log = createMemoryLog();
  const metrics = createMetrics();
  const databases = new Map<string, Database>();
  const refused = new Set<string>();
  const open = (dbname: string): Database => {
    const known = databases.get(dbname);
    if (known !== undefined) return known;
    const books = createMemoryBooks();
    const inMemory = { ...books, ...createMemoryRegistry({ clock, ids, recount: books.recount }) };
    const database = openDatabase?.(dbname) ?? inMemory;
    databases.set(dbname, database);
    return database;
  };
  const guarded = (dbname: string): Database =>
    new Proxy(open(dbname), {
      get: (target, method: keyof Database) => {
        const call = target[method] as (...args: unknown[]) => unknown;
        return async (...args: unknown[]) => {
          if (refused.has(dbname))
            throw new DatabaseUnreachable(`PostgreSQL at db:5432/${dbname} refused the connection`);
          const fate = await bed.onDatabase(String(method));
          const answer = await call(...args);
          if (fate === 'lost') throw new DatabaseUnreachable(`PostgreSQL at db:5432/${dbname} closed the connection`);
          return answer;
        };
      },
    });
  const backends: Backends = {
    database: ({ dbname }) => guarded(dbname),
    probeStore: async () => bed.store,
    flush: async () => undefined,
    clearStore: async () => undefined,
  };
  let seed = 0;
  const makeApp = () =>
    createReconcile({
      cluster: reconciles,
      backends,
      platform: {
        servedAt: (instance) =>
          bed.servedAt === 'nobody'
            ? undefined
            : (bed.servedAt ?? `http://gateway.test/${instance.metadata.namespace}/${instance.metadata.name}`),
        gatewayImage: 'registry.test/gateway:1',
        get manyProcesses() {
          return bed.manyProcesses;
        },
      },
      audits: true,
      clock,
      ids,
      hash: sha256,
      random: (count) => {
        seed += 1;
        return new Uint8Array(createHash('sha512').update(`${seed}`).digest().subarray(0, count));
      },
      timer: timer ?? realTimer,
      log,
      metrics,
      ...(tracer === undefined ? {} : { tracer }),
    });
  let app = makeApp();

  const answered: string[] = [];
  const said = () => JSON.stringify([answered, log.lines]);
  searchAfterTest({ values, said, objects: () => memory.objects(), lasts: clusters !== undefined });
  const post = async (init: RequestInit = {}, query = ''): Promise<unknown> => {
    const answer = await app.request(`/${query}`, { method: 'POST', ...init });
    if (answer.status !== 200) throw new Error(`reconcile answered ${answer.status}: ${await answer.text()}`);
    const text = await answer.text();
    answered.push(text);
    return JSON.parse(text);
  };
  const must = <T extends { readonly ok: boolean }>(written: T): T => {
    if (!written.ok) throw new Error(JSON.stringify(written));
    return written;
  };
  const get = (kind: Resource, name: string, namespace = 'default') => cluster.get(kind, namespace, name);

  const bed: Bed = {
    cluster: memory,
    log,
    metrics,
    clock,
    database: (dbname = 'gateway') => open(dbname),
    refuse: (on, dbname = 'gateway') => {
      if (on) refused.add(dbname);
      else refused.delete(dbname);
    },
    store: { ok: true },
    manyProcesses: false,
    knative: false,
    servedAt: undefined,
    onDatabase: () => undefined,
    get app() {
      return app;
    },
    restart: () => {
      app = makeApp();
    },
    sweep: () => post() as Promise<Report>,
    hint: (kind, name, namespace = 'default') =>
      post({
        headers: {
          'ce-specversion': '1.0',
          'ce-id': '1',
          'ce-source': '/test',
          'ce-type': 'dev.knative.apiserver.ref.update',
        },
        body: JSON.stringify({ kind, namespace, name }),
      }) as Promise<Report>,
    dryRun: async () => ((await post({}, '?dry-run=true')) as { plan: never }).plan,
    apply: async (...objects) => {
      for (const object of objects) {
        const there = await cluster.get(resourceOf(object), object.metadata.namespace, object.metadata.name);
        if (there === undefined) must(await cluster.create(resourceOf(object), object));
        else {
          const {
            spec,
            data,
            metadata: { labels, annotations },
          } = object;
          const patch = JSON.parse(JSON.stringify({ spec, data, metadata: { labels, annotations } }));
          must(await cluster.patch(resourceOf(object), object.metadata.namespace, object.metadata.name, patch));
        }
      }
    },
    edit: async (kind, name, patch, namespace = 'default') => {
      const written = must(await cluster.patch(kind, namespace, name, patch));
      if (!written.ok) throw new Error();
      return written.object;
    },
    editStatus: async (kind, name, status) => {
      must(await cluster.patch(kind, 'default', name, { status }, 'status'));
    },
    remove: async (kind, name, namespace = 'default') => {
      const uid = (await get(kind, name, namespace))?.metadata.uid ?? '';
      must(await cluster.delete(kind, namespace, name, uid));
    },
    get,
    status: async (kind, name, namespace) => ((await get(kind, name, namespace))?.status ?? {}) as Status,
    ready: async (kind, name, namespace) => {
      const { conditions } = await bed.status(kind, name, namespace);
      const ready = conditions?.find(({ type }) => type === 'Ready');
      return ready === undefined ? 'nothing' : `${ready.status} ${ready.reason}`;
    },
    value: async (secret, namespace) => {
      const data = (await get(RESOURCES.secrets, secret, namespace))?.data as Record<string, string> | undefined;
      return data?.key === undefined ? undefined : Buffer.from(data.key, 'base64').toString();
    },
    works: async (value, instance = 'main') => {
      const uid = (await get(gatewayInstances, instance))?.metadata.uid ?? '';
      return value !== undefined && (await open('gateway').policies(uid).find(sha256(value))) !== undefined;
    },
    spend: async (alias, dollars, model) => {
      const uid = (await get(gatewayInstances, 'main'))?.metadata.uid ?? '';
      const claim = (await open('gateway').claims(uid)).find((one) => one.alias === alias);
      if (claim?.policy?.budget === undefined) throw new Error(`${alias} has no budget to spend from`);
      const { windowAt } = await import('#core/window.ts');
      const { parseMoney } = await import('#core/money.ts');
      const scopes = 'modelScopes' in claim.policy ? (claim.policy.modelScopes ?? []) : [];
      const paying = [claim.policy, ...scopes.filter(({ name }) => name === model)];
      const charges = paying.flatMap(({ scopeId, budget, anchor }) =>
        budget === undefined ? [] : [{ scopeId, window: windowAt({ ...budget, anchor }, now) }],
      );
      await open('gateway').book(uid, [
        {
          id: uuidv7(now),
          kind: 'settled',
          charges,
          cost: parseMoney(dollars) ?? 0n,
          tokens: { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 },
          model: 'small',
          identifier: 'small',
          estimated: false,
          settledAt: now,
        },
      ]);
    },
    events: (name) =>
      memory
        .objects(RESOURCES.events)
        .filter(({ involvedObject }) => (involvedObject as { name: string }).name === name)
        .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
        .map(({ reason }) => String(reason)),
    shown: async () => {
      for (const accept of ['application/json', 'text/plain']) {
        const plan = await app.request('/?dry-run=true', { method: 'POST', headers: { accept } });
        answered.push(await plan.text());
      }
      const objects = clusters === undefined ? memory.objects() : await openObjects(clusters.ours);
      return findShown(values, `${said()}\n${metrics.render()}\n${toOpenText(objects)}`);
    },
    writes: () => memory.calls.filter(({ verb }) => verb !== 'get' && verb !== 'list').length,
  };
  return bed;
}

const realTimer: Timer = (millis, callback) => {
  const timer = setTimeout(callback, millis);
  return () => clearTimeout(timer);
};

function counter() {
  let next = 0;
  return {
    next: () => {
      next += 1;
      return `00000000-0000-7000-8000-${String(next).padStart(12, '0')}`;
    },
  };
}

let entries = 0;
function uuidv7(time: number): string {
  entries += 1;
  const hex = time.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${entries.toString(16).padStart(12, '0')}`;
}

const CORE = [RESOURCES.secrets, RESOURCES.configMaps, RESOURCES.namespaces, RESOURCES.events, PARTS.Deployment];
export function resourceOf({ kind }: KubeObject): Resource {
  const found = [...kinds, ...CORE].find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no resource for ${kind}`);
  return found;
}

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
      { modelName: 'free', identifier: 'free', requiresAuth: false, gatewayParams: { model: 'ollama/free' } },
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

export { gatewayInstances, RESOURCES, teams, users, virtualKeys };
