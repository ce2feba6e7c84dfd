import { describe, expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createScopeWrites, toTransactions } from '../scope-writes.ts';
import type { Session } from '../session.ts';

const recount = { scopeId: 'key', window: { start: 0, end: 1 } };
const writeOf = (count: number) => ({ recounts: Array.from({ length: count }, () => recount) });

describe('transactions of writes of scopes', () => {
  test('have at most 100 recounts, for which bookings wait, and every write in its order', () => {
    const writes = Array.from({ length: 500 }, () => writeOf(73));
    const portions = toTransactions(writes);
    expect(portions.flat()).toEqual(writes);
    expect(Math.max(...portions.map((each) => each.flatMap(({ recounts }) => recounts).length))).toBeLessThanOrEqual(
      100,
    );
    expect(portions).toHaveLength(500);
  });

  test('without recounts are one', () => {
    expect(toTransactions(Array.from({ length: 500 }, () => ({})))).toHaveLength(1);
  });

  test('a write with more recounts has a transaction of its own', () => {
    expect(toTransactions([writeOf(1), writeOf(1500), writeOf(1)]).map((each) => each.length)).toEqual([1, 1, 1]);
  });
});

test.each([
  ['the first portion', [], 1],
  ['a portion after a refused one', ['refused'], 2],
])(
  'a database that %s finds unreachable is asked no more: one timeout, whatever the number of writes',
  async (_, refusals, expected) => {
    let transactions = 0;
    const session: Pick<Session, 'transaction'> = {
      transaction: async () => {
        transactions += 1;
        const refusal = refusals[transactions - 1];
        throw refusal === undefined ? new DatabaseUnreachable('silent') : new Error(refusal);
      },
    };
    const { putScope } = createScopeWrites(session as Session);
    const writes = Array.from({ length: 400 }, (__, place) => ({ ...scopeWrite(`key-${place}`), ...writeOf(7) }));
    const outcomes = await Promise.allSettled(writes.map(putScope));
    expect(outcomes).toEqual(writes.map(() => ({ status: 'rejected', reason: new DatabaseUnreachable('silent') })));
    expect(transactions).toBe(expected);
  },
);
