import { expect, test } from 'vitest';
import { createMemoryBudget, jsonBytes } from '../reply-memory.ts';

const MIB = 1024 * 1024;

test('a share may hold what it is entitled to, whatever others hold', () => {
  const budget = createMemoryBudget(10 * MIB);
  const [small, large] = [budget.workMemory(MIB), budget.workMemory(100 * MIB)];
  large.take({}, 100 * MIB);
  small.take({}, MIB);
  expect([small.signal.aborted, large.signal.aborted]).toEqual([false, false]);
});

test('when shares hold too much together, the one with the largest excess ends, and the others continue', () => {
  const budget = createMemoryBudget(10 * MIB);
  const [hostile, worse, good] = [budget.workMemory(MIB), budget.workMemory(MIB), budget.workMemory(50 * MIB)];
  hostile.take({}, 4 * MIB);
  worse.take({}, 7 * MIB);
  good.take({}, 50 * MIB);
  expect(worse.signal.aborted).toBe(false);
  hostile.take({}, 2 * MIB);
  expect([hostile.signal.aborted, worse.signal.aborted, good.signal.aborted]).toEqual([false, true, false]);
  expect(() => worse.take({}, 1)).toThrow('more than there is memory for');
  // The place of the one that ended is free.
  const next = budget.workMemory(0);
  next.take({}, 5 * MIB);
  expect(next.signal.aborted).toBe(false);
});

test('a holder counts what it holds now, and a share that has ended counts nothing', () => {
  const budget = createMemoryBudget(10 * MIB);
  const [one, other] = [budget.workMemory(0), budget.workMemory(0)];
  const [statement, result] = [{}, {}];
  for (let turn = 0; turn < 100; turn += 1) {
    one.take(statement, 9 * MIB);
    one.take(statement, 0);
    one.take(result, MIB);
  }
  expect(() => one.take(statement, 10 * MIB)).toThrow('more than there is memory for');
  other.take({}, 10 * MIB);
  other.end();
  expect(() => other.take({}, 1)).toThrow('has ended');
  budget.workMemory(0).take({}, 10 * MIB);
});

test('ten thousand servers that answer a little at a time never hold more than there is', () => {
  const budget = createMemoryBudget(100 * MIB);
  const shares = Array.from({ length: 1000 }, () => ({ share: budget.workMemory(MIB), holder: {}, held: 0 }));
  for (let turn = 0; turn < 20_000; turn += 1) {
    const one = shares[(turn * 7919) % shares.length];
    if (one === undefined || one.share.signal.aborted) continue;
    one.held += 64 * 1024;
    try {
      one.share.take(one.holder, one.held);
    } catch {
      // Its own excess was the largest.
    }
    const live = shares.filter(({ share }) => !share.signal.aborted);
    expect(live.reduce((sum, { held }) => sum + Math.max(0, held - MIB), 0)).toBeLessThanOrEqual(100 * MIB);
  }
});

test.each(['[[],[],[]]', '[{},{"a":[1,2,3]},"a,b"]', '{"a":0,"b":"x\\",[{"}'])('values in %s take at least', (text) => {
  const values = [...text.replaceAll(/"(\\.|[^"\\])*"/g, '""')].filter((letter) => ',[{'.includes(letter));
  expect(jsonBytes(text)).toBe(values.reduce((sum, letter) => sum + (letter === ',' ? 40 : 64), 0));
});
