import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { message } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, keyValueOf, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { MESSAGES } from '../../../test/gateway/upstream.ts';
import { runs } from '../../../test/support/runs.ts';

const PREFIX = 'anthropic-ratelimit-unified';
const RESET = String(Date.parse('2026-12-20T12:00:00Z') / 1000);
const ASK = { model: 'claude', messages: MESSAGES, max_tokens: 5 };

function open(spent: string, record = keyRecord({ limit: '500' })) {
  const headers = {
    'content-type': 'application/json',
    [`${PREFIX}-status`]: 'allowed',
    'anthropic-ratelimit-tokens-limit': '7',
  };
  const snapshot = snapshotOf([entry('claude', { provider: 'anthropic', price: { input: '0', output: '0' } })]);
  const made = stage({ snapshot, keys: { [KEY]: record }, script: () => ({ headers, body: message('Hello') }) });
  made.ledger.spendNow('key-scope', spent);
  return { ...made, ask: () => made.chat(ASK, { path: '/v1/messages' }) };
}

const limitHeaders = ({ headers }: Response) =>
  Object.fromEntries(
    [...headers]
      .filter(([name]) => name.startsWith('anthropic-'))
      .map(([name, value]) => [name.replace(`${PREFIX}-`, ''), value]),
  );
const shared = { reset: RESET, 'overage-reset': RESET };

test.each([
  ['0', 'allowed', '0', {}],
  ['371.4', 'allowed', '0.7428', {}],
  ['375', 'allowed_warning', '0.75', { 'overage-surpassed-threshold': '0.75' }],
  ['410', 'allowed_warning', '0.82', { 'overage-surpassed-threshold': '0.75' }],
  ['499.999999999', 'allowed_warning', '0.9999', { 'overage-surpassed-threshold': '0.95' }],
])(
  "a message tells Claude Code the key's own spend, never the provider's: %s of 500 dollars",
  async (spent, status, used, more) => {
    const response = await open(spent).ask();
    const claim = { status, 'overage-status': status, 'representative-claim': 'overage' };
    expect(response.status).toBe(200);
    expect(limitHeaders(response)).toEqual({ ...shared, ...claim, 'overage-utilization': used, ...more });
  },
);

test('the refusal of a budget has the status rejected, and the period', async () => {
  const rejected = {
    status: 'rejected',
    'overage-utilization': '1',
    'overage-surpassed-threshold': '0.95',
    'overage-disabled-reason': 'org_spend_cap_reached',
  };
  expect(limitHeaders(await open('500').ask())).toEqual({ ...shared, ...rejected, 'overage-period': 'monthly' });
  const budget = { limit: '1000', duration: '1w', alignment: 'Rolling' as const };
  const shareds = open('0', keyRecord({ limit: '500' }, [scope('team', { budget })]));
  shareds.ledger.spendNow('team-scope', '1');
  expect(limitHeaders(await shareds.ask())).toMatchObject({
    'overage-period': 'weekly',
    'overage-scope': 'group_pool',
  });
});

test('other APIs, other refusals, and keys without a budget get none of these headers', async () => {
  const { chat, ask } = open('1');
  expect(limitHeaders(await chat(ASK))).toEqual({});
  expect(limitHeaders(await chat({ ...ASK, model: 'none' }, { path: '/messages' }))).toEqual({});
  expect(limitHeaders(await ask())).not.toEqual({});
  expect(limitHeaders(await open('1', keyRecord({ limit: '' })).ask())).toEqual({});
});

test("the usage report has the key's limit and spend in cents", async () => {
  const { get } = open('271.40');
  const limit = { kind: 'spend', group: 'monthly', percent: 54, severity: 'normal', is_active: true };
  const answer = {
    extra_usage: { is_enabled: true, monthly_limit: 50_000, used_credits: 27_140, utilization: 54, currency: 'USD' },
    limits: [{ ...limit, resets_at: '2026-12-20T12:00:00.000Z' }],
  };
  for (const path of ['/api/oauth/usage', '/api/oauth/usage?source=cli']) {
    expect(await (await get(path)).json()).toEqual(answer);
  }
  expect(await (await open('480').get('/api/oauth/usage')).json()).toMatchObject({
    limits: [{ percent: 96, severity: 'critical' }],
  });
  expect(await (await open('1', keyRecord({ limit: '' })).get('/api/oauth/usage')).json()).toMatchObject({
    limits: [],
  });
  expect((await get('/api/oauth/usage', keyValueOf('nobody'))).status).toBe(401);
});

test('a ledger that cannot be reached is a refusal with that reason', async () => {
  const { get, ledger } = open('1');
  ledger.knownSpend = (scopes) => scopes.map(() => undefined);
  ledger.fail('reserve');
  expect((await get('/api/oauth/usage')).status).toBe(503);
});

test('the share and the cents are within one per cent of the ledger', async () => {
  const cent = 10_000_000n;
  await fc.assert(
    fc.asyncProperty(
      fc.bigInt({ min: 100n * cent, max: 10n ** 18n }),
      fc.integer({ min: 1, max: 99 }),
      async (limit, share) => {
        const spent = (limit * BigInt(share)) / 100n;
        const dollars = (nano: bigint) =>
          `${nano / 1_000_000_000n}.${(nano % 1_000_000_000n).toString().padStart(9, '0')}`;
        const { ask, get } = open(dollars(spent), keyRecord({ limit: dollars(limit) }));
        expect(Math.abs(Number(limitHeaders(await ask())['overage-utilization']) - share / 100)).toBeLessThan(0.01);
        const { extra_usage: usage } = Object(await (await get('/api/oauth/usage')).json());
        expect(Math.abs(usage.utilization - share)).toBeLessThanOrEqual(1);
        expect(Math.abs(usage.used_credits - Number(spent / cent))).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: runs(100) },
  );
});
