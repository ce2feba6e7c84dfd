import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Failure, type FailureCode, toReply } from './failure.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

/** One example of every arm; a new arm does not compile without one. */
const EXAMPLES: { readonly [Code in FailureCode]: Extract<Failure, { code: Code }> } = {
  invalid_api_key: { code: 'invalid_api_key' },
  expired_api_key: { code: 'expired_api_key', at: NOW },
  key_blocked: { code: 'key_blocked', kind: 'team' },
  model_access_denied: { code: 'model_access_denied', model: 'gpt', kind: 'key' },
  model_not_found: { code: 'model_not_found', model: 'g"\n' },
  model_not_priced: { code: 'model_not_priced', model: 'gpt' },
  budget_exceeded: {
    code: 'budget_exceeded',
    kind: 'user',
    name: 'alice@example.com',
    limit: 12_500_000_000n,
    spent: 12_500_000_000n,
    duration: '30d',
    resetAt: NOW + 1500,
    now: NOW,
  },
  budget_held: { code: 'budget_held', kind: 'key', name: 'billing' },
  rate_limit_exceeded: { code: 'rate_limit_exceeded', retryAfter: 12 },
  invalid_request: { code: 'invalid_request', message: '"messages" must be an array.', param: 'messages' },
  request_too_large: { code: 'request_too_large', limit: 33_554_432 },
  upstream_refused: { code: 'upstream_refused', status: 422, message: 'Too hot.', param: 'temperature' },
  upstream_rate_limited: { code: 'upstream_rate_limited', retryAfter: 7 },
  upstream_error: { code: 'upstream_error' },
  upstream_timeout: { code: 'upstream_timeout' },
  no_healthy_target: { code: 'no_healthy_target', model: 'gpt' },
  ledger_unavailable: { code: 'ledger_unavailable', why: 'connection refused by db.internal:5432' },
  client_left: { code: 'client_left' },
  not_found: { code: 'not_found', path: '/embeddings' },
  method_not_allowed: { code: 'method_not_allowed', allow: 'POST' },
  internal_error: { code: 'internal_error' },
};

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
