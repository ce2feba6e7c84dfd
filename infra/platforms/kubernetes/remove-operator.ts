// Removal of the operator from a cluster: of its objects, then of the webhooks, then of the finalizers that no operator
// removes any more. Objects that finalizers of other programs block are never freed, and are reported.
import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { type Cluster, ClusterError, type KubeObject } from '#core/ports/cluster.ts';
import { gatewayInstances, type Kind, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { FINALIZER } from '#crds/names/group.ts';
import { CONFIGURATION_NAME, WEBHOOK_CONFIGURATIONS } from '../../../functions/reconcile/certificates/objects.ts';

export interface RemoveDependencies {
  readonly cluster: Cluster;
  readonly print: (line: string) => void;
  readonly now: () => number;
  readonly pause: (millis: number) => Promise<unknown>;
}

/**
 * Milliseconds without progress after which no operator is assumed to run: there is a resync each minute, and it waits
 * at most 20 s for an absent database.
 */
const DEADLINE = 90_000;
const LOOK_EVERY = 1_000;

type Metadata = KubeObject['metadata'];
type FoundMetadata = Pick<Metadata, 'name'> & {
  readonly [Name in 'namespace' | 'uid' | 'resourceVersion' | 'finalizers' | 'deletionTimestamp']:
    | Metadata[Name]
    | undefined;
};
type FoundObject = readonly [Kind, { readonly metadata: FoundMetadata }];

/**
 * `Delete`: deletes every gateway resource and lets a running operator clean up each. Keys stop working, and gateways
 * are deleted. `Keep`: leaves all of them, and gateways continue to serve. The reconciler must not run then, because it
 * would add its finalizers again. Both delete the webhooks, and remove the operator's finalizers that are left. A
 * second call is harmless, also if the operator, its namespace or its CRDs are deleted. Throws if finalizers of other
 * programs still block deleted objects, and prints these. If an operator runs, the webhooks stay then: the next call
 * needs them.
 */
export async function removeOperator(deps: RemoveDependencies, objects: 'Keep' | 'Delete'): Promise<void> {
  // Instances are last: each key is cleaned up in the database of its instance.
  const isCleaned = objects === 'Delete' && (await removeAll(deps, [virtualKeys, users, teams]));
  const isAllCleaned = isCleaned && (await removeAll(deps, [gatewayInstances]));
  if (isAllCleaned) await throwIfBlockedByOthers(deps);
  for (const resource of WEBHOOK_CONFIGURATIONS) {
    const hook = await deps.cluster.get(resource, undefined, CONFIGURATION_NAME);
    if (hook === undefined) continue;
    await deps.cluster.delete(resource, undefined, CONFIGURATION_NAME, hook.metadata.uid ?? '');
    deps.print(`deleted ${resource.kind} ${CONFIGURATION_NAME}`);
  }
  const isUnfinished = (found: FoundObject) =>
    objects === 'Delete' ? !isBlockedByOthers(found) : found[1].metadata.finalizers?.includes(FINALIZER) === true;
  const findUnfinished = async () => (await find(deps.cluster)).filter(isUnfinished);
  for (let rest = await findUnfinished(); rest.length > 0; rest = await findUnfinished()) {
    await mapConcurrent(rest, async ([kind, object]) => {
      const deleted = objects === 'Delete' && object.metadata.deletionTimestamp === undefined;
      if (deleted) await remove(deps.cluster, kind, object.metadata);
      await removeFinalizer(deps, [kind, object], deleted);
    });
  }
  if (objects === 'Delete') await throwIfBlockedByOthers(deps);
  const kept = (await find(deps.cluster)).length;
  if (kept > 0)
    deps.print(`${kept} objects of the operator's kinds stay; gateways serve until their instances are deleted`);
  deps.print('No webhook and no finalizer of the operator is left in this cluster. Delete its manifests and its CRDs.');
}

/** True if all are deleted, or only finalizers of other programs block the rest; false if no operator cleans up. */
async function removeAll(deps: RemoveDependencies, kinds: ReadonlyArray<Kind>): Promise<boolean> {
  const { cluster, print, now, pause } = deps;
  let since = now();
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    const left = await find(cluster, kinds);
    if (left.length < before) {
      since = now();
      if (left.length > 0) print(`waiting until the operator has cleaned up ${left.length} objects`);
    }
    if (left.length === 0) return true;
    if (now() - since >= DEADLINE) return left.every(isBlockedByOthers);
    before = left.length;
    const living = left.filter(([, { metadata }]) => metadata.deletionTimestamp === undefined);
    const began = now();
    // A call must end within seconds, so it must not wait for 100,000 others.
    await mapConcurrent(living, ([kind, { metadata }]) => remove(cluster, kind, metadata));
    // The operator could not clean up objects that were not deleted yet.
    since += now() - began;
    await pause(LOOK_EVERY);
  }
}

