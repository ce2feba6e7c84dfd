// Does an instance stand: its Secrets, its database, its store, its published snapshot? One that fails is told, never thrown.
import { compile } from '#core/compile.ts';
import { toDatabaseConnection, toStoreConnection } from '#core/connections.ts';
import { snapshotName } from '#core/names.ts';
import { DatabaseUnreachable, SchemaMissing, type StoreConnection } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, Registry } from '#core/ports/registry.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { OWNED, OWNED_LABEL } from '#crds/group.ts';
import type { ReconcileDeps } from '../deps.ts';
import {
  claimKey,
  type DatabaseView,
  type InstanceDraft,
  type Member,
  type Problem,
  type SnapshotView,
} from '../world.ts';
import { each } from './each.ts';
import { type Link, type Memory, openedKey } from './links.ts';
import { dataOf } from './secrets.ts';
import { readSums } from './sums.ts';

export interface Look {
  readonly deps: ReconcileDeps;
  readonly memory: Memory;
  readonly now: Millis;
  /** False on a dry run: then nothing is booked on the way. */
  readonly acts: boolean;
}

type Data = Readonly<Record<string, string>>;
/** A Secret's data, `undefined` for one that is not there, or why it could not be read. */
type Read = { readonly data: Data | undefined } | { readonly unread: string };

const WIDTH = 8;

export async function observeInstance(
  look: Look,
  object: GatewayInstance,
  members: ReadonlyArray<Member>,
  complete: boolean,
): Promise<{ readonly view: InstanceDraft; readonly link: Link | undefined }> {
  const secrets = await readSecrets(look, object);
  const store = storeConnection(object, secrets);
  const [reached, health, snapshot] = await Promise.all([
    reachDatabase(look, object, secrets, 'ok' in store ? undefined : store, members),
    'ok' in store ? store : probe(look, object, store),
    observeSnapshot(look, object),
  ]);
  const view: InstanceDraft = {
    object,
    complete,
    database: reached.database,
    store: health,
    entryProblems: entryProblems(object, secrets),
    snapshot,
    servedAt: look.deps.platform.servedAt(object as unknown as KubeObject),
    claims: reached.claims,
    taken: new Map(),
    sums: reached.sums,
    gone: new Set(),
  };
  return { view, link: reached.link };
}

async function readSecrets({ deps }: Look, { metadata, spec }: GatewayInstance): Promise<ReadonlyMap<string, Read>> {
  const names = new Set([
    spec.databaseSecretRef.nameRef,
    spec.redisSecretRef.nameRef,
    ...spec.models.flatMap(({ requiresAuth, modelCredentials }) =>
      requiresAuth && modelCredentials !== undefined ? [modelCredentials.nameRef] : [],
    ),
  ]);
  const read = await each(names, WIDTH, async (name): Promise<[string, Read]> => {
    try {
      const secret = await deps.cluster.get(RESOURCES.secrets, metadata.namespace, name);
      return [name, { data: secret === undefined ? undefined : dataOf(secret) }];
    } catch (error) {
      return [name, { unread: reasonOf(error) }];
    }
  });
  return new Map(read);
}

/** What is wrong with a Secret itself, before its entries are looked at. */
function secretProblem(name: string, read: Read | undefined, what: string): Problem | undefined {
  if (read === undefined || ('data' in read && read.data === undefined)) {
    return {
      reason: 'SecretNotFound',
      message: `Secret "${name}" with ${what} is not there: create it in the namespace of the instance`,
    };
  }
  if ('unread' in read)
    return { reason: 'SecretUnreadable', message: `Secret "${name}" with ${what} cannot be read: ${read.unread}` };
  return undefined;
}

const dataIn = (read: Read | undefined): Data => (read !== undefined && 'data' in read ? (read.data ?? {}) : {});

interface ReachedDatabase {
  readonly database: DatabaseView;
  readonly claims: Map<string, Claim>;
  readonly sums: InstanceDraft['sums'];
  readonly link: Link | undefined;
}

const unreached = (problem: Problem): ReachedDatabase => ({
  database: { ok: false, ...problem },
  claims: new Map(),
  sums: new Map(),
  link: undefined,
});

async function reachDatabase(
  look: Look,
  { metadata, spec }: GatewayInstance,
  secrets: ReadonlyMap<string, Read>,
  store: StoreConnection | undefined,
  members: ReadonlyArray<Member>,
): Promise<ReachedDatabase> {
  const { deps, memory, now, acts } = look;
  const found = findDatabase(look, spec, secrets);
  // An instance that is deleted with its Secrets is cleaned up where it last was.
  const last = metadata.deletionTimestamp === undefined ? undefined : memory.databases.get(metadata.uid);
  if ('reason' in found && last === undefined) return unreached(found);
  const { registry, where } = 'reason' in found ? (last as NonNullable<typeof last>) : found;
  const key = openedKey(metadata.uid, where);
  const link = { uid: metadata.uid, registry };
  try {
    if (acts && store !== undefined && memory.opened.has(key)) await flush(look, metadata.uid, store);
    const claims = await readClaims(registry, metadata.uid);
    const sums = await readSums(registry, members, claims, now);
    memory.databases.set(metadata.uid, { registry, where });
    return { database: { ok: true, message: where, opened: memory.opened.has(key) }, claims, sums, link };
  } catch (error) {
    memory.opened.delete(key);
    if (error instanceof DatabaseUnreachable && !(error instanceof SchemaMissing))
      return unreached({ reason: 'DatabaseUnreachable', message: error.message });
    // It answers, but not in our schema: a new database, or one that a later version migrates.
    deps.log.info('a database is to be migrated', {
      instance: `${metadata.namespace}/${metadata.name}`,
      why: reasonOf(error),
    });
    return { database: { ok: true, message: where, opened: false }, claims: new Map(), sums: new Map(), link };
  }
}

