// An instance as it is: its Secrets, database, counter store, snapshot, and the objects that run its gateway.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Result } from '#core/failure/result.ts';
import { toUtf8 } from '#core/json/bytes.ts';
import { member } from '#core/json/json.ts';
import { cutText } from '#core/json/text.ts';
import { snapshotName } from '#core/keys/object-names.ts';
import { compileSnapshot } from '#core/models/compile-snapshot.ts';
import { modelEntryPrice } from '#core/money/price-list.ts';
import { type DatabaseConnection, type StoreConnection, toServerText } from '#core/ports/backends.ts';
import {
  ClusterError,
  hasTooManyKeys,
  type KubeObject,
  MAX_KEYS,
  RESOURCES,
  type Selection,
  toFieldSelector,
} from '#core/ports/cluster.ts';
import type { Alias } from '#core/ports/registry.ts';
import {
  type ConnectionProblem,
  neededStoreFiles,
  type StoreFile,
  toDatabaseConnection,
  toServiceHost,
  toStoreConnection,
  withServiceHosts,
} from '#core/rules/connections.ts';
import { toProblem } from '#core/rules/finding.ts';
import { noAddress, notPriced } from '#core/rules/instance.ts';
import { createDidYouMean } from '#core/rules/nearest-name.ts';
import {
  createSecretCheck,
  dataOf,
  type SecretFinding,
  type SecretFindings,
  toReadSecret,
} from '#core/rules/secrets.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { INSTANCE_LABEL } from '#crds/names/group.ts';
import { isOwnedBy } from '#crds/names/object-meta.ts';
import type { ReconcileDependencies } from '../deps.ts';
import type { DatabaseLink } from '../memory.ts';
import { type LiveWorkloadObject, toLiveWorkloadObject } from '../workload/live-object.ts';
import {
  ROUTES,
  type RouteName,
  WORKLOAD_OBJECTS,
  WORKLOAD_OBJECTS_OF,
  type WorkloadObjectKind,
  workloadObjectName,
  workloadObjectTitle,
} from '../workload/workload-objects.ts';
import {
  aliasOf,
  type CheckResult,
  type InstanceView,
  idOf,
  mayHaveKeys,
  type Problem,
  pathOf,
  type ScopeObject,
  type SnapshotView,
} from '../world.ts';
import type { ObserveContext } from './context.ts';
import { type Connections, reachDatabase } from './database.ts';
import { wasProcessed } from './keys.ts';

/** The view of an instance before its database is searched for orphaned claims and deleted instances. */
export type ObservedInstance = Omit<InstanceView, 'deletedInstances' | 'orphanedClaims' | 'unsearchedClaims'>;

export async function observeInstance(
  context: ObserveContext,
  object: GatewayInstance,
  scopeObjects: ReadonlyArray<ScopeObject>,
): Promise<{ readonly view: ObservedInstance; readonly link: DatabaseLink | undefined }> {
  const { complete, isForPoliciesOnly } = context.all;
  const isComplete = complete === 'all' || complete === pathOf(object.metadata);
  // A trigger for a scope object plans nothing for an instance whose spec a run has evaluated, so it needs no Secrets
  // of model entries, of which there may be 512: else tenants who edit their VirtualKeys would delay those of others.
  const isReferred = isForPoliciesOnly || (!isComplete && wasProcessed(object));
  const { connections, addressHashes, ...ofSecrets } = await observeSecrets(context, object, isReferred);
  const { database, store } = connections;
  const aliases = aliasesOf(scopeObjects);
  const [{ link, ...ofDatabase }, health, snapshot, ca, ofWorkload, routes] = await Promise.all([
    reachDatabase(context, object, { connections, aliases, isComplete }),
    'reason' in store ? ({ ok: false, ...store } as const) : probeStore(context, object.metadata.uid, store),
    observeSnapshot(context, object),
    observeAuthorities(context, object),
    observeParts(context, object),
    observeRoutes(context, object),
  ]);
  const fileProblem = [database, store, ca ?? {}].find((one): one is Problem => 'reason' in one);
  const view: ObservedInstance = {
    object,
    isComplete,
    ...ofDatabase,
    store: health,
    ...('reason' in store ? {} : { storeType: store.type }),
    ...(fileProblem === undefined ? {} : { fileProblem }),
    ...ofSecrets,
    addressHash: [...addressHashes, ...(ca === undefined || 'reason' in ca ? [] : [ca.version])].join('.'),
    snapshot,
    workloadObjects: new Map([...('reason' in ofWorkload ? [] : ofWorkload), ...routes.live]),
    ...('reason' in ofWorkload ? { workloadProblem: ofWorkload } : {}),
    routeProblems: routes.problems,
    servedAt: context.deps.platform.servedAt(object as unknown as KubeObject),
  };
  return { view, link };
}

