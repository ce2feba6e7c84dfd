import { describe, expect, test } from 'vitest';
import { entry, KEY, keyRecord, keyValueOf, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { codeOf, Envelope, stage } from '../../../test/gateway/stage.ts';
import { NOW } from '../../../test/gateway/time.ts';
import { MESSAGES } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES };

describe('the budget', () => {
  test('that is spent refuses with the scope, its limit and its reset', async () => {
    const team = scope('team', { budget: { limit: '2500000000', duration: '7d', alignment: 'Rolling' } });
    const { chat, ledger, fake } = stage({ keys: { [KEY]: keyRecord({}, [team]) } });
    ledger.spendNow('team-scope', '2.5');
    const response = await chat(CHAT);
    expect(response.headers.get('retry-after')).toBeNull();
    expect(response.headers.get('x-should-retry')).toBe('false');
    const { error } = Envelope.parse(await response.json());
    const resets = { resets_at: Date.parse('2026-11-28T12:00:00Z') / 1000 };
    expect(error).toMatchObject({ type: 'insufficient_quota', code: 'budget_exceeded', ...resets });
    expect(error.message).toContain('team "a team"');
    expect(error.message).toContain('2.5 dollars per 7d');
    expect(error.message).toContain('2026-11-28T12:00:00Z');
    expect([response.status, fake.requests.length]).toEqual([429, 0]);
  });

  test('that does not cover the prompt and one token of output refuses before any provider is called', async () => {
    // A thousand nano-dollars for a byte of the prompt, two thousand for a token of the answer.
    const minBudget = (body: object) => 1000 * JSON.stringify(body).length + 2000;
    const withLimit = (nano: number) => ({ keys: { [KEY]: keyRecord({ limit: (nano / 1e9).toFixed(9) }) } });
    for (const body of [CHAT, { ...CHAT, stream: true }]) {
      const poor = stage(withLimit(minBudget(body) - 1));
      const response = await poor.chat(body);
      // The whole budget is smaller, so waiting does not help.
      expect(response.headers.get('retry-after')).toBeNull();
      const { error } = Envelope.parse(await response.clone().json());
      expect(error.message).toContain(`at least ${minBudget(body) / 1e9} dollars must be reserved`);
      expect(await codeOf(response)).toEqual([429, 'budget_exceeded']);
      expect([poor.fake.requests.length, poor.ledger.liveReservations(), poor.ledger.settled.length]).toEqual([
        0, 0, 0,
      ]);
    }
    const enough = stage(withLimit(minBudget(CHAT)));
    expect((await enough.chat(CHAT)).status).toBe(200);
    expect(enough.fake.sent()).toMatchObject({ max_completion_tokens: 1 });
  });

  test('that is reserved by other requests refuses with a retry after one second', async () => {
    const { chat, ledger } = stage({ script: () => new Promise(() => {}) });
    void chat({ ...CHAT, max_tokens: 400_000 });
    await expect.poll(() => ledger.liveReservations()).toBe(1);
    const response = await chat({ ...CHAT, max_tokens: 400_000 });
    expect(response.headers.get('retry-after')).toBe('1');
    expect(response.headers.get('x-should-retry')).toBeNull();
    expect(await codeOf(response)).toEqual([429, 'budget_held']);
  });

  test('that cannot be read refuses with 503, never with 401, and never admits', async () => {
    const { chat, get, ledger, fake } = stage();
    ledger.fail('reserve');
    expect(await codeOf(await chat(CHAT))).toEqual([503, 'ledger_unavailable']);
    expect(await codeOf(await get('/key'))).toEqual([503, 'ledger_unavailable']);
    expect(fake.requests).toEqual([]);
  });

  test('is in the report of GET key, in decimal dollars and dates', async () => {
    const user = scope('user', { name: 'alice@example.com' });
    const record = keyRecord({ limit: '12.5', models: ['gpt'], expiresAt: NOW + 1000 }, [user]);
    const { get, ledger } = stage({ keys: { [KEY]: record } });
    ledger.spendNow('key-scope', '0.000000001');
    const budget = {
      maxBudget: '12.5',
      budgetDuration: '30d',
      currentSpend: '0.000000001',
      remaining: '12.499999999',
      budgetResetDate: '2026-12-20T12:00:00.000Z',
    };
    expect(await (await get('/v1/key')).json()).toEqual({
      alias: 'billing',
      models: ['gpt'],
      ...budget,
      expiryDate: '2026-11-21T12:00:01.000Z',
      isActive: true,
      scopes: [
        { kind: 'key', name: 'billing', ...budget },
        {
          kind: 'user',
          name: 'alice@example.com',
          maxBudget: null,
          budgetDuration: null,
          currentSpend: null,
          remaining: null,
          budgetResetDate: null,
        },
      ],
    });
    ledger.spendNow('key-scope', '20');
    expect(await (await get('/key')).json()).toMatchObject({ remaining: '0', isActive: false });
  });
});

