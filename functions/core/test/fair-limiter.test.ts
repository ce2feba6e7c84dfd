// A fair limiter frees the slot of each task, also of one that fails, and no owner delays the others for long.
import { expect, test } from 'vitest';
import { createFairLimiter } from '../concurrency/fair-limiter.ts';

test('a task that fails gives its slot to the next task, and its failure to its caller', async () => {
  const { run } = createFairLimiter(1);
  const failed = run('a', () => Promise.reject(new Error('no')));
  const next = run('a', async () => 'done');
  await expect(failed).rejects.toThrow('no');
  expect(await next).toBe('done');
  expect(await run('a', async () => 'later')).toBe('later');
});

/** A limiter whose tasks run until the test ends them. */
function startScenario(...limits: Parameters<typeof createFairLimiter>) {
  const { run, isFull } = createFairLimiter(...limits);
  const begun: string[] = [];
  const ends: Array<() => void> = [];
  const ask = (owner: string) =>
    void run(owner, () => {
      begun.push(owner);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  return { isFull, begun, ends, ask, settle: () => new Promise(setImmediate) };
}

test('an owner has a quarter of the slots and of the waiting tasks, however many it has; owners take turns', async () => {
  const { isFull, begun, ends, ask, settle } = startScenario(8, 16);
  for (let asked = 0; asked < 100 && !isFull('greedy'); asked += 1) ask('greedy');
  expect([isFull('greedy'), isFull('other')]).toEqual([true, false]);
  for (const owner of ['b', 'c', 'd', 'b', 'c', 'd', 'b', 'c', 'd']) ask(owner);
  await settle();
  expect(begun.join(' ')).toBe('greedy greedy b c d b c d');
  ask('other');
  for (const end of ends.splice(0, 2)) end();
  await settle();
  expect(begun.slice(8)).toEqual(['other', 'greedy']);
});

test('the last quarter of the slots may be for owners without a running task', async () => {
  const { begun, ends, ask, settle } = startScenario(16, undefined, { hasSlotsForNewcomers: true });
  for (let task = 0; task < 10; task += 1) for (const owner of ['a', 'b', 'c', 'd']) ask(owner);
  await settle();
  expect(begun).toHaveLength(12);
  for (const owner of ['e', 'e', 'f']) ask(owner);
  await settle();
  expect(begun.slice(12)).toEqual(['e', 'f']);
  for (const end of ends.splice(12)) end();
  await settle();
  expect(begun.slice(14)).toEqual(['e']);
});

test('without a number of slots every task begins', async () => {
  const { begun, ask, settle } = startScenario(Number.POSITIVE_INFINITY, undefined, { hasSlotsForNewcomers: true });
  for (let task = 0; task < 10; task += 1) ask('a');
  await settle();
  expect(begun).toHaveLength(10);
});
