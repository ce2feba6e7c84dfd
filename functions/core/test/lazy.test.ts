import { expect, test } from 'vitest';
import { createLazy } from '../caches/lazy.ts';

test('a value is loaded once, also by concurrent calls', async () => {
  let loads = 0;
  const value = createLazy(async () => {
    loads += 1;
    return loads;
  });
  expect(await Promise.all([value(), value()])).toEqual([1, 1]);
  expect(await value()).toBe(1);
});

test('a load that fails rejects for all who wait for it, and is not remembered', async () => {
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
