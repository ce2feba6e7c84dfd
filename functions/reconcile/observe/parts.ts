// The parts of a run: each is an instance with its scope objects, and none waits for another.
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Team } from '#crds/kinds/team.ts';
import type { User } from '#crds/kinds/user.ts';
import {
  createWorld,
  instancePathOf,
  type KeyView,
  keysIn,
  type Path,
  pathOf,
  type ScopeObject,
  type WorldBuilder,
} from '../world.ts';
import type { ObserveContext } from './context.ts';
import { createKeyShares, type KeyShares } from './key-shares.ts';

/** The maximum number of quick parts that run concurrently, and that of the others. Namespaces share them. */
const MAX_RUNNING = 32;
/** A part is quick if it took less than this time in the last run. A new part is not quick. */
export const QUICK_LIMIT: Millis = 1000;
/** The time after which a run begins no more parts. The next run begins with those that are left. */
const MAX_START: Millis = 40_000;

export interface Part {
  /** The path of its instance, which may not exist. */
  readonly path: Path;
  readonly world: WorldBuilder;
  /** Shares of the keys of all parts of the run. */
  readonly shares: KeyShares;
}

/**
 * Runs the parts in turn, and returns how many are left to the next run. It ends only when all parts that have begun
 * have ended, also if one rejects: nothing continues after the answer.
 */
export async function runParts<T>(
  { all, limits, memory, roundRobin, deps: { clock } }: PartsContext,
  run: (part: Part) => Promise<T>,
): Promise<{ readonly ends: ReadonlyArray<T>; readonly left: number }> {
  const { rows, advance } = roundRobin.take('parts', partition(all), limits.parts, ({ path }) => ({
    namespace: namespaceOf(path),
    id: path,
  }));
  advance();
  const keys = rows.flatMap(({ world }) => keysIn(world));
  const shares = createKeyShares(keys, limits, roundRobin);
  const parts: ReadonlyArray<Part> = rows.map((row) => ({ ...row, shares }));
  const [quick, others] = [createFairLimiter(MAX_RUNNING), createFairLimiter(MAX_RUNNING)];
  const began = clock.now();
  const partRuns = new Map<Path, { readonly at: Millis; readonly took: Millis }>();
  const lastRunOf = ({ path }: Part) => memory.partRuns.get(path) ?? { at: 0, took: QUICK_LIMIT };
  const ended = new Map<Part, T>();
  const runInTime = async (part: Part): Promise<void> => {
    const at = clock.now();
    if (at - began > MAX_START) return void partRuns.set(part.path, lastRunOf(part));
    ended.set(part, await run(part));
    partRuns.set(part.path, { at: began, took: clock.now() - at });
  };
  // Parts that the last resync did not begin come first. The order of the others changes from run to run.
  const shuffled = roundRobin.shuffle(parts, ({ path }) => path);
  const sorted = shuffled.toSorted((one, other) => lastRunOf(one).at - lastRunOf(other).at);
  const outcomes = await Promise.allSettled(
    sorted.map((part) => {
      const queue = lastRunOf(part).took < QUICK_LIMIT ? quick : others;
      return queue.run(namespaceOf(part.path), () => runInTime(part));
    }),
  );
  const failed = outcomes.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
  if (all.complete === 'all') memory.partRuns = partRuns;
  const ends = parts.flatMap((part) => (ended.has(part) ? [ended.get(part) as T] : []));
  return { ends, left: parts.length - ends.length };
}

const namespaceOf = (path: Path): string => path.split('/')[0] ?? '';

type PartsContext = Pick<ObserveContext, 'all' | 'limits' | 'memory' | 'roundRobin'> & {
  readonly deps: Pick<ObserveContext['deps'], 'clock'>;
};

/**
 * An instance with its scope objects, whatever they refer to: tenants decide what they refer to, and one tenant's
 * instance must not wait for another's. Each object is in one part. All malformed objects are in a part of their own.
 */
export function partition(all: WorldBuilder): ReadonlyArray<Omit<Part, 'shares'>> {
  const { keys, users, teams, malformed, platform, violations, notLoaded, disabled, blocked } = all;
  const parts = new Map<Path, Omit<Part, 'shares'>>();
  // Each part has the violations of all objects.
  const create = (path: Path, more: Partial<WorldBuilder> = {}) => {
    const unobserved = new Map(all.unobserved);
    return { path, world: createWorld(platform, { violations, notLoaded, disabled, blocked, unobserved, ...more }) };
  };
  const worldOf = (path: Path): WorldBuilder => {
    const part = parts.get(path) ?? create(path);
    parts.set(path, part);
    return part.world;
  };
  for (const [path, instance] of all.listed) {
    const world = worldOf(path);
    world.listed.set(path, instance);
    for (const { teamRef } of instance.spec.keyPolicies ?? [])
      addReferred(world.referred.teams, { at: instance.metadata, instance: path }, teams, teamRef?.name);
  }
  for (const [path, view] of keys) {
    const key = view.object;
    const world = worldOf(instancePathOf(key));
    world.keys.set(path, view);
    const from = referrerOf(key);
    for (const name of [key.spec.userRef?.name, ...ownersOf(key)]) addReferred(world.referred.users, from, users, name);
    addReferred(world.referred.teams, from, teams, key.spec.teamRef?.name);
  }
  for (const [path, user] of users) {
    const world = worldOf(instancePathOf(user));
    world.users.set(path, user);
    const from = referrerOf(user);
    addReferred(world.referred.keys, from, keys, user.metadata.name);
    for (const { name } of user.spec.teamRefs) addReferred(world.referred.teams, from, teams, name);
  }
  for (const [path, team] of teams) worldOf(instancePathOf(team)).teams.set(path, team);
  return [...parts.values(), ...(malformed.size === 0 ? [] : [create('', { malformed })])];
}

const ownersOf = ({ metadata }: ScopeObject) => (metadata.ownerReferences ?? []).map(({ name }) => name);

/** An object that refers to others in its namespace, and the instance of its part. */
interface Referrer {
  readonly at: { readonly namespace: string };
  readonly instance: Path;
}

const referrerOf = (scopeObject: ScopeObject): Referrer => ({
  at: scopeObject.metadata,
  instance: instancePathOf(scopeObject),
});

/** Adds the objects of other instances that the object refers to. */
function addReferred<T extends User | Team | KeyView>(
  into: Map<Path, T>,
  { at: { namespace }, instance }: Referrer,
  among: ReadonlyMap<Path, T>,
  name = '',
): void {
  const path = pathOf({ namespace, name });
  const other = among.get(path);
  if (other === undefined) return;
  if (instancePathOf('object' in other ? other.object : other) !== instance) into.set(path, other);
}
