import { describe, expect, test } from 'vitest';
import { toTransactions } from '../scope-writes.ts';

const recount = { scopeId: 'key', window: { start: 0, end: 1 } };
const writeOf = (count: number) => ({ recounts: Array.from({ length: count }, () => recount) });

describe('transactions of writes of scopes', () => {
  test('have at most 1,000 recounts, for which bookings wait, and every write in its order', () => {
    const writes = Array.from({ length: 500 }, () => writeOf(73));
    const portions = toTransactions(writes);
    expect(portions.flat()).toEqual(writes);
    expect(Math.max(...portions.map((each) => each.flatMap(({ recounts }) => recounts).length))).toBeLessThanOrEqual(
      1000,
    );
    expect(portions.length).toBe(Math.ceil(500 / 13));
  });

  test('without recounts are one', () => {
    expect(toTransactions(Array.from({ length: 500 }, () => ({})))).toHaveLength(1);
  });

  test('a write with more recounts has a transaction of its own', () => {
    expect(toTransactions([writeOf(1), writeOf(1500), writeOf(1)]).map((each) => each.length)).toEqual([1, 1, 1]);
  });
});
