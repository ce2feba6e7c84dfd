// The parts of a run, which never wait for one another: instances with their members.
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import type { Millis } from '#core/ports/money.ts';
import { instancePathOf, type Member, type Path, pathOf } from '../world.ts';
import type { ObserveContext } from './context.ts';
import { createKeyShares, type KeyShares } from './key-shares.ts';
import { type Collection, emptyCollection, type Referrers } from './objects.ts';

/** Parts that run at the same time, of those that were quick and of the others: each namespace has a share of them. */
const PLACES = 32;
/** A part that took longer the last time, or that is new, is none that is quick. */
const QUICK: Millis = 1000;
/** After so long a run begins no more parts: the next run begins with those. */
const MAX_START: Millis = 40_000;

/** A part that has its turn. */
export interface Part extends Collection {
  /** The path of its instance, which may not be there. */
  readonly path: Path;
  /** Users, teams and keys of other instances that its members name. */
  readonly referred: Referrers;
  /** Shares of the keys of all parts of the run. */
  readonly shares: KeyShares;
}

/**
 * The parts whose turn it is, and how many of them are left to the next run. All that have begun have ended before this
 * does, also where one rejects: nothing continues behind an answer.
 */
export async function eachPart<T>(
  { all, limits, memory, turns, deps: { clock } }: EachContext,
  run: (part: Part) => Promise<T>,
): Promise<{ readonly ends: ReadonlyArray<T>; readonly left: number }> {
  const { rows, had } = turns.take('parts', partition(all), limits.parts, ({ path }) => ({
    namespace: namespaceOf(path),
    id: path,
  }));
  had();
  const shares = createKeyShares(
    rows.flatMap(({ keys }) => [...keys.values()]),
    limits,
    turns,
  );
  const parts: ReadonlyArray<Part> = rows.map((row) => ({ ...row, shares }));
  const [quick, others] = [createFairLimiter(PLACES), createFairLimiter(PLACES)];
  const began = clock.now();
  const visits = new Map<Path, { readonly at: Millis; readonly took: Millis }>();
  const lastOf = ({ path }: Part) => memory.visits.get(path) ?? { at: 0, took: QUICK };
  const ended = new Map<Part, T>();
  const visitInTime = async (part: Part): Promise<void> => {
    const at = clock.now();
    if (at - began > MAX_START) return void visits.set(part.path, lastOf(part));
    ended.set(part, await run(part));
    visits.set(part.path, { at: began, took: clock.now() - at });
  };
  // Those that the last resync did not begin come first; which part is first of the others changes.
  const mixed = turns.mix(parts, ({ path }) => path);
  const sorted = mixed.toSorted((one, other) => lastOf(one).at - lastOf(other).at);
  const outcomes = await Promise.allSettled(
    sorted.map((part) => {
      const queue = lastOf(part).took < QUICK ? quick : others;
      return queue.run(namespaceOf(part.path), () => visitInTime(part));
    }),
  );
  const failed = outcomes.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
  if (all.complete === 'all') memory.visits = visits;
  const ends = parts.flatMap((part) => (ended.has(part) ? [ended.get(part) as T] : []));
  return { ends, left: parts.length - ends.length };
}

const namespaceOf = (path: Path): string => path.split('/')[0] ?? '';

type EachContext = Pick<ObserveContext, 'all' | 'limits' | 'memory' | 'turns'> & {
  readonly deps: Pick<ObserveContext['deps'], 'clock'>;
};

/**
 * An instance with its members, whatever those name: tenants choose what they name, and the instance of one must not
 * wait for that of another. Each object is in one part; malformed objects have one of their own.
 */
export function partition(objects: Collection): ReadonlyArray<Omit<Part, 'shares'>> {
  const { keys, users, teams, malformed } = objects;
  const parts = new Map<Path, ReturnType<typeof emptyPart>>();
  const partOf = (path: Path) => {
    const part = parts.get(path) ?? emptyPart(path, objects);
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
  return [...parts.values(), ...(malformed.size === 0 ? [] : [{ ...emptyPart('', objects), malformed }])];
}

/** Each part has the violations of all objects. */
export const emptyPart = (path: Path = '', { violations }: Pick<Collection, 'violations'> = emptyCollection()) => ({
  ...emptyCollection(),
  path,
  violations,
  referred: emptyCollection(),
});

const ownersOf = ({ metadata }: Member) => (metadata.ownerReferences ?? []).map(({ name }) => name);

/** Adds what the member names, where that is of another instance. */
function refer<T extends Member>(into: Map<Path, T>, member: Member, among: ReadonlyMap<Path, T>, name = ''): void {
  const path = pathOf({ namespace: member.metadata.namespace, name });
  const other = among.get(path);
  if (other !== undefined && instancePathOf(other) !== instancePathOf(member)) into.set(path, other);
}
