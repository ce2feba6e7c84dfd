// Which of two runs makes the next call? A small scheduler that lets one continue and holds the other, so that every
// order can be tried.
import { AsyncLocalStorage } from 'node:async_hooks';
import { READS } from '../databases.ts';
import type { Harness } from '../harness.ts';

type RunIndex = 0 | 1;
/** Before which calls a run may be held. */
export type Points = 'calls' | 'writes';

/**
 * Each run in a process of its own. The first makes as many calls as the first number says, then the second as many as
 * the second says, and so on by turns; after the last number each continues to its end. Answers how many points each
 * has met.
 */
export async function interleave(
  harness: Harness,
  runs: readonly [() => Promise<unknown>, () => Promise<unknown>],
  turns: ReadonlyArray<number>,
  points: Points = 'calls',
): Promise<readonly [number, number]> {
  const whose = new AsyncLocalStorage<RunIndex>();
  const met: [number, number] = [0, 0];
  const ended = [false, false];
  let place = 0;
  let active: RunIndex = 0;
  let left = turns[0] ?? Number.POSITIVE_INFINITY;
  let changed = Promise.withResolvers<void>();
  const yieldTo = (other: RunIndex) => {
    active = other;
    place += 1;
    left = turns[place] ?? Number.POSITIVE_INFINITY;
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const other = (who: RunIndex): RunIndex => (who === 0 ? 1 : 0);
  const point = async () => {
    const who = whose.getStore();
    if (who === undefined) return;
    met[who] += 1;
    for (;;) {
      if (active !== who) await changed.promise;
      else if (left > 0 || ended[other(who)]) break;
      else yieldTo(other(who));
    }
    left -= 1;
  };
  harness.cluster.inject(async ({ verb }) => {
    if (points === 'calls' || (verb !== 'get' && verb !== 'list')) await point();
    return undefined;
  });
  harness.onDatabase = async (method) => {
    if (points === 'calls' || !READS.includes(method)) await point();
  };
  const start = (who: RunIndex) =>
    whose.run(who, async () => {
      const run = runs[who]();
      harness.restart();
      await run;
      ended[who] = true;
      if (active === who) yieldTo(other(who));
    });
  await Promise.all([start(0), start(1)]);
  harness.cluster.inject(() => undefined);
  harness.onDatabase = () => undefined;
  return met;
}

/** At most so many of all pairs, evenly spread. */
export function pairs(first: number, second: number, maxPairs: number): ReadonlyArray<readonly [number, number]> {
  const all = Array.from({ length: first * second }, (_, index): readonly [number, number] => [
    Math.floor(index / second) + 1,
    (index % second) + 1,
  ]);
  const stride = Math.max(1, all.length / maxPairs);
  return Array.from(
    { length: Math.min(maxPairs, all.length) },
    (_, index) => all[Math.floor(index * stride)] ?? [1, 1],
  );
}
