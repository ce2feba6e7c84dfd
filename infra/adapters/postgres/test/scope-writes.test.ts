import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createScopeWrites } from '../scope-writes.ts';
import type { Session } from '../session.ts';

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
    const writes = Array.from({ length: 400 }, (__, place) => scopeWrite(`key-${place}`));
    const outcomes = await Promise.allSettled(writes.map(putScope));
    expect(outcomes).toEqual(writes.map(() => ({ status: 'rejected', reason: new DatabaseUnreachable('silent') })));
    expect(transactions).toBe(expected);
  },
);

describe('writes with recounts', () => {
  const recounts = [{ scopeId: 'key', window: { start: 0, end: 1 } }];
  const writesOf = (count: number, namespace: string) =>
    Array.from({ length: count }, (_, place) => {
      const write = scopeWrite(`${namespace}-${place}`);
      return { ...write, holder: { ...write.holder, namespace }, recounts };
    });

  test('have a transaction each, one at a time of a namespace, and other writes do not wait for them', async () => {
    const began: string[] = [];
    const session: Pick<Session, 'transaction'> = {
      transaction: () => {
        began.push('transaction');
        return new Promise(() => undefined);
      },
    };
    const { putScope } = createScopeWrites(session as Session);
    for (const write of [...writesOf(50, 'apps'), ...writesOf(1, 'research')])
      void putScope(write).catch(() => undefined);
    await expect.poll(() => began.length).toBe(2);
    void putScope(scopeWrite('plain')).catch(() => undefined);
    await expect.poll(() => began.length).toBe(3);
  });

  test('fail without a call if the database was found away while they waited; a statement that took too long stops no other', async () => {
    let transactions = 0;
    const cancelled = Object.assign(new pg.DatabaseError('canceling statement', 0, 'error'), { code: '57014' });
    const failures = [new DatabaseUnreachable('slow', { cause: cancelled }), new DatabaseUnreachable('away')];
    const session: Pick<Session, 'transaction'> = {
      transaction: async () => {
        transactions += 1;
        throw failures[transactions - 1] ?? new Error('asked again');
      },
    };
    const { putScope } = createScopeWrites(session as Session);
    const outcomes = await Promise.allSettled(writesOf(50, 'apps').map(putScope));
    const [first, ...others] = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.message : ''));
    expect(first).toBe('slow');
    expect(new Set(others)).toEqual(new Set(['away']));
    expect(transactions).toBe(2);
  });
});