/** The aliases of scope objects, and the namespaces of VirtualKeys, which have claims of their own. */
function aliasesOf(scopeObjects: ReadonlyArray<ScopeObject>): ReadonlyArray<Alias> {
  const namespaces = new Set(scopeObjects.filter(mayHaveKeys).map(({ metadata }) => metadata.namespace));
  return [...scopeObjects.map(aliasOf), ...[...namespaces].map((alias) => ({ kind: 'namespace', alias }) as const)];
}

/** The results of reading Secrets. Findings, of which there may be 16,384, are not kept while the database is read. */
async function observeSecrets(context: ObserveContext, object: GatewayInstance, isReferred: boolean) {
  const secrets = await readSecrets(context, object, isReferred);
  const { databaseSecretRef, redisSecretRef } = object.spec;
  const ofStore = secrets.get(redisSecretRef.nameRef);
  const connections = [secrets.get(databaseSecretRef.nameRef)?.database, ofStore?.store];
  return {
    ...(ofStore?.storeFiles && { storeFiles: ofStore.storeFiles }),
    connections: connectionsOf(context, object, secrets),
    addressHashes: connections.map((one) => one?.addressHash ?? ''),
    loginHash: connections.map((one) => one?.loginHash ?? '').join('.'),
    entryProblems: isReferred ? ('unread' as const) : entryProblems(context, object, secrets),
  };
}

/** Findings in a Secret, and the connection in it, or why it could not be read. Its values are not kept. */
interface SecretResult {
  readonly findings?: SecretFindings;
  readonly database?: HashedConnection<DatabaseConnection>;
  readonly store?: HashedConnection<StoreConnection>;
  readonly storeFiles?: ReadonlyArray<StoreFile>;
  readonly problem?: Problem;
}
interface HashedConnection<T> {
  readonly parsed: Result<T, ConnectionProblem>;
  /** Of what needs new Pods. */
  readonly addressHash: string;
  readonly loginHash: string;
}
type SecretResults = ReadonlyMap<string, SecretResult>;

/** The number of an instance's Secrets that are read concurrently. */
const MAX_READS = 4;

/**
 * Reads each Secret once, by name: those of model entries not if the run only refers to the instance. Whoever reads a
 * condition may have no right to read the Secret, so its keys are not listed.
 */
