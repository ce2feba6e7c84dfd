import { expect, test } from 'vitest';
import { createLazy } from '../caches/lazy.ts';

test('what is loaded is loaded once, by calls at the same time too', async () => {
  let loads = 0;
  const value = createLazy(async () => {
    loads += 1;
    return loads;
  });
  expect(await Promise.all([value(), value()])).toEqual([1, 1]);
  expect(await value()).toBe(1);
});

test('a load that fails is told to all who wait for it, and is not remembered', async () => {
  let loads = 0;
  const value = createLazy(async () => {
    loads += 1;
    if (loads === 1) throw new Error('the disk did not answer');
    return loads;
  });
  const first = await Promise.allSettled([value(), value()]);
  expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await value()).toBe(2);
});