const anthropic = entry('claude', { provider: 'anthropic', maxOutputTokens: 10 });
const BODIES: Readonly<Record<string, object>> = {
  '/messages': { model: 'claude', messages: MESSAGES, max_tokens: 5 },
  '/responses': { model: 'gpt', input: 'Hello' },
  '/embeddings': { model: 'gpt', input: 'Hello' },
};

describe.each([
  ['/chat/completions', 'insufficient_quota', 'authentication_error', null],
  ['/messages', 'billing_error', 'authentication_error', 'false'],
  ['/responses', 'usage_limit_reached', 'authentication_error', null],
  ['/embeddings', 'insufficient_quota', 'authentication_error', null],
])('a refusal on %s', (path, ofBudget, ofKey, shouldRetry) => {
  const blockedMessage = 'Ask in #ai-platform.';
  const open = () => {
    const made = stage({ snapshot: { ...snapshotOf([entry('gpt'), anthropic]), blockedMessage } });
    made.ledger.spendNow('key-scope', '1');
    return made;
  };
  const errorOf = async (response: Response) => Object(await response.json()).error;

  test.each([false, true])(
    'of a spent budget ends the run of an agent, with our message and that of the instance (streamed: %s)',
    async (stream) => {
      const { chat, fake } = open();
      const response = await chat(
        { ...CHAT, ...BODIES[path], ...(path === '/embeddings' ? { messages: undefined } : { stream }) },
        { path },
      );
      expect([response.status, response.headers.get('x-should-retry')]).toEqual([429, 'false']);
      expect(response.headers.get('retry-after')).toBeNull();
      const resets = { resets_at: Date.parse('2026-12-20T12:00:00Z') / 1000 };
      const error = await errorOf(response);
      expect(error).toMatchObject({ type: ofBudget, code: 'budget_exceeded', ...resets });
      expect(error.message).toMatch(
        /^The budget of key "billing" is exceeded: 1 dollars per 30d\..* Ask in #ai-platform\.$/,
      );
      expect(fake.requests).toEqual([]);
    },
  );

  test('of an unknown key is not repeated by agents', async () => {
    const { chat } = open();
    const response = await chat({ ...CHAT, ...BODIES[path] }, { path, key: keyValueOf('nobody') });
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([401, shouldRetry]);
    expect(await errorOf(response)).toMatchObject({ type: ofKey, code: 'invalid_api_key' });
  });
});

test('Codex gets our message in a header, if a header can contain it', async () => {
  for (const [name, expected] of [
    [
      'billing',
      expect.stringMatching(
        /^The budget of key "billing" is exceeded: 1 dollars per 30d\. .* before that\. Ask in #ai$/,
      ),
    ],
    ['Žofie', null],
  ] as const) {
    const snapshot = { ...snapshotOf([entry('gpt')]), blockedMessage: 'Ask in #ai.' };
    const { chat, ledger } = stage({ snapshot, keys: { [KEY]: keyRecord({ name }) } });
    ledger.spendNow('key-scope', '1');
    const response = await chat({ model: 'gpt', input: 'Hello' }, { path: '/responses' });
    expect([response.status, response.headers.get('x-codex-promo-message')]).toEqual([429, expected]);
  }
});
