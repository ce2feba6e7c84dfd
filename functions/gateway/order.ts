// In which order are the targets of a model name tried? As `routing.strategy` says.
import type { Random } from '#core/ports/platform.ts';
import type { SnapshotEntry } from '#core/snapshot.ts';

interface Choice {
  readonly entry: Pick<SnapshotEntry, 'identifier' | 'weight' | 'priority'>;
}

export interface OrderDeps {
  readonly random: Random;
  /** Requests that this process has at the entry. */
  inFlight(identifier: string): number;
}

/** All of them, each once. Where the strategy does not tell two apart, weights do. */
export function inOrder<T extends Choice>(
  targets: ReadonlyArray<T>,
  strategy: string,
  deps: OrderDeps,
): ReadonlyArray<T> {
  if (targets.length < 2) return targets;
  const shuffled = shuffle(targets, deps.random);
  const rank = RANKS.get(strategy);
  // Sorting is stable: equals stay in the order of the shuffle.
  return rank === undefined ? shuffled : sortBy(shuffled, (target) => rank(target, deps));
}

/** What comes first by each strategy; one that is not here (`SimpleShuffle`) goes by weights alone. */
const RANKS: ReadonlyMap<string, (target: Choice, deps: OrderDeps) => number> = new Map([
  ['Priority', ({ entry }: Choice) => entry.priority],
  ['LeastBusy', ({ entry }: Choice, deps: OrderDeps) => deps.inFlight(entry.identifier)],
]);

function sortBy<T>(items: ReadonlyArray<T>, rank: (item: T) => number): ReadonlyArray<T> {
  return items
    .map((item) => ({ item, rank: rank(item) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}

/** A random order in which an entry comes first as often as its share of the weights says. */
function shuffle<T extends Choice>(targets: ReadonlyArray<T>, random: Random): ReadonlyArray<T> {
  const left = [...targets];
  const ordered: T[] = [];
  while (left.length > 0) ordered.push(...left.splice(pick(left, random), 1));
  return ordered;
}

function pick(targets: ReadonlyArray<Choice>, random: Random): number {
  const total = targets.reduce((sum, { entry }) => sum + entry.weight, 0);
  const dice = random(4).reduce((value, byte) => value * 256 + byte, 0) / 2 ** 32;
  let rest = dice * total;
  const index = targets.findIndex(({ entry }) => {
    rest -= entry.weight;
    return rest < 0;
  });
  return index === -1 ? targets.length - 1 : index;
}
