// A fair limiter passes its places on, whatever becomes of the work, and no owner keeps the others waiting.
import { expect, test } from 'vitest';
import { createFairLimiter } from '../concurrency/fair-limiter.ts';

test('a work that fails gives its place to the next, and its failure to who asked', async () => {
  const { run } = createFairLimiter(1);
  const failed = run('a', () => Promise.reject(new Error('no')));
  const next = run('a', async () => 'done');
  await expect(failed).rejects.toThrow('no');
  expect(await next).toBe('done');
  expect(await run('a', async () => 'later')).toBe('later');
});

test('an owner has a quarter of the places and of those that wait, however much it asks; free places go round', async () => {
  const { run, isFull } = createFairLimiter(8, 16);
  const begun: string[] = [];
  const ends: Array<() => void> = [];
  const ask = (owner: string) =>
    void run(owner, () => {
      begun.push(owner);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const settle = () => new Promise(setImmediate);
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