async function readSecrets(
  { readSecret, deps }: ObserveContext,
  { metadata, spec }: GatewayInstance,
  isReferred: boolean,
): Promise<SecretResults> {
  const { databaseSecretRef: database, redisSecretRef: store } = spec;
  const credentials = spec.models.flatMap(({ requiresAuth, modelCredentials }) =>
    requiresAuth && modelCredentials !== undefined ? [modelCredentials.nameRef] : [],
  );
  const names = new Set([database.nameRef, store.nameRef, ...(isReferred ? [] : credentials)]);
  const check = createSecretCheck(spec, metadata.namespace);
  /**
   * The hash has the Secret's uid, which readers of the workload do not know: else they could try passwords with it.
   */
  const hashed = <T extends DatabaseConnection | StoreConnection>(
    secret: KubeObject,
    parsed: Result<T, ConnectionProblem>,
  ): HashedConnection<T> => ({
    parsed,
    addressHash: parsed.ok ? shortHash(deps, [secret.metadata.uid, withoutLogin(parsed.value)]) : '',
    loginHash: parsed.ok ? shortHash(deps, [secret.metadata.uid, parsed.value]) : '',
  });
  const read = async (name: string): Promise<[string, SecretResult]> => {
    try {
      const secret = await readSecret(metadata.namespace, name);
      return [
        name,
        {
          findings: check(name, toReadSecret(secret, false)),
          ...(secret &&
            name === database.nameRef && { database: hashed(secret, toDatabaseConnection(database, dataOf(secret))) }),
          ...(secret &&
            name === store.nameRef && {
              store: hashed(secret, toStoreConnection(store, dataOf(secret))),
              storeFiles: neededStoreFiles(store, dataOf(secret)),
            }),
        },
      ];
    } catch (error) {
      const message = `Secret "${name}" could not be read: ${reasonOf(error)}`;
      return [name, { problem: { reason: 'SecretUnreadable', message } }];
    }
  };
  return new Map(await mapConcurrent(names, read, MAX_READS));
}

/** The problem that a rule finds in a Secret, or the error of reading it. */
function problemIn(
  { problem, findings }: SecretResult = {},
  rule: (findings: SecretFindings) => ReadonlyArray<SecretFinding> | undefined,
): Problem | undefined {
  return problem ?? toProblem((findings && rule(findings)) ?? []);
}

function connectionsOf(
  { deps: { platform } }: ObserveContext,
  { metadata: { namespace }, spec }: GatewayInstance,
  secrets: SecretResults,
): Connections {
  const connection = <T>(
    problem: Problem | undefined,
    parsed: Result<T, ConnectionProblem> | undefined,
    resolve: (connection: T) => T,
  ): Problem | T => {
    if (problem !== undefined) return problem;
    // A rule has already found this problem.
    if (parsed?.ok !== true) return { reason: 'SecretUnreadable', message: parsed?.failure.problem ?? '' };
    return platform.inCluster ? resolve(parsed.value) : parsed.value;
  };
  const [database, store] = [secrets.get(spec.databaseSecretRef.nameRef), secrets.get(spec.redisSecretRef.nameRef)];
  return {
    database: connection(
      problemIn(database, (findings) => findings.database),
      database?.database?.parsed,
      (value) => ({ ...value, host: toServiceHost(value.host, namespace) }),
    ),
    store: connection(
      problemIn(store, (findings) => findings.store),
      store?.store?.parsed,
      (value) => withServiceHosts(value, namespace),
    ),
  };
}

async function probeStore({ deps }: ObserveContext, uid: string, store: StoreConnection): Promise<CheckResult> {
  const where =
    store.type === 'memory'
      ? 'memory of the gateway process'
      : store.type === 'redis'
        ? `Redis at ${toServerText(store)}`
        : store.url;
  try {
    const health = await deps.backends.probeStore(store, uid);
    return health.ok ? { ok: true, message: where } : health;
  } catch (error) {
    return { ok: false, reason: 'StoreUnreachable', message: `${where}: ${reasonOf(error)}` };
  }
}

