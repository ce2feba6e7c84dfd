// Does an instance stand: its Secrets, its database, its store, its published snapshot? One that fails is told, never thrown.
import { toStoreConnection } from '#core/connections.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { InstanceDraft, Member, Problem } from '../world.ts';
import { reachDatabase } from './database.ts';
import { dataIn, type Read, readSecrets, secretProblem } from './instance-secrets.ts';
import type { Link } from './links.ts';
import { type Look, reasonOf } from './look.ts';
import { observeSnapshot } from './published.ts';

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
    time: reached.time,
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
