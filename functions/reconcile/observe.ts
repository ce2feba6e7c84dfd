// Observing: builds the world of one part of a run, and observes again what the run has touched.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import { needsLabels } from '#core/rules/allowed-namespaces.ts';
import { policyNeedsLabels } from '#core/rules/key-policies.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { type KindName, kindOf } from '#crds/kinds/kinds.ts';
import { isReport, type Result } from './action.ts';
import { blocksOf } from './key/own-blockers.ts';
import type { Observation, ObserveContext } from './observe/context.ts';
import { observeClaims } from './observe/database.ts';
import { observeInstance } from './observe/instance.ts';
import { readKeys, selectKeys } from './observe/keys.ts';
import { putObject, removeObject, toOwnObjectView } from './observe/objects.ts';
import { findDeletedInstances, findOrphanedClaims, lookUpsOf } from './observe/orphans.ts';
import type { Part } from './observe/parts.ts';
import type { PartTimeLimits } from './observe/share.ts';
import {
  aliasOf,
  type InstanceView,
  idOf,
  instancePathOf,
  mayHaveKeys,
  type ObjectId,
  objectIn,
  type Path,
  pathOf,
  type ScopeObject,
  scopeObjectsOf,
  unreadKey,
  type WorldBuilder,
} from './world.ts';

/** Every adapter has a shorter timeout. This one bounds an instance that hangs in spite of it. */
const INSTANCE_TIMEOUT: Millis = 60_000;

export async function observe(
  context: ObserveContext,
  part: Part,
  timeLimits: Pick<PartTimeLimits, 'endObserving'>,
): Promise<Observation> {
  const { world } = part;
  await observeNamespaces(context, world);
  const observed = { world, links: new Map() };
  await observeInstances(context, observed, [...world.listed.values()]);
  timeLimits.endObserving();
  await readKeys(context, world, selectKeys(context, world, part));
  return observed;
}

/**
 * Observes again the objects of a run's actions, their claims, the Secrets of VirtualKeys, and everything of an
 * instance.
 */
export async function observeTouched(
  context: ObserveContext,
  observed: Observation,
  results: ReadonlyArray<Result>,
): Promise<void> {
  const { world } = observed;
  // An event changes nothing, and neither does an action that found everything done.
  const touching = results.filter(
    ({ action, outcome }) => outcome.ended !== 'unchanged' && action.action !== 'RecordEvent',
  );
  const touched = new Map<ObjectId, TouchedObject>();
  for (const { action, outcome } of touching) {
    const { kind, namespace, name } = action;
    if (kind === 'Namespace') continue;
    const written = outcome.ended === 'done' ? outcome.object : undefined;
    const [id, path] = [idOf(kind, action), pathOf(action)];
    // A claim may belong to an object in another part of the run, or to none: then only the claim is observed.
    if (objectIn(world, kind, path) || world.malformed.has(id)) touched.set(id, { kind, namespace, name, written });
  }
  for (const { action } of touching) {
    // A user's VirtualKey, which this run may have created. An action of its own may have returned it before the
    // change.
    const key =
      'key' in action ? { kind: 'VirtualKey' as const, namespace: action.namespace, name: action.key } : undefined;
    if (key) touched.set(idOf(key.kind, key), { ...key, written: undefined });
  }
  await mapConcurrent(touched, ([id, one]) => observeObject(context, world, id, one));
  // A plan has either steps or only reports: in the second case only statuses were written.
  if (touching.every(({ action }) => isReport(action))) return;
  const objects = [...touched.values()].flatMap(({ kind, ...at }) => objectIn(world, kind, pathOf(at)) ?? []);
  const ofMembers = objects.flatMap((object) =>
    object.kind === 'GatewayInstance' ? [] : [{ ...aliasOf(object), instance: instancePathOf(object) }],
  );
  const ofActions = touching.flatMap(({ action }) =>
    'claimKind' in action ? [{ ...action, kind: action.claimKind }] : [],
  );
  await observeClaims(context, observed, [...ofMembers, ...ofActions]);
  const instances = objects.filter((object) => object.kind === 'GatewayInstance');
  await observeInstances(context, observed, instances);
  const keys = objects.filter((object) => object.kind === 'VirtualKey');
  await readKeys(context, world, keys);
}

interface TouchedObject {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  /** The object as the API server returned it, so it is not read again. */
  readonly written: KubeObject | undefined;
}

/** An object that cannot be observed again gets no further action in this run. */
async function observeObject(
  { deps }: ObserveContext,
  world: WorldBuilder,
  id: ObjectId,
  { kind, written, ...at }: TouchedObject,
): Promise<void> {
  const path = pathOf(at);
  try {
    const object = written ?? (await deps.cluster.get(kindOf[kind], at.namespace, at.name));
    const own = object && toOwnObjectView(object);
    const malformed = world.malformed.get(id);
    if (own !== undefined && malformed !== undefined) {
      // A malformed object stays malformed during the run, which has not planned for it, even if it can be read now.
      world.malformed.set(id, { ...malformed, metadata: own.metadata, status: own.status });
    } else if (kind === 'VirtualKey' && world.referred.keys.delete(path)) {
      if (own?.object?.kind === 'VirtualKey') world.referred.keys.set(path, unreadKey(own.object));
    } else if (own === undefined) removeObject(world, { kind, metadata: at });
    else putObject(world, own);
  } catch (error) {
    world.failures.set(id, { reason: 'ReconcileFailed', message: reasonOf(error) });
  }
}

/**
 * Instances and their databases are observed before the Secrets of VirtualKeys: then a value that is in a Secret and
 * not in its claim was published meanwhile, or is forged.
 */
