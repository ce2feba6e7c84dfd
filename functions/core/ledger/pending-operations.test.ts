import { expect, test } from 'vitest';
import type { HoldOperation } from '../ports/store.ts';
import { isEmpty, noOperations, type Pending, takeFitting } from './pending-operations.ts';

const pending = <O, A>(operation: O): Pending<O, A> => ({
  operation,
  resolve: () => undefined,
  reject: () => undefined,
});

function holdOf(id: string, scopes: number): HoldOperation {
  const charges = Array.from({ length: scopes }, (_, index) => ({ scopeId: `${index}`, window: { start: 0, end: 1 } }));
  const note = { charges, model: '', identifier: '' };
  return {
    id,
    amount: 1n,
    minAmount: 1n,
    counters: charges.map((each) => ({ ...each, limit: 1n })),
    note,
    deadline: 0,
    lease: 0,
  };
}

test('a call carries at most 64 operations, settlements and releases before holds, and nothing is lost', () => {
  const waiting = noOperations();
  for (let index = 0; index < 100; index += 1) {
    waiting.settles.push(pending({ id: `settle-${index}`, cost: 1n }));
    waiting.holds.push(pending(holdOf(`hold-${index}`, 1)));
  }
  const sizes: [number, number][] = [];
  const order: string[] = [];
  while (!isEmpty(waiting)) {
    const { settles, holds } = takeFitting(waiting);
    sizes.push([settles.length, holds.length]);
    order.push(...[...settles, ...holds].map(({ operation }) => operation.id));
  }
  expect(sizes).toEqual([
    [64, 0],
    [36, 28],
    [0, 64],
    [0, 8],
  ]);
  expect(new Set(order).size).toBe(200);
});

test('a call carries at most 2,000 arguments, so holds with many scopes make it shorter', () => {
  const waiting = noOperations();
  for (let index = 0; index < 64; index += 1) waiting.holds.push(pending(holdOf(`hold-${index}`, 10)));
  expect(takeFitting(waiting).holds).toHaveLength(40);
  expect(takeFitting(waiting).holds).toHaveLength(24);
});

test('an operation that is too large for any call goes alone, and does not block the others', () => {
  const waiting = noOperations();
  waiting.holds.push(pending(holdOf('large', 1000)), pending(holdOf('small', 1)));
  expect(takeFitting(waiting).holds.map(({ operation }) => operation.id)).toEqual(['large']);
  expect(takeFitting(waiting).holds.map(({ operation }) => operation.id)).toEqual(['small']);
});
