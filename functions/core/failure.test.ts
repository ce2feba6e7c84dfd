import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EXAMPLES, NOW } from './failure.fixture.ts';
import { toReply } from './failure.ts';

test('what a client is told of each failure', async () => {
  const told = Object.values(EXAMPLES).map((failure) => {
    const { status, headers, level, error } = toReply(failure);
    const extra = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
    return `${status} (logged as ${level})\n${extra.join('')}${JSON.stringify({ error })}\n`;
  });
  await expect(told.join('\n')).toMatchFileSnapshot(join(import.meta.dirname, 'failure.golden.txt'));
});

test('a request that is too dear for what is left is not told that the budget is spent', () => {
  const { status, error } = toReply({ ...EXAMPLES.budget_exceeded, spent: 400_000_000n });
  expect({ status, code: error.code }).toEqual({ status: 429, code: 'budget_exceeded' });
  expect(error.message).toBe(
    'The budget of user "alice@example.com" leaves too little for this request: 0.4 of 12.5 dollars per 30d are spent. It resets at 2026-11-21T12:00:01.500Z; send less, or raise maxBudget.',
  );
});

test('nobody is told why the ledger is away', () => {
  expect(JSON.stringify(toReply(EXAMPLES.ledger_unavailable))).not.toContain('db.internal');
});

test('a name as long as a body is cut', () => {
  expect(toReply({ code: 'model_not_found', model: 'x'.repeat(1_000_000) }).error.message.length).toBeLessThan(500);
});

test.each([
  [-5, '1'],
  [0, '1'],
  [1, '1'],
  [1000, '1'],
  [1001, '2'],
])('retry-after is in whole seconds, never early and never zero: %d ms', (millis, header) => {
  const { headers } = toReply({ ...EXAMPLES.budget_exceeded, resetAt: NOW + millis });
  expect(headers['retry-after']).toBe(header);
});
