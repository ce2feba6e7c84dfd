import { setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { nodeDependencies, processMemory } from '../platform.ts';

test('a timer of years does not go off immediately, as it would be beyond what Node can count', async () => {
  let isOver = false;
  const cancel = nodeDependencies().timer(36_525 * 86_400_000, () => {
    isOver = true;
  });
  await pause(20);
  cancel();
  expect(isOver).toBe(false);
});

test('the memory of a container has the heap that this process may really take', () => {
  expect(processMemory(2 ** 40, 2 ** 41)?.heap).toBe(getHeapStatistics().heap_size_limit);
});

test.each([
  ['a container with a limit', 2 ** 30, 2 ** 34, 2 ** 30],
  ['no limit', 0, 2 ** 34, undefined],
  ['a limit beyond the machine, as cgroups say that there is none', 2 ** 63, 2 ** 34, undefined],
])('the memory of %s', (_, limit, machine, expected) => {
  expect(processMemory(limit, machine)?.limit).toBe(expected);
});