function findDatabase(
  { deps }: Look,
  spec: GatewayInstance['spec'],
  secrets: ReadonlyMap<string, Read>,
): Problem | { readonly registry: Registry & Books; readonly where: string } {
  const name = spec.databaseSecretRef.nameRef;
  const problem = secretProblem(name, secrets.get(name), 'the database connection');
  if (problem !== undefined) return problem;
  const connection = toDatabaseConnection(spec.databaseSecretRef, dataIn(secrets.get(name)));
  if (!connection.ok) {
    const { reason, entry, problem: what } = connection.failure;
    return { reason, message: `Secret "${name}": entry "${entry}" ${what}` };
  }
  const { host, port, dbname } = connection.value;
  const where = `PostgreSQL at ${host.includes(':') ? `[${host}]` : host}:${port}, database "${dbname}"`;
  return { registry: deps.backends.database(connection.value), where };
}

export async function readClaims(registry: Registry, instanceUid: string): Promise<Map<string, Claim>> {
  const claims = await registry.claims(instanceUid);
  return new Map(claims.map((claim) => [claimKey(claim.kind, claim.alias), claim]));
}

/** What cannot be booked now is booked later: only the spend in status is older for it. */
async function flush({ deps }: Look, uid: string, store: StoreConnection): Promise<void> {
  try {
    await deps.backends.flush(uid, store);
  } catch (error) {
    deps.log.warn('not everything settled could be booked', { instanceUid: uid, why: reasonOf(error) });
  }
}

function storeConnection(
  { spec }: GatewayInstance,
  secrets: ReadonlyMap<string, Read>,
): StoreConnection | ({ readonly ok: false } & Problem) {
  const name = spec.redisSecretRef.nameRef;
  const problem = secretProblem(name, secrets.get(name), 'the store connection');
  if (problem !== undefined) return { ok: false, ...problem };
  const connection = toStoreConnection(spec.redisSecretRef, dataIn(secrets.get(name)));
  if (connection.ok) return connection.value;
  const { reason, entry, problem: what } = connection.failure;
  return { ok: false, reason, message: `Secret "${name}": entry "${entry}" ${what}` };
}

async function probe({ deps }: Look, object: GatewayInstance, store: StoreConnection): Promise<InstanceDraft['store']> {
  if (store.type === 'memory' && deps.platform.manyProcesses) {
    const message =
      'the store is "memory", which one process keeps for itself, and here more than one may serve the instance: name a Redis or Upstash store in the Secret';
    return { ok: false, reason: 'StoreNotShared', message };
  }
  const where =
    store.type === 'memory'
      ? 'memory of the gateway process'
      : store.type === 'redis'
        ? `Redis at ${store.host}:${store.port}`
        : store.url;
  try {
    const health = await deps.backends.probeStore(store, object.metadata.uid);
    return health.ok ? { ok: true, message: where } : health;
  } catch (error) {
    return { ok: false, reason: 'StoreUnreachable', message: `${where}: ${reasonOf(error)}` };
  }
}

function entryProblems({ spec }: GatewayInstance, secrets: ReadonlyMap<string, Read>): ReadonlyMap<string, Problem> {
  const found = spec.models.flatMap(({ identifier, requiresAuth, modelCredentials }): Array<[string, Problem]> => {
    if (!requiresAuth || modelCredentials === undefined) return [];
    const { nameRef, keys } = modelCredentials;
    const problem = secretProblem(nameRef, secrets.get(nameRef), `the credentials of model entry "${identifier}"`);
    if (problem !== undefined) return [[identifier, problem]];
    const data = dataIn(secrets.get(nameRef));
    const missing = Object.values(keys).filter((entry) => data[entry] === undefined);
    if (missing.length === 0) return [];
    const message = `Secret "${nameRef}" of model entry "${identifier}" has no entry ${missing.map((entry) => `"${entry}"`).join(', ')}: add it, or correct modelCredentials.keys`;
    return [[identifier, { reason: 'SecretEntryMissing', message }]];
  });
  return new Map(found);
}

async function observeSnapshot({ deps }: Look, { metadata, spec, status }: GatewayInstance): Promise<SnapshotView> {
  const text = JSON.stringify(compile(metadata, spec));
  const hash = deps.hash(text).slice(0, 16);
  const name = snapshotName(metadata.name, hash);
  const isOurs = ({ metadata: { labels, ownerReferences } }: KubeObject) =>
    labels?.[OWNED_LABEL] === OWNED && ownerReferences?.some(({ uid }) => uid === metadata.uid) === true;
  const there = await deps.cluster.get(RESOURCES.configMaps, metadata.namespace, name);
  const published = there !== undefined && isOurs(there);
  const steady = published && status?.snapshotHash === hash;
  const all = steady
    ? []
    : await deps.cluster.list(RESOURCES.configMaps, {
        namespace: metadata.namespace,
        labelSelector: `${OWNED_LABEL}=${OWNED}`,
      });
  const older = all
    .filter((map) => isOurs(map) && map.metadata.name !== name)
    .sort((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? 1 : -1))
    .map((map) => ({ name: map.metadata.name, uid: map.metadata.uid ?? '' }));
  return { hash, name, text, bytes: new TextEncoder().encode(text).length, published, older };
}

/** An error in words, without what caused it: messages of drivers may hold addresses, never passwords. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