async function observeInstances(
  context: ObserveContext,
  { world, links }: Observation,
  instances: ReadonlyArray<GatewayInstance>,
): Promise<void> {
  if (instances.length === 0) return;
  const { deps } = context;
  const scopeObjects = Map.groupBy(scopeObjectsOf(world), instancePathOf);
  await mapConcurrent(instances, async (object) => {
    const path: Path = pathOf(object.metadata);
    const own = scopeObjects.get(path) ?? [];
    try {
      const { view, link } = await withTimeout(
        deps.timer,
        INSTANCE_TIMEOUT,
        'the instance',
        observeWithOrphans(context, object, own),
      );
      world.instances.set(path, view);
      await observeHolders(context, world, view);
      if (link === undefined) links.delete(path);
      else links.set(path, link);
    } catch (error) {
      deps.log.error('cannot read an instance', { instance: path, why: reasonOf(error) });
      world.unobserved.set(path, reasonOf(error));
      world.instances.delete(path);
    }
  });
}

async function observeWithOrphans(
  context: ObserveContext,
  object: GatewayInstance,
  scopeObjects: ReadonlyArray<ScopeObject>,
) {
  const { view, link } = await observeInstance(context, object, scopeObjects);
  const claims = await findOrphanedClaims(context, view, scopeObjects);
  const deletedInstances = await findDeletedInstances(context, view, link);
  return { view: { ...view, ...claims, deletedInstances }, link };
}

/**
 * Labels of the namespaces whose scope objects an instance selects by label, or whose VirtualKeys it has key policies for,
 * including oversized namespaces. Nothing is planned for the scope objects of a namespace that an instance selects and
 * that cannot be read, except that those that are blocked themselves get a blocked policy.
 */
async function observeNamespaces({ deps, all }: ObserveContext, world: WorldBuilder): Promise<void> {
  const { listed } = world;
  const selectorsOf = (path: Path) => selectorsIn(listed.get(path));
  const scopeObjects = scopeObjectsOf(world);
  const selected = scopeObjects.filter((scopeObject) => selectorsOf(instancePathOf(scopeObject)).selectsAllowed);
  const keys = scopeObjects.filter(
    (scopeObject) => mayHaveKeys(scopeObject) && selectorsOf(instancePathOf(scopeObject)).selectsPolicies,
  );
  const isSelecting = listed.keys().some((path) => selectorsOf(path).selectsAny);
  const oversized = isSelecting ? all.oversizedNamespaces.keys() : [];
  const names = new Set([...[...selected, ...keys].map(({ metadata }) => metadata.namespace), ...oversized]);
  await readLabels(deps, names, world.namespaces);
  const blocked = blocksOf(selected.filter(({ metadata }) => !world.namespaces.has(metadata.namespace)));
  if (blocked.length > 0) world.blocked = new Map([...world.blocked, ...blocked]);
}

/** Whether an instance selects namespaces by their labels: those that it allows, and those of its key policies. */
function selectorsIn(instance: GatewayInstance | undefined) {
  const selectsAllowed = needsLabels(instance?.spec.allowedNamespaces);
  const selectsPolicies = policyNeedsLabels(instance?.spec.keyPolicies);
  return { selectsAllowed, selectsPolicies, selectsAny: selectsAllowed || selectsPolicies };
}

/**
 * Labels of the namespaces of claims, if the instance selects by label and the namespace was not read before. A
 * namespace that cannot be read stays unknown. Only a run with all claims reads them, a part of very many at a time: the
 * owner of a database may name any.
 */
async function observeHolders(
  context: ObserveContext,
  { namespaces }: WorldBuilder,
  view: InstanceView,
): Promise<void> {
  const { all, deps, roundRobin } = context;
  const { object, claims, isComplete } = view;
  const { selectsAny, selectsPolicies } = selectorsIn(object);
  const hasNamespaces = isComplete || all.isForPoliciesOnly;
  if (!selectsAny || !(all.complete === 'all' || (hasNamespaces && selectsPolicies))) return;
  const { onlyNamespace } = deps.cluster;
  const holders = [...claims.values()].flatMap(({ kind, values, holder: { namespace } }) => {
    const isReadable = onlyNamespace === undefined || namespace === onlyNamespace;
    const isNeeded = kind === 'key' ? values.length > 0 : kind === 'namespace' && selectsPolicies;
    return isNeeded && isReadable && !namespaces.has(namespace) ? [namespace] : [];
  });
  const toRow = (namespace: string) => ({ namespace, id: namespace });
  const list = `namespaces of ${pathOf(object.metadata)}`;
  const batch = roundRobin.take(list, [...new Set(holders)], lookUpsOf(context, view), toRow);
  await readLabels(deps, batch.rows, namespaces);
  batch.advance();
}

/** A namespace that cannot be read, or may not be read, stays unknown: it does not end the run of the others. */
async function readLabels(
  { cluster, log }: ObserveContext['deps'],
  names: Iterable<string>,
  labels: WorldBuilder['namespaces'],
): Promise<void> {
  const { onlyNamespace } = cluster;
  const readable = [...names].filter((name) => onlyNamespace === undefined || name === onlyNamespace);
  await mapConcurrent(readable, async (name) => {
    try {
      const namespace = await cluster.get(RESOURCES.namespaces, undefined, name);
      labels.set(name, { ...namespace?.metadata.labels, 'kubernetes.io/metadata.name': name });
    } catch (error) {
      log.warn('a namespace cannot be read', { namespace: name, why: reasonOf(error) });
    }
  });
}