function entryProblems(
  { all }: ObserveContext,
  { kind, metadata, spec }: GatewayInstance,
  secrets: SecretResults,
): ReadonlyMap<string, Problem> {
  const didYouMean = createDidYouMean();
  const violations = Map.groupBy(
    all.violations.get(idOf(kind, metadata)) ?? [],
    ({ path }) => /^spec\.models\[(\d+)\]\./.exec(path)?.[1],
  );
  const ofCredentials = ({ modelCredentials: ref }: (typeof spec.models)[number], index: number) =>
    ref === undefined
      ? // An older CRD may have accepted such a model entry. The gateway does not use it.
        toProblem(violations.get(`${index}`) ?? [])
      : problemIn(secrets.get(ref.nameRef), ({ entries }) => entries.get(index));
  return new Map(
    spec.models.flatMap((entry, index) => {
      const problem =
        (entry.requiresAuth ? ofCredentials(entry, index) : undefined) ??
        toProblem(noAddress(entry, index, didYouMean)) ??
        (modelEntryPrice(entry.gatewayParams).price === undefined ? toProblem(notPriced(entry, index)) : undefined);
      return problem === undefined
        ? []
        : [[entry.identifier, { ...problem, message: cutText(problem.message) }] as const];
    }),
  );
}

/** A connection without what a gateway reads again after a refused login. */
function withoutLogin(connection: DatabaseConnection | StoreConnection): object {
  if ('dbname' in connection) {
    const { host, port, dbname, sslmode } = connection;
    return { host, port, dbname, sslmode };
  }
  if (connection.type === 'memory') return connection;
  if (connection.type === 'upstash') return { type: connection.type, url: connection.url };
  const { type, host, port, otherServers, sentinelMaster, tls } = connection;
  return { type, host, port, otherServers, sentinelMaster, tls };
}

const HASH_LENGTH = 16;
const shortHash = ({ hash }: ReconcileDependencies, value: unknown): string =>
  hash(JSON.stringify(value) ?? '').slice(0, HASH_LENGTH);

/** Snapshots that a run lists: more than are kept, so that it finds superfluous ones. */
const MAX_SNAPSHOTS = 10;

/** The snapshot that the gateway would read, and whether it is published. */
async function observeSnapshot({ deps }: ObserveContext, { metadata, spec }: GatewayInstance): Promise<SnapshotView> {
  const text = JSON.stringify(compileSnapshot(metadata, spec));
  const hash = deps.hash(text).slice(0, HASH_LENGTH);
  const name = snapshotName(metadata.name, hash);
  const { namespace, uid } = metadata;
  const selection = { namespace, labelSelector: `${INSTANCE_LABEL}=${uid}`, metadataOnly: true } as const;
  const search = async (more: Selection) => {
    const found = await deps.cluster.list(RESOURCES.configMaps, { ...selection, ...more });
    return found.filter((map) => isOwnedBy(map.metadata, uid));
  };
  const ours = await search({ limit: MAX_SNAPSHOTS });
  // ConfigMaps of others with our label may come first in the list.
  const isPublished =
    ours.some((map) => map.metadata.name === name) ||
    (await search({ fieldSelector: toFieldSelector({ 'metadata.name': name }) })).length > 0;
  const older = ours
    .filter((map) => map.metadata.name !== name)
    .sort((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? 1 : -1))
    .map((map) => ({ name: map.metadata.name, uid: map.metadata.uid ?? '' }));
  const isPushed = spec.workload.type !== 'External' || (await isInStore(deps, pathOf(metadata), text));
  return { hash, name, text, bytes: toUtf8(text).length, isPublished, isPushed, older };
}

/** The version of the authorities that the gateway trusts. The reconciler may list ConfigMaps, but not get them. */
async function observeAuthorities(
  { deps }: ObserveContext,
  { metadata: { namespace }, spec }: GatewayInstance,
): Promise<Problem | { readonly version: string } | undefined> {
  const { caConfigMapRef: ref } = spec.workload;
  if (ref === undefined) return undefined;
  const fieldSelector = toFieldSelector({ 'metadata.name': ref.name });
  const [found] = await deps.cluster.list(RESOURCES.configMaps, { namespace, fieldSelector, limit: 1 });
  if (found !== undefined && hasTooManyKeys(found)) {
    const message = `ConfigMap "${ref.name}" of spec.workload.caConfigMapRef has more than ${MAX_KEYS} keys, so it is not read: keep only the authorities in it`;
    return { reason: 'ConfigMapNotFound', message };
  }
  const values = [member(found?.data, ref.key), member(found?.binaryData, ref.key)];
  if (values.some((value) => value !== undefined)) return { version: shortHash(deps, values) };
  // A new Pod could not mount a key that does not exist.
  const problem =
    found === undefined
      ? 'does not exist: create it'
      : `has no key "${ref.key}": add it, or correct spec.workload.caConfigMapRef.key`;
  return {
    reason: 'ConfigMapNotFound',
    message: `ConfigMap "${ref.name}" of spec.workload.caConfigMapRef ${problem}`,
  };
}

