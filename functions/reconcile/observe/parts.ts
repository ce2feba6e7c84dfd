// What has to do with each other? A run is done in parts that never wait for one another: one slow database delays its own instance only.
import { userKeyName } from '#core/names.ts';
import { instancePathOf, type Member, type Path, pathOf } from '../world.ts';
import { each } from './each.ts';
import type { Objects } from './objects.ts';

/** Instances with their members, and whatever refers to those; malformed objects by themselves. Each object is in one part. */
export function partition(objects: Objects): ReadonlyArray<Objects> {
  const { instances, keys, users, teams, malformed } = objects;
  const roots = new Map<Path, Path>();
  const rootOf = (path: Path): Path => {
    const above = roots.get(path) ?? path;
    if (above === path) return path;
    const root = rootOf(above);
    roots.set(path, root);
    return root;
  };
  const join = (member: Member, other: Member | undefined) => {
    if (other !== undefined) roots.set(rootOf(instancePathOf(member)), rootOf(instancePathOf(other)));
  };
  const beside = <T>(among: ReadonlyMap<Path, T>, { metadata }: Member, name: string | undefined): T | undefined =>
    name === undefined ? undefined : among.get(pathOf({ namespace: metadata.namespace, name }));

  for (const key of keys.values()) {
    join(key, beside(users, key, key.spec.userRef?.name));
    join(key, beside(teams, key, key.spec.teamRef?.name));
    for (const { name } of key.metadata.ownerReferences ?? []) join(key, beside(users, key, name));
  }
  for (const user of users.values()) {
    join(user, beside(keys, user, userKeyName(user.metadata.name)));
    for (const { name } of user.spec.teamRefs) join(user, beside(teams, user, name));
  }
  for (const team of teams.values()) {
    for (const { name } of team.spec.members) join(team, beside(users, team, name));
  }

  const parts = new Map<Path, Objects>();
  const partOf = (path: Path): Objects => {
    const root = rootOf(path);
    const part = parts.get(root) ?? emptyPart(objects);
    parts.set(root, part);
    return part;
  };
  for (const [path, instance] of instances) partOf(path).instances.set(path, instance);
  for (const [path, key] of keys) partOf(instancePathOf(key)).keys.set(path, key);
  for (const [path, user] of users) partOf(instancePathOf(user)).users.set(path, user);
  for (const [path, team] of teams) partOf(instancePathOf(team)).teams.set(path, team);
  const strange = malformed.size === 0 ? [] : [{ ...emptyPart(objects), malformed }];
  return [...parts.values(), ...strange];
}

/** Beyond this many that are slow, the others wait. */
const WIDTH = 64;

/** All of them have ended before this does, also where one rejects: nothing goes on behind an answer. */
export async function eachPart<T>(all: Objects, visit: (part: Objects) => Promise<T>): Promise<ReadonlyArray<T>> {
  const ended = await each(partition(all), WIDTH, async (part) => {
    const [outcome] = await Promise.allSettled([visit(part)]);
    return outcome;
  });
  return ended.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}

/** What is known of all objects stays known to each part. */
const emptyPart = (objects: Objects): Objects => ({
  ...objects,
  instances: new Map(),
  keys: new Map(),
  users: new Map(),
  teams: new Map(),
  malformed: new Map(),
});
