// The operator's hold on a cluster, taken away: its objects, then the webhooks, then finalizers that no operator
// removes any more. What finalizers of others hold is never freed, and is reported.
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
 * Milliseconds without progress after which no operator counts as running: a resync comes each minute, and gives up an
 * absent database after 20 s.
 */
const DEADLINE = 90_000;
const LOOK_EVERY = 1_000;

type FoundObject = readonly [Kind, KubeObject];

/**
 * `Delete` deletes every gateway resource and lets a running operator clean up behind it: keys stop working, gateways
 * go. `Keep` leaves all of them, and gateways serve on; then reconcile must not run any more, which would put its
 * finalizers back. Either way nothing of the operator answers for the cluster any more: the webhooks go, and the
 * finalizers that are left. Repeating it is harmless, whatever was deleted before:
 * the operator, its namespace, kinds. Throws with a list of the objects that only finalizers of others hold; then
 * webhooks stay if an operator runs, because whoever repeats it still needs them.
 */
export async function removeOperator(deps: RemoveDependencies, objects: 'Keep' | 'Delete'): Promise<void> {
  // Instances last: keys are cleaned in the database of theirs.
  const isCleaned = objects === 'Delete' && (await removeAll(deps, [virtualKeys, users, teams]));
  const isAllCleaned = isCleaned && (await removeAll(deps, [gatewayInstances]));
  if (isAllCleaned) await refuseHeldByOthers(deps);
  for (const resource of WEBHOOK_CONFIGURATIONS) {
    const hook = await deps.cluster.get(resource, undefined, CONFIGURATION_NAME);
    if (hook === undefined) continue;
    await deps.cluster.delete(resource, undefined, CONFIGURATION_NAME, hook.metadata.uid ?? '');
    deps.print(`deleted ${resource.kind} ${CONFIGURATION_NAME}`);
  }
  const isHeld = (found: FoundObject) =>
    objects === 'Delete' ? !isHeldByOthers(found) : found[1].metadata.finalizers?.includes(FINALIZER) === true;
  const findHeld = async () => (await find(deps.cluster)).filter(isHeld);
  for (let held = await findHeld(); held.length > 0; held = await findHeld()) {
    for (const [kind, object] of held) {
      const deleted = objects === 'Delete' && object.metadata.deletionTimestamp === undefined;
      if (deleted) await remove(deps.cluster, kind, object.metadata);
      await release(deps, [kind, object], deleted);
    }
  }
  if (objects === 'Delete') await refuseHeldByOthers(deps);
  const kept = (await find(deps.cluster)).length;
  if (kept > 0)
    deps.print(`${kept} objects of the operator's kinds stay; gateways serve until their instances are deleted`);
  deps.print('Nothing of the operator holds this cluster any more: delete its manifests and its kinds.');
}

/** True once they are gone, or only finalizers of others hold them; false when no operator removes them. */
async function removeAll(deps: RemoveDependencies, kinds: ReadonlyArray<Kind>): Promise<boolean> {
  const { cluster, print, now, pause } = deps;
  let since = now();
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    const left = await find(cluster, kinds);
    if (left.length < before) {
      since = now();
      if (left.length > 0) print(`waiting until the operator has cleaned up behind ${left.length} objects`);
    }
    if (left.length === 0) return true;
    if (now() - since >= DEADLINE) return left.every(isHeldByOthers);
    before = left.length;
    const living = left.filter(([, { metadata }]) => metadata.deletionTimestamp === undefined);
    await Promise.all(living.map(([kind, { metadata }]) => remove(cluster, kind, metadata)));
    await pause(LOOK_EVERY);
  }
}

/** Whether the object is deleted, our part of it is done, and finalizers of others keep it. */
const isHeldByOthers = ([, { metadata }]: FoundObject): boolean =>
  metadata.deletionTimestamp !== undefined &&
  othersOf(metadata).length > 0 &&
  metadata.finalizers?.includes(FINALIZER) !== true;

const othersOf = ({ finalizers = [] }: KubeObject['metadata']) =>
  finalizers.filter((finalizer) => finalizer !== FINALIZER);

/** Prints each of these objects with the command that frees it, and throws if there is any. */
async function refuseHeldByOthers({ cluster, print }: RemoveDependencies): Promise<void> {
  const held = (await find(cluster)).filter(isHeldByOthers);
  if (held.length === 0) return;
  for (const [{ kind, plural, group }, { metadata }] of held) {
    const { namespace, name } = metadata;
    const patch = `--type=merge --patch '{"metadata":{"finalizers":null}}'`;
    print(`${kind} ${namespace}/${name} is held by the finalizer ${othersOf(metadata).join(', ')}`);
    print(`  kubectl patch ${plural}.${group} ${name} --namespace ${namespace} ${patch}`);
  }
  throw new Error(
    `uninstall is not complete: finalizers of other programs hold ${held.length} of the deleted objects. ` +
      'Wait until their programs remove them, or run the command below each object. Then run the uninstall again',
  );
}

async function find(
  cluster: Cluster,
  kinds: ReadonlyArray<Kind> = [virtualKeys, users, teams, gatewayInstances],
): Promise<ReadonlyArray<FoundObject>> {
  const lists = kinds.map(async (kind) => {
    const objects = (await unlessGone(cluster.list(kind))) ?? [];
    return objects.map((object): FoundObject => [kind, object]);
  });
  return (await Promise.all(lists)).flat();
}

const remove = (cluster: Cluster, kind: Kind, { namespace, name, uid = '' }: KubeObject['metadata']) =>
  unlessGone(cluster.delete(kind, namespace, name, uid));

/** Undefined where the kind is not served any more: its CRD is gone, and its objects with it. */
async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ClusterError && error.status === 404) return undefined;
    throw error;
  }
}

/**
 * Frees the object of our finalizer. A deleted one goes without being cleaned: what reconcile would have done is not
 * done.
 */
async function release(
  { cluster, print }: RemoveDependencies,
  [kind, { metadata }]: FoundObject,
  justDeleted: boolean,
) {
  const { namespace, name, resourceVersion, finalizers = [] } = metadata;
  const others = othersOf(metadata);
  if (others.length > 0 && others.length === finalizers.length) return;
  // The deletion has made another version.
  const version = justDeleted ? {} : { resourceVersion };
  const patch = { metadata: { ...version, finalizers: others } };
  const written = await unlessGone(cluster.patch(kind, namespace, name, patch));
  if (written === undefined) return;
  const isGone = justDeleted || metadata.deletionTimestamp !== undefined;
  if (written.ok)
    print(`released ${kind.kind} ${namespace}/${name}${isGone ? ': nobody has cleaned up behind it' : ''}`);
  else if (written.refusal !== 'conflict' && written.refusal !== 'gone') throw new Error(written.message);
}
