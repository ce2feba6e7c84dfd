// A queue passes its places on, whatever becomes of the work.
import { expect, test } from 'vitest';
import { createQueue } from '../concurrent.ts';

test('a work that fails gives its place to the next, and its failure to who asked', async () => {
  const inTurn = createQueue(1);
  const failed = inTurn(() => Promise.reject(new Error('no')));
  const next = inTurn(async () => 'done');
  await expect(failed).rejects.toThrow('no');
  expect(await next).toBe('done');
  expect(await inTurn(async () => 'later')).toBe('later');
});
