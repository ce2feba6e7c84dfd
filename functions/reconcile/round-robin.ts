// Round robin: which rows of a list come next if a run can process only some of them.
import { createLru, type Lru } from '#core/caches/lru.ts';
import type { Cursor } from '#core/ports/backends.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { OwnObject } from './world.ts';

/** More than the lists of a resync, so that very many lists of one owner do not displace those of the others. */
const MAX_CURSORS = 20_000;
/** The number of positions on the circle that rows are hashed to. */
const POSITIONS = 2 ** 48;

/**
 * The position on the circle where each list continues, by the name of the list. A list without a cursor begins at a
 * position that the clock decides.
 */
export type Cursors = Lru<number>;

export const createCursors = (): Cursors => createLru(MAX_CURSORS);

/** The namespace that a row belongs to, and its name in the list. */
interface Row {
  readonly namespace: string;
  readonly id: string;
}

/**
 * Namespaces take turns, and so do the rows of each namespace. Rows have positions on a circle, and a list continues
 * behind the last row that had its turn. So no row waits for ever, whatever rows are added and removed and whenever
 * runs begin.
 */
export interface RoundRobin {
  /** All rows in the order of their turns. */
  order<T>(list: string, rows: ReadonlyArray<T>, rowOf: (row: T) => Row): ReadonlyArray<T>;
  /** Records that the row has had its turn. */
  advance(list: string, row: Row): void;
  /** The rows whose turn it is now; all if there are no more than the limit. Call `advance` when they are done. */
  take<T>(list: string, rows: ReadonlyArray<T>, limit: number, rowOf: (row: T) => Row): Batch<T>;
  /**
   * Whether a row is in the next section of the circle, which is this share of the circle. Sections follow each other
   * without a gap.
   */
  section(list: string, share: number): (id: string) => boolean;
  /** The position where a list continues that another module iterates. */
  cursor(list: string): Cursor;
  /** Rows in an order that differs from run to run. */
  shuffle<T>(rows: ReadonlyArray<T>, idOf: (row: T) => string): ReadonlyArray<T>;
}

interface Batch<T> {
  readonly rows: ReadonlyArray<T>;
  /** Records that these rows have had their turn. */
  advance(): void;
}

interface RoundRobinDependencies {
  readonly hash: Hash;
  /** The time of the run: a list without a cursor begins at another position in each run. */
  readonly now: number;
  /** Only a resync sees whole lists: other runs do not move the cursors. */
  readonly moves: boolean;
}

export function createRoundRobin(cursors: Cursors, { hash, now, moves }: RoundRobinDependencies): RoundRobin {
  const positionOf = (text: string): number => Number.parseInt(hash(text).slice(0, 12), 16);
  const nameOf = (list: string): string => String(positionOf(list));
  const cursorOf = (list: string): number => cursors.get(nameOf(list)) ?? positionOf(`${list} ${now}`);
  const move = (list: string, position: number): void => {
    if (moves) cursors.set(nameOf(list), position);
  };
  /** From the first position behind the cursor. */
  const sort = <T>(list: string, rows: ReadonlyArray<T>, idOf: (row: T) => string): ReadonlyArray<T> => {
    const cursor = cursorOf(list);
    return sortBy(rows, (row) => (positionOf(idOf(row)) - cursor - 1 + POSITIONS) % POSITIONS);
  };
  const roundRobin: RoundRobin = {
    order: (list, rows, rowOf) => {
      const groups = Map.groupBy(rows, (row) => rowOf(row).namespace);
      const rounds = sort(list, [...groups.keys()], (namespace) => namespace).flatMap((namespace) =>
        sort(listName(list, namespace), groups.get(namespace) ?? [], (row) => rowOf(row).id).map(
          (row, round) => [row, round] as const,
        ),
      );
      return sortBy(rounds, ([, round]) => round).map(([row]) => row);
    },
    advance: (list, { namespace, id }) => {
      move(list, positionOf(namespace));
      move(listName(list, namespace), positionOf(id));
    },
    take: (list, rows, limit, rowOf) => {
      if (rows.length <= limit) return { rows, advance: () => undefined };
      const taken = roundRobin.order(list, rows, rowOf).slice(0, limit);
      const advance = () => {
        for (const row of taken) roundRobin.advance(list, rowOf(row));
      };
      return { rows: taken, advance };
    },
    section: (list, share) => {
      const [from, width] = [cursorOf(list), Math.ceil(share * POSITIONS)];
      move(list, (from + width) % POSITIONS);
      return (id) => (positionOf(id) - from + POSITIONS) % POSITIONS < width;
    },
    cursor: (list) => ({ from: cursorOf(list) / POSITIONS, move: (to) => move(list, Math.floor(to * POSITIONS)) }),
    shuffle: (rows, idOf) => sortBy(rows, (row) => positionOf(`${idOf(row)} ${now}`)),
  };
  return roundRobin;
}

const listName = (list: string, namespace: string): string => `${list}\n${namespace}`;

function sortBy<T>(rows: ReadonlyArray<T>, numberOf: (row: T) => number): ReadonlyArray<T> {
  const ranked = rows.map((row) => [row, numberOf(row)] as const);
  return ranked.sort(([, one], [, other]) => one - other).map(([row]) => row);
}

export function countByNamespace(objects: Iterable<Pick<OwnObject, 'metadata'>>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { metadata } of objects) counts.set(metadata.namespace, (counts.get(metadata.namespace) ?? 0) + 1);
  return counts;
}

/** Shares of a limit by owner: none gets more than it wants, and the rest is divided among the others. */
export function shareOut(limit: number, wanted: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  let left = limit;
  const fewestFirst = [...wanted].sort(([, one], [, other]) => one - other);
  return new Map(
    fewestFirst.map(([owner, want], index) => {
      const share = Math.min(want, left / (fewestFirst.length - index));
      left -= share;
      return [owner, share];
    }),
  );
}
