// Observing: the world of one part of a run, and again what the run has touched.
import { toText } from '#core/finding.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Alias } from '#core/ports/registry.ts';
import { reasonOf } from '#core/reason.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { type KindName, kindOf } from '#crds/kinds.ts';
import { mapConcurrent, withTimeout } from './concurrent.ts';
import type { Draft, ObserveContext, Observed } from './observe/context.ts';
import { observeClaims } from './observe/database.ts';
import { observeInstance } from './observe/instance.ts';
import { readKeys, selectKeys, unreadKey } from './observe/keys.ts';
import { type Collection, collect, emptyCollection } from './observe/objects.ts';
import { findOrphanedClaims, findOrphanedInstances } from './observe/orphans.ts';
import { aliasOf, idOf, instancePathOf, membersOf, type ObjectId, objectIn, type Path, pathOf } from './world.ts';

/** Plans of one run, this one included; a run that never ends is a bug that must not go on for ever. */
export const MAX_ROUNDS = 8;

const WIDTH = 32;
/** Every adapter gives up long before: an instance that hangs all the same does not hang the run. */
const LONGEST: Millis = 60_000;

export async function observe(context: ObserveContext, part: Collection): Promise<Observed> {
  const { deps, all, knative } = context;
  const { gatewayImage, version, manyProcesses } = deps.platform;
  const malformed = [...all.malformed.values()].filter(({ kind }) => kind === 'GatewayInstance');
  const world: Draft = {
    ...{ instances: new Map(), users: part.users, teams: part.teams },
    keys: new Map([...part.keys].map(([path, key]) => [path, unreadKey(deps, key)])),
    ...{ malformed: part.malformed, violations: part.violations },
    unobserved: new Map(malformed.map(({ metadata, violations }) => [pathOf(metadata), toText(violations)])),
    namespaces: await observeNamespaces(context, part),
    ...{ failures: new Map(), attempts: new Map(), roundsLeft: MAX_ROUNDS },
    platform: { gatewayImage, version, manyProcesses, knative },
  };
  const observed = { world, links: new Map() };
  await observeInstances(context, observed, [...part.instances.values()]);
  await readKeys(context, world, selectKeys(context, world));
  return observed;
}

/** An object that an action was about. */
export interface Touched {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  /** The object as the API server answered it: it is not asked for again. */
  readonly answer?: KubeObject;
  /** Nothing but its status was written. */
  readonly isReport: boolean;
  /** A user's key, which this run may have made. */
  readonly isOwned?: true;
  /** The claim that the action was about. */
  readonly claim?: Alias & { readonly instance: Path };
}

/** Looks again at what a run has touched: the objects, their claims, the Secrets of keys, and all of an instance. */
export async function observeTouched(
  context: ObserveContext,
  observed: Observed,
  touched: ReadonlyArray<Touched>,
): Promise<void> {
  const { world } = observed;
  // A claim may be that of an object in another part of the run, or of none: only the claim is looked at then.
  const known = touched.filter(
    ({ kind, isOwned, ...at }) => isOwned || objectIn(world, kind, pathOf(at)) || world.malformed.has(idOf(kind, at)),
  );
  await mapConcurrent(
    Map.groupBy(known, (one) => idOf(one.kind, one)),
    WIDTH,
    ([id, group]) => observeObject(context, world, id, group),
  );
  const changed = new Map(
    touched.flatMap(({ kind, isReport, ...at }) => {
      const object = isReport ? undefined : objectIn(world, kind, pathOf(at));
      return object === undefined ? [] : [[idOf(kind, at), object]];
    }),
  );
  const objects = [...changed.values()];
  const ofMembers = objects.flatMap((object) =>
    object.kind === 'GatewayInstance' ? [] : [{ ...aliasOf(object), instance: instancePathOf(object) }],
  );
  await observeClaims(context, observed, [...ofMembers, ...touched.flatMap(({ claim }) => claim ?? [])]);
  await observeInstances(
    context,
    observed,
    objects.filter((object) => object.kind === 'GatewayInstance'),
  );
  await readKeys(
    context,
    world,
    objects.filter((object) => object.kind === 'VirtualKey'),
  );
}

/** An object that cannot be looked at again is left alone for the rest of the run. */
async function observeObject(
  { deps }: ObserveContext,
  world: Draft,
  id: ObjectId,
  group: ReadonlyArray<Touched>,
): Promise<void> {
  const last = group.at(-1);
  if (last === undefined) return;
  const { kind, namespace, name } = last;
  const path = pathOf(last);
  const found = emptyCollection();
  try {
    const object = last.answer ?? (await deps.cluster.get(kindOf[kind], namespace, name));
    const maps = { GatewayInstance: world.instances, VirtualKey: world.keys, User: world.users, Team: world.teams };
    if (object === undefined) maps[kind].delete(path);
    else collect(found, object);
  } catch (error) {
    world.failures.set(id, { reason: 'ReconcileFailed', message: reasonOf(error) });
    return;
  }
  world.malformed.delete(id);
  world.violations.delete(id);
  for (const [, malformed] of found.malformed) world.malformed.set(id, malformed);
  for (const [, violations] of found.violations) world.violations.set(id, violations);
  for (const [, user] of found.users) world.users.set(path, user);
  for (const [, team] of found.teams) world.teams.set(path, team);
  for (const [, object] of found.keys)
    world.keys.set(path, { ...unreadKey(deps, object), ...world.keys.get(path), object });
  const view = world.instances.get(path);
  for (const [, object] of found.instances) if (view !== undefined) world.instances.set(path, { ...view, object });
}

/** Each with its database, and before the Secrets of its keys: a value that a Secret has and its claim does not was published meanwhile, or is forged. */
async function observeInstances(
  context: ObserveContext,
  { world, links }: Observed,
  instances: ReadonlyArray<GatewayInstance>,
): Promise<void> {
  if (instances.length === 0) return;
  const { deps } = context;
  const members = Map.groupBy(membersOf(world), instancePathOf);
  await mapConcurrent(instances, WIDTH, async (object) => {
    const path: Path = pathOf(object.metadata);
    try {
      const { view, link } = await withTimeout(deps.timer, LONGEST, observeInstance(context, object));
      const orphanedClaims = await findOrphanedClaims(context, view, members.get(path) ?? []);
      const orphans = await findOrphanedInstances(context, view, link);
      world.instances.set(path, { ...view, orphanedClaims, orphans });
      if (link === undefined) links.delete(path);
      else links.set(path, link);
    } catch (error) {
      deps.log.error('an instance could not be looked at', { instance: path, why: reasonOf(error) });
      world.unobserved.set(path, reasonOf(error));
      world.instances.delete(path);
    }
  });
}

/** Labels of the namespaces whose members an instance selects by label. */
async function observeNamespaces({ deps }: ObserveContext, { instances, ...part }: Collection) {
  const members = [part.keys, part.users, part.teams].flatMap((map) => [...map.values()]);
  const selected = members.filter(
    (member) => instances.get(instancePathOf(member))?.spec.allowedNamespaces.from === 'Selector',
  );
  const names = new Set(selected.map(({ metadata }) => metadata.namespace));
  const labels = await mapConcurrent(names, WIDTH, async (name) => {
    const namespace = await deps.cluster.get(RESOURCES.namespaces, undefined, name);
    return [name, { ...namespace?.metadata.labels, 'kubernetes.io/metadata.name': name }] as const;
  });
  return new Map(labels);
}
