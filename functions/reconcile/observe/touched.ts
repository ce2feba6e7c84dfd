// An object that a run has touched, as it is now.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Alias } from '#core/ports/registry.ts';
import { reasonOf } from '#core/reason.ts';
import { type KindName, kindOf } from '#crds/kinds.ts';
import { type ObjectId, type Path, pathOf } from '../world.ts';
import type { Draft, ObserveContext } from './context.ts';
import { unreadKey } from './keys.ts';
import { collect, emptyCollection } from './own.ts';

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
export async function observeObject(
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
