// What does a test of reconcile stand on? A cluster, databases and a clock in memory.
import { createHash } from 'node:crypto';
import type { Hono } from 'hono';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { type ConditionType, rowOf } from '#core/conditions/reasons.ts';
import type { Backends, StoreHealth } from '#core/ports/backends.ts';
import { type Cluster, type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { SnapshotStore } from '#core/ports/snapshot-store.ts';
import { gatewayInstances, kinds } from '#crds/kinds/kinds.ts';
import { createReconciler, type ReconcileDependencies } from '../../functions/reconcile/app.ts';
import type { Report } from '../../functions/reconcile/report.ts';
import { backendsOf } from '../doubles/backends.ts';
import { createMemoryCluster, type MemoryCluster } from '../doubles/cluster.ts';
import { createMemoryLog, type MemoryLog } from '../doubles/log.ts';
import { withCheckedLabels } from '../support/metric-labels.ts';
import { openObjects } from '../support/open-objects.ts';
import { createDatabases, type Database, type LossResult } from './databases.ts';
import { resourceOf } from './objects.ts';
import { findShown, noting, searchAfterTest, toOpenText } from './silence.ts';
import { book } from './spending.ts';

export const START = Date.parse('2026-11-21T12:00:00Z');
export const URL = 'http://gateway.test/default/main';

export interface HarnessOptions extends Pick<ReconcileDependencies, 'limits' | 'snapshots'> {
  /** Real databases in place of those in memory. */
  readonly openDatabase?: (dbname: string) => Database;
  /** In place of real time. */
  readonly timer?: Timer;
  /** In place of none: bookings before sums are read. */
  readonly flush?: Backends['flush'];
  readonly maintain?: Backends['maintain'];
  /** When the clock begins. */
  readonly start?: number;
  /** A real cluster in place of the one in memory: as whoever prepares a test, and as reconcile. */
  readonly clusters?: { readonly ours: Cluster; readonly reconciles: Cluster };
  /** Between the cluster in memory and all who use it. */
  readonly through?: (memory: MemoryCluster) => Cluster;
}

export interface Harness {
  readonly cluster: MemoryCluster;
  readonly log: MemoryLog;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly clock: { now(): number; pass(millis: number): void };
  /** The database of this name, as its owner sees it, without the claims of namespaces. */
  database(dbname?: string): Database;
  /** The claims of namespaces in the main database. */
  namespaces(instance?: string): Promise<ReadonlyArray<Claim>>;
  /** From now on the database refuses, or answers again. */
  refuse(refused: boolean, dbname?: string): void;
  store: StoreHealth;
  manyProcesses: boolean;
  /** Domains whose labels and annotations the Secret of a key may have. */
  secretPrefixes: ReadonlyArray<string>;
  inCluster: boolean;
  /** Of the operator. */
  version: string;
  /** Whether Knative is installed. */
  knative: boolean;
  /** Plurals of our kinds whose CRD is gone. */
  readonly unserved: Set<string>;
  /** `nobody`: the platform serves no instance itself. */
  servedAt: string | 'nobody' | undefined;
  /** Called before each call to a database: throw to fail it; `lost`: it happens, and its answer never arrives. */
  onDatabase: (method: string) => LossResult | Promise<LossResult>;
  readonly app: Hono;
  /** From now on there is a store that gateways outside the cluster read. */
  keepSnapshots(): void;
  /** A process that knows nothing of previous ones. */
  restart(): void;
  resync(): Promise<Report>;
  trigger(kind: string, name: string, namespace?: string): Promise<Report>;
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
  /** The policy by which a gateway serves this key value; undefined: the value does not work. */
  policy(value: string | undefined, instance?: string): Promise<KeyPolicy | undefined>;
  /** Of all that holds one on the instance `main`. */
  aliases(): Promise<ReadonlyArray<string>>;
  /**
   * Books a charge to the scope with this alias, in its current window; and to its budget for the model, if it has one.
   */
  spend(alias: string, dollars: string, model?: string): Promise<void>;
  /** Reasons of the events about an object, in the order of their creation. */
  events(name: string): ReadonlyArray<string>;
  /** Writes to the cluster in memory so far; an apply that changed nothing is none. */
  writes(): number;
  /**
   * Of all keys and passwords that were in Secrets so far, those that its cluster, its reports, plans, logs or metrics
   * show.
   */
  shown(): Promise<ReadonlyArray<string>>;
}

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

export function createHarness({
  openDatabase,
  start = START,
  clusters,
  timer,
  through,
  flush,
  maintain,
  ...given
}: HarnessOptions = {}): Harness {
  let now = start;
  const clock = { now: () => now, pass: (millis: number) => (now += millis) };
  const ids = counter();
  const values = new Set<string>();
  const serves = ({ group, plural }: Resource) =>
    !harness.unserved.has(plural) && (group !== 'serving.knative.dev' || harness.knative);
  const memory = noting(createMemoryCluster({ clock, ids, serves }), values);
  const seen = through?.(memory) ?? memory;
  const cluster: Cluster = clusters === undefined ? seen : noting(clusters.ours, values);
  const reconciles = clusters === undefined ? seen : noting(clusters.reconciles, values);
  const log = createMemoryLog();
  const metrics = withCheckedLabels(createMetrics());
  const databases = createDatabases({ openDatabase, clock, before: (method) => harness.onDatabase(method) });
  const backends = backendsOf({
    database: ({ dbname }) => databases.guarded(dbname),
    probeStore: async () => harness.store,
    flush: flush ?? (async () => undefined),
    maintain: maintain ?? (async () => undefined),
    clearStore: async () => undefined,
  });
  /** Snapshots that gateways outside the cluster read. A call may end badly, as one to a database may. */
  const texts = new Map<string, string>();
  const written = async (method: string, write: () => unknown) => {
    const fate = await harness.onDatabase(method);
    write();
    if (fate === 'lost') throw new Error('the answer was lost');
  };
  const snapshots: SnapshotStore = {
    get: async (path) => texts.get(path),
    put: (path, text) => written('put', () => texts.set(path, text)),
    delete: (path) => written('delete', () => texts.delete(path)),
  };
  let keepsSnapshots = false;
  let seed = 0;
  const makeApp = () =>
    createReconciler({
      ...(keepsSnapshots && { snapshots }),
      ...given,
      cluster: reconciles,
      backends,
      platform: {
        servedAt: (instance) =>
          harness.servedAt === 'nobody'
            ? undefined
            : (harness.servedAt ?? `http://gateway.test/${instance.metadata.namespace}/${instance.metadata.name}`),
        gatewayImage: 'registry.test/gateway:1',
        get version() {
          return harness.version;
        },
        get secretPrefixes() {
          return harness.secretPrefixes;
        },
        get manyProcesses() {
          return harness.manyProcesses;
        },
        get inCluster() {
          return harness.inCluster;
        },
      },
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
    });
  let app = makeApp();

  const answered: string[] = [];
  const output = () => JSON.stringify([answered, log.lines]);
  searchAfterTest({ values, output: output, objects: () => memory.objects(), lasts: clusters !== undefined });
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

  const harness: Harness = {
    cluster: memory,
    log,
    metrics,
    clock,
    database: (dbname = 'gateway') => databases.ofObjects(dbname),
    namespaces: async (instance = 'main') => {
      const uid = (await get(gatewayInstances, instance))?.metadata.uid ?? '';
      return (await databases.open('gateway').claims(uid)).filter(({ kind }) => kind === 'namespace');
    },
    refuse: (refused, dbname = 'gateway') => databases.refuse(refused, dbname),
    store: { ok: true },
    manyProcesses: false,
    secretPrefixes: [],
    inCluster: false,
    version: '1.2.0',
    knative: false,
    unserved: new Set(),
    servedAt: undefined,
    onDatabase: () => undefined,
    get app() {
      return app;
    },
    keepSnapshots: () => {
      keepsSnapshots = true;
      app = makeApp();
    },
    restart: () => {
      app = makeApp();
    },
    resync: async () => {
      const report = (await post()) as Report;
      checkReasons(memory.objects());
      return report;
    },
    trigger: (kind, name, namespace = 'default') =>
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
      const { conditions } = await harness.status(kind, name, namespace);
      const ready = conditions?.find(({ type }) => type === 'Ready');
      return ready === undefined ? 'nothing' : `${ready.status} ${ready.reason}`;
    },
    value: async (secret, namespace) => {
      const data = (await get(RESOURCES.secrets, secret, namespace))?.data as Record<string, string> | undefined;
      return data?.key === undefined ? undefined : Buffer.from(data.key, 'base64').toString();
    },
    works: async (value, instance) => (await harness.policy(value, instance)) !== undefined,
    policy: async (value, instance = 'main') => {
      if (value === undefined) return undefined;
      const uid = (await get(gatewayInstances, instance))?.metadata.uid ?? '';
      const hash = sha256(value);
      return (await databases.open('gateway').policies(uid).find([hash])).get(hash)?.key;
    },
    aliases: async () => {
      const uid = (await get(gatewayInstances, 'main'))?.metadata.uid ?? '';
      return (await databases.ofObjects('gateway').claims(uid)).map(({ alias }) => alias);
    },
    spend: async (alias, dollars, model) => {
      const uid = (await get(gatewayInstances, 'main'))?.metadata.uid ?? '';
      await book(databases.open('gateway'), { instanceUid: uid, alias, dollars, model, now });
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
      return findShown(values, `${output()}\n${await metrics.render()}\n${toOpenText(objects)}`);
    },
    writes: () =>
      memory.calls.filter(({ verb, isNoOp }) => verb !== 'get' && verb !== 'list' && isNoOp !== true).length,
  };
  return harness;
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

/**
 * Fails if a condition or an event is not as the table of reasons has it. Reasons without a row are names of rules, and
 * words of controllers.
 */
function checkReasons(objects: ReadonlyArray<KubeObject>): void {
  for (const { kind, metadata, status, ...event } of objects) {
    const conditions =
      kind === 'Event' || !isOurs(kind) ? [] : ((status as Partial<Status> | undefined)?.conditions ?? []);
    for (const { type, status: is, reason } of conditions) {
      const row = rowOf(reason);
      if (row !== undefined && row.conditions?.[type as ConditionType] !== is)
        throw new Error(
          `${kind} ${metadata.name}: ${type} is ${is} with reason ${reason}, which the table of reasons does not have`,
        );
    }
    const { reason, type } = event as { readonly reason?: string; readonly type?: string };
    const severity = kind === 'Event' && reason !== 'BudgetUsed' ? rowOf(reason)?.event : undefined;
    if (severity !== undefined && severity !== type)
      throw new Error(`an event has reason ${reason} and severity ${type}, which the table of reasons does not have`);
  }
}

const isOurs = (kind: string | undefined): boolean => kinds.some((one) => one.kind === kind);
