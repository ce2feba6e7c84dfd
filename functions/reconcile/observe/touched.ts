// Looking again at what a run has touched: objects, their claims, the Secrets of keys, and all of an instance.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Alias } from '#core/ports/registry.ts';
import { reasonOf } from '#core/reason.ts';
import { type KindName, kindOf } from '#crds/kinds.ts';
import { mapConcurrent } from '../concurrent.ts';
import { clusterOf } from '../memory.ts';
import { aliasOf, idOf, instancePathOf, type KeyView, type ObjectId, objectIn, type Path, pathOf } from '../world.ts';
import type { Draft, ObserveContext, Observed } from './context.ts';
import { observeClaims } from './database.ts';
import { observeInstance } from './instance.ts';
import { readKey } from './keys.ts';
import { collect, emptyCollection } from './own.ts';

const WIDTH = 32;

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

/** An object that cannot be looked at again is left alone for the rest of the run. */
export async function observeTouched(
  context: ObserveContext,
  observed: Observed,
  touched: ReadonlyArray<Touched>,
): Promise<void> {
  const { world } = observed;
  // A claim may be that of an object in another part of the run, or of none: only the claim is looked at then.
  const known = touched.filter((one) => one.isOwned === true || isIn(world, one));
  const groups = Map.groupBy(known, (one) => idOf(one.kind, one));
  const visit = (width: number, look: (group: ReadonlyArray<Touched>, id: ObjectId) => Promise<void>) =>
    mapConcurrent(groups, width, async ([id, group]) => {
      try {
        await look(group, id);
      } catch (error) {
        world.failures.set(id, { reason: 'ReconcileFailed', message: reasonOf(error) });
      }
    });
  await visit(WIDTH, async (group) => observeObject(context, world, group));
  await observeScopes(context, observed, touched);
  // After the claims, as in the first look.
  await visit(WIDTH, async (group) => {
    const [first] = group;
    if (first === undefined || group.every(({ isReport }) => isReport)) return;
    if (first.kind === 'GatewayInstance') await observeWhole(context, observed, pathOf(first));
    const key = first.kind === 'VirtualKey' ? world.keys.get(pathOf(first)) : undefined;
    if (key !== undefined) world.keys.set(pathOf(first), await readKey(context.deps, key.object));
  });
}

const isIn = (world: Draft, { kind, ...at }: Touched): boolean =>
  objectIn(world, kind, pathOf(at)) !== undefined || world.malformed.has(idOf(kind, at));

async function observeObject({ deps }: ObserveContext, world: Draft, group: ReadonlyArray<Touched>): Promise<void> {
  const last = group.at(-1);
  if (last === undefined) return;
  const { kind, namespace, name } = last;
  const object = last.answer ?? (await deps.cluster.get(kindOf[kind], namespace, name));
  const path = pathOf(last);
  world.malformed.delete(idOf(kind, last));
  world.violations.delete(idOf(kind, last));
  if (object === undefined) {
    const maps = { GatewayInstance: world.instances, VirtualKey: world.keys, User: world.users, Team: world.teams };
    maps[kind].delete(path);
    return;
  }
  const found = emptyCollection();
  collect(found, object);
  for (const [id, malformed] of found.malformed) world.malformed.set(id, malformed);
  for (const [id, violations] of found.violations) world.violations.set(id, violations);
  for (const [, user] of found.users) world.users.set(path, user);
  for (const [, team] of found.teams) world.teams.set(path, team);
  const [instance, key] = [found.instances.get(path), found.keys.get(path)];
  const view = world.instances.get(path);
  if (instance !== undefined && view !== undefined) world.instances.set(path, { ...view, object: instance });
  if (key !== undefined) world.keys.set(path, { ...(world.keys.get(path) ?? unreadView(key)), object: key });
}

const unreadView = (object: KeyView['object']): KeyView => ({ object, secretName: '', secret: { state: 'unread' } });

/** The claims that were written, and those of the members here. */
async function observeScopes(
  context: ObserveContext,
  observed: Observed,
  touched: ReadonlyArray<Touched>,
): Promise<void> {
  const { world } = observed;
  const own = touched.flatMap(({ kind, isReport, ...at }) => {
    const member = isReport ? undefined : objectIn(world, kind, pathOf(at));
    if (member === undefined || member.kind === 'GatewayInstance') return [];
    return [{ ...aliasOf(member), instance: instancePathOf(member) }];
  });
  const claims = [...own, ...touched.flatMap(({ claim }) => (claim === undefined ? [] : [claim]))];
  await mapConcurrent(
    Map.groupBy(claims, ({ instance }) => instance),
    WIDTH,
    async ([instance, aliases]) => {
      const distinct = new Map(aliases.map((one) => [`${one.kind} ${one.alias}`, one]));
      try {
        await observeClaims(context, observed, instance, [...distinct.values()]);
      } catch (error) {
        const view = world.instances.get(instance);
        const problem = { reason: 'DatabaseUnreachable', message: reasonOf(error) };
        if (view !== undefined) world.instances.set(instance, { ...view, database: { ok: false, ...problem } });
      }
    },
  );
}

/** All of an instance again. Orphans that were closed are none any more. */
async function observeWhole(context: ObserveContext, { world, links }: Observed, path: Path): Promise<void> {
  const before = world.instances.get(path);
  if (before === undefined) return;
  const { object, isComplete, orphanedClaims } = before;
  const { view, link } = await observeInstance(context, object, isComplete);
  const cluster = before.orphans.length === 0 ? undefined : await clusterOf(context);
  const open = cluster === undefined ? [] : ((await link?.registry.openInstances(cluster)) ?? []);
  const orphans = before.orphans.filter(({ uid }) => open.some((row) => row.uid === uid));
  world.instances.set(path, { ...view, orphanedClaims, orphans });
  if (link === undefined) links.delete(path);
  else links.set(path, link);
}
