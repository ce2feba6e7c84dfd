import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { toReply } from '../failure/failure.ts';
import { EXAMPLES, NOW } from './failure.fixture.ts';

test('the reply to each failure', async () => {
  const replies = Object.values(EXAMPLES).map((failure) => {
    const { status, headers, level, error } = toReply(failure);
    const extra = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
    return `${status} (logged as ${level})\n${extra.join('')}${JSON.stringify({ error })}\n`;
  });
  await expect(replies.join('\n')).toMatchFileSnapshot(join(import.meta.dirname, 'failure.golden.txt'));
});

test('a request that costs more than what is left does not get the message that the budget is spent', () => {
  const { status, error } = toReply({ ...EXAMPLES.budget_exceeded, spent: 400_000_000n });
  expect({ status, code: error.code }).toEqual({ status: 429, code: 'budget_exceeded' });
  expect(error.message).toBe(
    'The budget of user "alice@example.com" leaves too little for this request, for which at least 0.0012 dollars must be reserved: 0.4 of 12.5 dollars per 30d are spent. It resets at 2026-11-21T12:00:02Z; send less, or ask for a larger maxBudget.',
  );
});

test('the message for a request that costs more than the whole budget has the amount that it needs, and no time to wait', () => {
  const { status, error, headers } = toReply({ ...EXAMPLES.budget_exceeded, spent: 0n, needs: 20_000_000_000n });
  expect(status).toBe(429);
  expect(error).not.toHaveProperty('resets_at');
  expect(error.message).toBe(
    'The budget of user "alice@example.com" is too small for this request, for which at least 20 dollars must be reserved: it is 12.5 dollars per 30d. Waiting does not help: send less, or ask for a larger maxBudget.',
  );
  expect(headers).toEqual({ 'x-should-retry': 'false' });
});

test('the message for a provider that refuses our credentials names who can help: the platform team', () => {
  const { status, error } = toReply({ code: 'upstream_error', refusesCredentials: true });
  expect([status, error.message]).toEqual([
    502,
    'The provider refuses the credentials that this gateway has for the model. Ask the platform team to correct them.',
  ]);
});

test('the message for a budget of zero has no time to wait', () => {
  const { error, headers } = toReply({ ...EXAMPLES.budget_exceeded, limit: 0n, spent: 0n, needs: 0n });
  expect(error.message).toBe(
    'The budget of user "alice@example.com" is zero: nothing may be spent. Ask for a larger maxBudget.',
  );
  expect(headers).toEqual({ 'x-should-retry': 'false' });
});

test.each([
  [60_000, '60'],
  [60_001, undefined],
])('a reset in %d ms has a retry-after (%s) only if agents should wait: some wait for days', (millis, header) => {
  const resetAt = NOW + millis;
  const { headers, error } = toReply({ ...EXAMPLES.budget_exceeded, resetAt });
  expect([headers['retry-after'], headers['x-should-retry']]).toEqual([header, 'false']);
  expect(error.resets_at).toBe(Math.ceil(resetAt / 1000));
});

test('the message for a request of more tokens than the limit has their number, and the time of a minute without requests', () => {
  const { error, headers } = toReply({ ...EXAMPLES.rate_limit_exceeded, rate: 'tokens', limit: 100, needs: 4321 });
  expect(error.message).toBe(
    'The rate limit of key "billing" is reached: 100 tokens per minute. This request uses about 4321, so it needs a whole minute without other requests. Try again in 12 s. Or send less, or set a smaller max_completion_tokens.',
  );
  expect(headers).toEqual({ 'retry-after': '12' });
});

