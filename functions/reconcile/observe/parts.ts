// The parts of a run, which never wait for one another: instances with their members.
import type { Millis } from '#core/ports/money.ts';
import { mapConcurrent } from '../concurrent.ts';
import { instancePathOf, type Member, type Path, pathOf } from '../world.ts';
import type { ObserveContext } from './context.ts';
import { type Collection, emptyCollection, type Referred } from './objects.ts';

/** Beyond this many that are slow, the others wait. */
const WIDTH = 64;

/** A part in its turn. */
export interface Part extends Collection {
  /** Users, teams and keys of other instances that its members name. */
  readonly referred: Referred;
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
export function takeTurn(parts: ReadonlyArray<Omit<Part, 'turn'>>, limit: number, minute: number): ReadonlyArray<Part> {
  const taken = Math.min(limit, parts.length);
  return Array.from({ length: taken }, (_, index) => {
    const position = minute * taken + index;
    const part = parts[position % parts.length] ?? { ...emptyCollection(), referred: emptyCollection() };
    return { ...part, turn: Math.floor(position / parts.length) };
  });
}

/**
 * An instance with its members, whatever those name: tenants choose what they name, and the instance of one must not
 * wait for that of another. Each object is in one part; malformed objects have one of their own.
 */
export function partition(objects: Collection): ReadonlyArray<Omit<Part, 'turn'>> {
  const { keys, users, teams, malformed } = objects;
  // Each part has the violations of all objects.
  const emptyPart = () => ({ ...emptyCollection(), violations: objects.violations, referred: emptyCollection() });
  const parts = new Map<Path, ReturnType<typeof emptyPart>>();
  const partOf = (path: Path) => {
    const part = parts.get(path) ?? emptyPart();
    parts.set(path, part);
    return part;
  };
  for (const [path, instance] of objects.instances) partOf(path).instances.set(path, instance);
  for (const [path, key] of keys) {
    const part = partOf(instancePathOf(key));
    part.keys.set(path, key);
    for (const name of [key.spec.userRef?.name, ...ownersOf(key)]) refer(part.referred.users, key, users, name);
    refer(part.referred.teams, key, teams, key.spec.teamRef?.name);
  }
  for (const [path, user] of users) {
    const part = partOf(instancePathOf(user));
    part.users.set(path, user);
    refer(part.referred.keys, user, keys, user.metadata.name);
    for (const { name } of user.spec.teamRefs) refer(part.referred.teams, user, teams, name);
  }
  for (const [path, team] of teams) partOf(instancePathOf(team)).teams.set(path, team);
  return [...parts.values(), ...(malformed.size === 0 ? [] : [{ ...emptyPart(), malformed }])];
}

const ownersOf = ({ metadata }: Member) => (metadata.ownerReferences ?? []).map(({ name }) => name);

/** Adds what the member names, where that is of another instance. */
function refer<T extends Member>(into: Map<Path, T>, member: Member, among: ReadonlyMap<Path, T>, name = ''): void {
  const path = pathOf({ namespace: member.metadata.namespace, name });
  const other = among.get(path);
  if (other !== undefined && instancePathOf(other) !== instancePathOf(member)) into.set(path, other);
}
