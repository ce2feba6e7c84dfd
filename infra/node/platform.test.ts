import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { nodeDependencies } from './platform.ts';

test('a timer of years does not go off at once, as it would be beyond what Node can count', async () => {
  let isOver = false;
  const cancel = nodeDependencies().timer(36_525 * 86_400_000, () => {
    isOver = true;
  });
  await pause(20);
  cancel();
  expect(isOver).toBe(false);
});
