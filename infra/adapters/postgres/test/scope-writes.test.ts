// The number of statements and transactions for writes of many scopes.
import { expect, test } from 'vitest';
import type { ScopeWrite } from '#core/ports/registry.ts';
import { scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createScopeWrites } from '../scope-writes.ts';
import type { Query, Session } from '../session.ts';

const COUNT = 500;
const writes = Array.from({ length: COUNT }, (_, place): ScopeWrite => {
  const write = scopeWrite(`alias-${place}`, { value: { hash: `${place}` } });
  return { ...write, recounts: [{ scopeId: write.policy.scopeId, window: { start: 0, end: 1 } }] };
});

/** A session that holds every claim, and refuses transactions with a write of these aliases. */
function createDouble(refused: ReadonlyArray<string>) {
  const counts = { statements: 0, transactions: 0 };
  const query = (async (statement: string, values: ReadonlyArray<unknown> = []) => {
    counts.statements += 1;
    const text = String(values[0]);
    if (refused.some((alias) => text.includes(`"${alias}"`))) throw new Error('PostgreSQL refuses it');
    const isLock = statement.includes('for update of c');
    return isLock ? (JSON.parse(text) as ReadonlyArray<object>).map((_, place) => ({ place, generation: null })) : [];
  }) as Query;
  const session = {
    transaction: (_, work) => {
      counts.transactions += 1;
      return work(query);
    },
  } satisfies Partial<Session>;
  return { counts, ...createScopeWrites(session as Partial<Session> as Session) };
}

test('the claims, policies, values and recounts of 500 scopes take one transaction and a few statements', async () => {
  const { counts, putScope } = createDouble([]);
  expect(new Set(await Promise.all(writes.map(putScope)))).toEqual(new Set(['written']));
  expect(counts).toEqual({ statements: 11, transactions: 1 });
});

test('writes that PostgreSQL refuses are found in few transactions, and stop no other', async () => {
  const refused = ['alias-7', 'alias-400'];
  const { counts, putScope } = createDouble(refused);
  const results = await Promise.allSettled(writes.map(putScope));
  expect(results.flatMap(({ status }, place) => (status === 'rejected' ? [`alias-${place}`] : []))).toEqual(refused);
  expect(counts.transactions).toBeLessThan(40);
});