/** Whether the object is deleted and cleaned up, and only finalizers of other programs block it. */
const isBlockedByOthers = ([, { metadata }]: FoundObject): boolean =>
  metadata.deletionTimestamp !== undefined &&
  othersOf(metadata).length > 0 &&
  metadata.finalizers?.includes(FINALIZER) !== true;

const othersOf = ({ finalizers = [] }: FoundMetadata) => finalizers.filter((finalizer) => finalizer !== FINALIZER);

/** Prints each of these objects with the command that frees it, and throws if there is any. */
async function throwIfBlockedByOthers({ cluster, print }: RemoveDependencies): Promise<void> {
  const blocked = (await find(cluster)).filter(isBlockedByOthers);
  if (blocked.length === 0) return;
  for (const [{ kind, plural, group }, { metadata }] of blocked) {
    const { namespace, name } = metadata;
    const patch = `--type=merge --patch '{"metadata":{"finalizers":null}}'`;
    print(`${kind} ${namespace}/${name} is blocked by the finalizer ${othersOf(metadata).join(', ')}`);
    print(`  kubectl patch ${plural}.${group} ${name} --namespace ${namespace} ${patch}`);
  }
  throw new Error(
    `uninstall is not complete: finalizers of other programs block ${blocked.length} of the deleted objects. ` +
      'Wait until their programs remove them, or run the command below each object. Then run the uninstall again',
  );
}

/**
 * All objects of these kinds, with only what is read here: there may be 100,000, and the program that removes them has
 * the memory of a small Pod.
 */
async function find(
  cluster: Cluster,
  kinds: ReadonlyArray<Kind> = [virtualKeys, users, teams, gatewayInstances],
): Promise<ReadonlyArray<FoundObject>> {
  const found = new Map<string, FoundObject>();
  const keep = (kind: Kind, { metadata }: KubeObject): void => {
    const { namespace, name, uid, resourceVersion, finalizers, deletionTimestamp } = metadata;
    const kept = { namespace, name, uid, resourceVersion, finalizers, deletionTimestamp };
    found.set(`${kind.kind} ${uid}`, [kind, { metadata: kept }]);
  };
  for (const kind of kinds)
    await unlessGone(
      cluster.listPages(kind, { metadataOnly: true }, (objects) => {
        for (const object of objects) keep(kind, object);
      }),
    );
  return [...found.values()];
}

const remove = (cluster: Cluster, kind: Kind, { namespace, name, uid = '' }: FoundMetadata) =>
  unlessGone(cluster.delete(kind, namespace, name, uid));

/** Undefined if the kind is no longer served: its CRD is deleted, and its objects with it. */
async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ClusterError && error.status === 404) return undefined;
    throw error;
  }
}

/** Removes our finalizer from the object. A deleted object is removed then, and the reconciler does not clean it up. */
async function removeFinalizer(
  { cluster, print }: RemoveDependencies,
  [kind, { metadata }]: FoundObject,
  justDeleted: boolean,
) {
  const { namespace, name, resourceVersion, finalizers = [] } = metadata;
  const others = othersOf(metadata);
  if (others.length > 0 && others.length === finalizers.length) return;
  // The deletion has changed the version.
  const version = justDeleted ? {} : { resourceVersion };
  const patch = { metadata: { ...version, finalizers: others } };
  const written = await unlessGone(cluster.patch(kind, namespace, name, patch));
  if (written === undefined) return;
  const isGone = justDeleted || metadata.deletionTimestamp !== undefined;
  if (written.ok) print(`released ${kind.kind} ${namespace}/${name}${isGone ? ': nothing was cleaned up for it' : ''}`);
  else if (written.refusal !== 'conflict' && written.refusal !== 'gone') throw new Error(written.message);
}
