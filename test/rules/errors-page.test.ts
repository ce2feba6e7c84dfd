// Does docs/errors.md say what the gateway really answers, code by code?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Failure, type FailureCode, toReply } from '#core/failure.ts';

/** One of each: a code that is missing here does not compile. */
const failures: { readonly [Code in FailureCode]: Extract<Failure, { readonly code: Code }> } = {
  invalid_api_key: { code: 'invalid_api_key' },
  expired_api_key: { code: 'expired_api_key', at: 0 },
  key_blocked: { code: 'key_blocked', kind: 'key' },
  model_access_denied: { code: 'model_access_denied', model: 'm', kind: 'key' },
  model_not_found: { code: 'model_not_found', model: 'm' },
  model_not_priced: { code: 'model_not_priced', model: 'm' },
  budget_exceeded: {
    code: 'budget_exceeded',
    kind: 'key',
    name: 'k',
    limit: 1n,
    spent: 1n,
    duration: '1d',
    resetAt: 9000,
    now: 0,
  },
  budget_held: { code: 'budget_held', kind: 'key', name: 'k' },
  rate_limit_exceeded: { code: 'rate_limit_exceeded', retryAfter: 1 },
  invalid_request: { code: 'invalid_request', message: 'no' },
  request_too_large: { code: 'request_too_large', limit: 1 },
  upstream_refused: { code: 'upstream_refused', status: 400, message: 'no' },
  upstream_rate_limited: { code: 'upstream_rate_limited', retryAfter: 1 },
  upstream_error: { code: 'upstream_error' },
  upstream_timeout: { code: 'upstream_timeout' },
  no_healthy_target: { code: 'no_healthy_target', model: 'm' },
  ledger_unavailable: { code: 'ledger_unavailable', why: '' },
  client_left: { code: 'client_left' },
  not_found: { code: 'not_found', path: '/' },
  method_not_allowed: { code: 'method_not_allowed', allow: 'GET' },
  internal_error: { code: 'internal_error' },
};

interface Row {
  readonly statuses: ReadonlyArray<number>;
  readonly text: string;
}

const page = readFileSync(join(import.meta.dirname, '../../docs/errors.md'), 'utf8');
const rows = new Map<string, Row>(
  [...page.matchAll(/^\| ([0-9, ]+) \| `([a-z_]+)` \| (.*) \|$/gm)].map(([, statuses = '', code = '', text = '']) => [
    code,
    { statuses: statuses.split(', ').map(Number), text },
  ]),
);

test.each(Object.values(failures))('$code stands in docs/errors.md, with its status and headers', (failure) => {
  const row = rows.get(failure.code);
  const { status, headers } = toReply(failure);
  expect(row?.statuses).toContain(status);
  for (const name of Object.keys(headers).filter((header) => header === 'x-should-retry'))
    expect(row?.text).toContain(name);
});

test('docs/errors.md names no code that the gateway does not have', () => {
  expect([...rows.keys()].sort()).toEqual(Object.keys(failures).sort());
});
