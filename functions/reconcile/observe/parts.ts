// The parts of a run, which never wait for one another: instances with their members, and whatever refers to those.
import type { Millis } from '#core/ports/money.ts';
import { mapConcurrent } from '../concurrent.ts';
import { instancePathOf, type Member, type Path, pathOf } from '../world.ts';
import type { ObserveContext } from './context.ts';
import { type Collection, emptyCollection } from './objects.ts';

/** Beyond this many that are slow, the others wait. */
const WIDTH = 64;

/** A part in its turn. */
export interface Part extends Collection {
  /** How often all parts have had their turn. */
  readonly turn: number;
}

/**
 * The parts whose turn it is. All of them have ended before this does, also where one rejects: nothing continues behind
 * an answer.
 */
export async function eachPart<T>(
  { all, limits, now, memory, deps: { clock } }: EachContext,
  visit: (part: Part) => Promise<T>,
): Promise<ReadonlyArray<T>> {
  const parts = takeTurn(partition(all), limits.parts, Math.floor(now / MINUTE));
  const durationOf = (part: Part) => memory.durations.get(nameOf(part)) ?? 0;
  const ended = new Map<Part, PromiseSettledResult<T>>();
  const durations = new Map<Path, Millis>();
  await mapConcurrent(
    parts.toSorted((one, other) => durationOf(one) - durationOf(other)),
    async (part) => {
      const began = clock.now();
      const [outcome] = await Promise.allSettled([visit(part)]);
      ended.set(part, outcome);
      durations.set(nameOf(part), clock.now() - began);
    },
    WIDTH,
  );
  if (all.complete === 'all') memory.durations = durations;
  return parts.map((part) => {
    const outcome = ended.get(part);
    if (outcome?.status !== 'fulfilled') throw outcome?.reason;
    return outcome.value;
  });
}

type EachContext = Pick<ObserveContext, 'all' | 'limits' | 'now' | 'memory'> & {
  readonly deps: Pick<ObserveContext['deps'], 'clock'>;
};

/** The path of one of its instances, or of an instance that is not there. */
const nameOf = ({ instances, keys, users, teams }: Part): Path => {
  const [instance] = instances.keys();
  const [member] = [...keys.values(), ...users.values(), ...teams.values()];
  return instance ?? (member === undefined ? '' : instancePathOf(member));
};

const MINUTE: Millis = 60_000;

/**
 * As many parts as the limit has, from where those of the minute before ended: the clock is the cursor, and nothing is
 * kept between runs.
 */
export function takeTurn(parts: ReadonlyArray<Collection>, limit: number, minute: number): ReadonlyArray<Part> {
  const taken = Math.min(limit, parts.length);
  return Array.from({ length: taken }, (_, index) => {
    const position = minute * taken + index;
    const part = parts[position % parts.length] ?? emptyCollection();
    return { ...part, turn: Math.floor(position / parts.length) };
  });
}

/** Each object is in one part; malformed objects have one of their own. */
export function partition(objects: Collection): ReadonlyArray<Collection> {
  const { keys, users, teams } = objects;
  const roots = new Map<Path, Path>();
  /** Step by step: a chain of members can be as long as there are members. Each step on the way is shortened. */
  const rootOf = (path: Path): Path => {
    let at = path;
    for (let above = roots.get(at); above !== undefined && above !== at; above = roots.get(at)) {
      const further = roots.get(above) ?? above;
      roots.set(at, further);
      at = further;
    }
    return at;
  };
  /** One slow instance delays those only that have a member in common with it. */
  const join = <T extends Member>(member: Member, among: ReadonlyMap<Path, T>, name: string | undefined) => {
    const other = name === undefined ? undefined : among.get(pathOf({ namespace: member.metadata.namespace, name }));
    if (other !== undefined) roots.set(rootOf(instancePathOf(member)), rootOf(instancePathOf(other)));
  };
  for (const key of keys.values()) {
    join(key, users, key.spec.userRef?.name);
    join(key, teams, key.spec.teamRef?.name);
    for (const { name } of key.metadata.ownerReferences ?? []) join(key, users, name);
  }
  for (const user of users.values()) {
    join(user, keys, user.metadata.name);
    for (const { name } of user.spec.teamRefs) join(user, teams, name);
  }
  for (const team of teams.values()) for (const { name } of team.spec.members) join(team, users, name);

  // Each part has the violations of all objects.
  const emptyPart = (): Collection => ({ ...emptyCollection(), violations: objects.violations });
  const parts = new Map<Path, Collection>();
  const partOf = (path: Path): Collection => {
    const root = rootOf(path);
    const part = parts.get(root) ?? emptyPart();
    parts.set(root, part);
    return part;
  };
  for (const [path, instance] of objects.instances) partOf(path).instances.set(path, instance);
  for (const [path, key] of keys) partOf(instancePathOf(key)).keys.set(path, key);
  for (const [path, user] of users) partOf(instancePathOf(user)).users.set(path, user);
  for (const [path, team] of teams) partOf(instancePathOf(team)).teams.set(path, team);
  const { malformed } = objects;
  return [...parts.values(), ...(malformed.size === 0 ? [] : [{ ...emptyPart(), malformed }])];
}