test.each([
  ['TeamNotFound', 'A team that this API key or its user names is gone, so its requests cannot be charged.'],
  [
    'UserOfOtherInstance',
    'The user that this API key names is not of this gateway, so its requests cannot be charged.',
  ],
  ['TeamNotReady', 'A team that this API key or its user names is not ready, so its requests cannot be charged.'],
  ['SomethingNew', 'This API key is blocked.'],
])('the message for a key that nobody blocked names who is missing: %s', (missingOwnerReason, message) => {
  expect(toReply({ code: 'key_blocked', kind: 'key', name: 'billing', missingOwnerReason }).error.message).toContain(
    message,
  );
});

test('no client sees why the ledger is away', () => {
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

/** The patterns by which opencode 1.18 takes a refusal for a temporary failure, in its message and in its body. */
const OF_OPENCODE = [
  /429|500|502|503|504|524/i,
  /rate increased too quickly|rate limit|rate-limit|rate_limit|too many requests/i,
  /overloaded|service unavailable|service_unavailable|service-unavailable|internal error|internal_error|internal server error|server error|server_error|server-error|provider returned error|provider_returned_error|provider-returned-error/i,
  /terminated|fetch failed|failed to fetch|network[-_\s]error|upstream connect|connection error|connection refused|connection lost|socket connection was closed|socket hang up|reset before headers|getaddrinfo|enotfound|eai_again|econnrefused|econnreset|etimedout/i,
  /^timeout$|\b(?:request|response|connection|network|stream|read) (?:timeout|timed out|time out)\b/i,
  /try your request again|retry your request|resource exhausted|resource_exhausted/i,
  /\btry again (?:later|in\b)|\b(?:currently|temporarily) at capacity\b/i,
];

test('no refusal of a spent budget reads like a passing failure, whatever the sums, the dates and the name', () => {
  const digits = fc.constantFrom('429', '500', '502', '503', '504', '524', '7');
  const sum = fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 18n }),
    fc.tuple(digits, fc.nat({ max: 12 })).map(([begin, zeros]) => BigInt(begin) * 10n ** BigInt(zeros)),
  );
  const failures = fc.record({
    code: fc.constant('budget_exceeded' as const),
    scope: fc.record({
      kind: fc.constantFrom('key' as const, 'user' as const, 'team' as const, 'namespace' as const, 'model' as const),
      name: fc.oneof(
        fc.constant('billing'),
        digits.map((name) => `team-${name}`),
      ),
      of: fc.constantFrom('default/main', 'prod/gateway-503'),
    }),
    limit: sum,
    spent: sum,
    needs: sum,
    duration: fc.oneof(
      fc.constant('30d'),
      digits.map((count) => `${count}h`),
    ),
    resetAt: fc.integer({ min: NOW, max: NOW + 36_525 * 86_400_000 }),
    now: fc.constant(NOW),
  });
  fc.assert(
    fc.property(failures, (failure) => {
      const { error } = toReply(failure);
      // The reset in Unix seconds is for programs: a number can only be written by its digits.
      const { resets_at: _, ...fixedFields } = error;
      const body = JSON.stringify({ error: fixedFields });
      for (const pattern of OF_OPENCODE) expect([error.message, body].filter((text) => pattern.test(text))).toEqual([]);
      expect(error.message).toMatch(/^The budget of (this )?(key|user|team|namespace|model)/);
    }),
    { numRuns: runs(1000) },
  );
});

test('a sum that agents would take for a status is left out of the sentence', () => {
  const { error } = toReply({ ...EXAMPLES.budget_exceeded, limit: 500_000_000_000n, spent: 500_000_000_000n });
  expect(error.message).toBe(
    'The budget of user "alice@example.com" is exceeded. It resets at 2026-11-21T12:00:02Z; ask for a larger maxBudget to continue before that.',
  );
});

test('an error links to the section of its code once the documentation has an address, and has no link before', () => {
  const failure = EXAMPLES.budget_held;
  expect(toReply(failure, 'https://docs.example.com/use/errors').error.doc_url).toBe(
    'https://docs.example.com/use/errors#budget_held',
  );
  expect(toReply(failure).error).not.toHaveProperty('doc_url');
});
