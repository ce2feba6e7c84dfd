// Does an instance stand: its Secrets, its database, its store, its published snapshot? One that fails is told, never thrown.
import { toProblem } from '#core/finding.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Platform } from '#core/ports/platform.ts';
import { reasonOf } from '#core/reason.ts';
import { checkCredentials } from '#core/rules/secrets.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { gatewayInstances } from '#crds/kinds.ts';
import { validate } from '#crds/validate.ts';
import type { Problem } from '../problem.ts';
import { scaleOf } from '../workload/deployment.ts';
import type { WorkloadType } from '../workload/parts.ts';
import type { InstanceDraft, Member } from '../world.ts';
import { reachDatabase } from './database.ts';
import { connectionsOf, type Read, readSecrets, toReadSecret, versionsOf } from './instance-secrets.ts';
import type { Link } from './links.ts';
import type { Look } from './look.ts';
import { observeSnapshot } from './published.ts';
import { observeWorkload } from './workload.ts';
import { decideType } from './workload-type.ts';

export async function observeInstance(
  look: Look,
  object: GatewayInstance,
  members: ReadonlyArray<Member>,
  complete: boolean,
): Promise<{ readonly view: InstanceDraft; readonly link: Link | undefined }> {
  const [secrets, decision] = await Promise.all([readSecrets(look, object), decideType(look, object)]);
  const connections = connectionsOf(look, object, secrets);
  const { database, store } = connections;
  const type = 'type' in decision ? decision.type : undefined;
  const [{ link, ...reached }, health, snapshot] = await Promise.all([
    reachDatabase(look, object, connections, members),
    'reason' in store ? ({ ok: false, ...store } as const) : probe(look, object, store, type),
    observeSnapshot(look, object),
  ]);
  const workload = await observeWorkload(look, object, {
    decision,
    snapshot,
    store: 'reason' in store ? store : store.type,
    storeHealth: health,
    database: 'reason' in database ? database : undefined,
    connections: versionsOf([object.spec.databaseSecretRef.nameRef, object.spec.redisSecretRef.nameRef], secrets),
  });
  const view: InstanceDraft = {
    object,
    complete,
    ...reached,
    strays: [],
    store: health,
    entryProblems: entryProblems(object, secrets),
    snapshot,
    workload,
    servedAt: look.deps.platform.servedAt(object as unknown as KubeObject),
    taken: new Map(),
    gone: new Set(),
  };
  return { view, link };
}

async function probe(
  { deps }: Look,
  object: GatewayInstance,
  store: StoreConnection,
  type: WorkloadType | undefined,
): Promise<InstanceDraft['store']> {
  const several = store.type === 'memory' ? whySeveral(object, type, deps.platform) : undefined;
  if (several !== undefined) {
    const message = `the store is "memory", which one process keeps for itself, and ${several}`;
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

/** Why more than one process serves the instance, or may; and what to do. */
function whySeveral(
  object: GatewayInstance,
  type: WorkloadType | undefined,
  { manyProcesses }: Platform,
): string | undefined {
  const share = 'name a Redis or Upstash store in the Secret';
  const { max } = scaleOf(object);
  if (type === 'Knative')
    return `Knative starts and stops processes as it needs them: ${share}, or set spec.workload.type to Deployment`;
  if (type === 'Deployment')
    return max === 1 ? undefined : `spec.workload.scale lets ${max} serve the instance: ${share}, or scale to 1`;
  if (type !== 'External') return undefined;
  return manyProcesses ? `here more than one may serve the instance: ${share}` : undefined;
}

function entryProblems(object: GatewayInstance, secrets: ReadonlyMap<string, Read>): ReadonlyMap<string, Problem> {
  const { metadata, spec } = object;
  const found = spec.models.flatMap(
    ({ identifier, requiresAuth, modelCredentials }, index): Array<[string, Problem]> => {
      if (!requiresAuth) return [];
      if (modelCredentials === undefined) return withoutCredentials(object, identifier, index);
      const { nameRef } = modelCredentials;
      const read = toReadSecret(nameRef, secrets.get(nameRef));
      if ('reason' in read) return [[identifier, read]];
      const problem = toProblem(
        checkCredentials(modelCredentials, { index, identifier }, metadata.namespace, read.secret),
      );
      return problem === undefined ? [] : [[identifier, problem]];
    },
  );
  return new Map(found);
}

/** The CRD refuses such an entry, and an older one may have let it in: the gateway passes over it. */
function withoutCredentials(object: GatewayInstance, identifier: string, index: number): Array<[string, Problem]> {
  const mistakes = validate(gatewayInstances, object).violations.filter(({ path }) =>
    path.startsWith(`spec.models[${index}].`),
  );
  const problem = toProblem(mistakes);
  return problem === undefined ? [] : [[identifier, problem]];
}