/**
 * Whether the store of pushed snapshots has this text. False if that store does not answer: it is then written to, and
 * the error of that write is reported.
 */
async function isInStore({ snapshots }: ReconcileDependencies, path: string, text: string): Promise<boolean> {
  if (snapshots === undefined) return true;
  return (await snapshots.get(path).catch(() => undefined)) === text;
}

/** Objects of all workload types that the instance may have, or may have had. */
async function observeParts(
  context: ObserveContext,
  instance: GatewayInstance,
): Promise<ReadonlyMap<WorkloadObjectKind, LiveWorkloadObject> | Problem> {
  const { knative } = context.all.platform;
  const objectKinds: WorkloadObjectKind[] = [
    ...(knative === true ? WORKLOAD_OBJECTS_OF.Knative : []),
    ...WORKLOAD_OBJECTS_OF.Deployment,
  ];
  try {
    return new Map(
      (await mapConcurrent(objectKinds, (objectKind) => observeWorkloadObject(context, instance, objectKind))).flat(),
    );
  } catch (error) {
    if (statusOf(error) !== 403) throw error;
    return unreadable('the workload', error);
  }
}

async function observeWorkloadObject<Kind extends WorkloadObjectKind>(
  { deps: { cluster, hash } }: ObserveContext,
  { metadata: { namespace, name, uid } }: GatewayInstance,
  objectKind: Kind,
): Promise<ReadonlyArray<readonly [Kind, LiveWorkloadObject]>> {
  const object = await cluster.get(WORKLOAD_OBJECTS[objectKind], namespace, workloadObjectName(objectKind, name));
  return object === undefined ? [] : [[objectKind, toLiveWorkloadObject(object, uid, hash)]];
}

function unreadable(what: string, error: unknown): Problem {
  const advice = statusOf(error) === 403 ? ": apply the operator's access.yaml of this version" : '';
  return { reason: 'WorkloadUnreadable', message: `${what} cannot be read: ${reasonOf(error)}${advice}` };
}

const statusOf = (error: unknown): number | undefined => (error instanceof ClusterError ? error.status : undefined);

/**
 * The HTTPRoute and the Ingress that the instance may have, or may have had. Nothing else of the instance depends on
 * whether the cluster serves these kinds and the reconciler can read them.
 */
async function observeRoutes(context: ObserveContext, instance: GatewayInstance) {
  const problems = new Map<RouteName, Problem>();
  const live = await mapConcurrent(ROUTES, async (objectKind) => {
    try {
      return await observeWorkloadObject(context, instance, objectKind);
    } catch (error) {
      if (statusOf(error) !== 404)
        problems.set(objectKind, unreadable(workloadObjectTitle(objectKind, instance.metadata.name), error));
      else if (objectKind === 'HTTPRoute') problems.set(objectKind, HTTP_ROUTE_NOT_INSTALLED);
      return [];
    }
  });
  return { live: live.flat(), problems };
}

const HTTP_ROUTE_NOT_INSTALLED: Problem = {
  reason: 'HTTPRouteNotInstalled',
  message: `the cluster serves no ${WORKLOAD_OBJECTS.HTTPRoute.plural} of ${WORKLOAD_OBJECTS.HTTPRoute.group}/${WORKLOAD_OBJECTS.HTTPRoute.version}: install the CRDs of Gateway API, or use spec.ingress`,
};
