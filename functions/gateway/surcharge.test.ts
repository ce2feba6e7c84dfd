import { describe, expect, test } from 'vitest';
import { stage } from './gateway.fixture.ts';
import { KEY, keyRecord } from './instance.fixture.ts';
import { MESSAGES } from './upstream.fixture.ts';

const bodyOf = (members: string) => `{"model":"gpt","messages":[{"role":"user","content":"hi"}]${members}}`;

test.each(['priority', 'Priority', 1])(
  'a dearer service is refused to a key with a budget: %s',
  async (service_tier) => {
    const { chat, ledger } = stage();
    const response = await chat({ model: 'gpt', messages: MESSAGES, service_tier });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param: 'service_tier' } });
    expect(ledger.asked).toEqual([]);
  },
);

test('a service at the listed price, or one for a key without a budget, is passed on', async () => {
  const { chat, fake } = stage({ keys: { [KEY]: keyRecord({ limit: 'none' }) } });
  await chat(bodyOf(',"service_tier":"priority"'));
  expect(fake.sent()).toMatchObject({ service_tier: 'priority' });
  const budgeted = stage();
  await budgeted.chat(bodyOf(',"service_tier":"priority","Service_Tier":"priority","service_tier":"flex"'));
  expect(Object.entries(budgeted.fake.sent()).filter(([name]) => /tier/i.test(name))).toEqual([
    ['service_tier', 'flex'],
  ]);
});

describe('work that a provider bills beside the tokens', () => {
  const ASKED: ReadonlyArray<[string, object]> = [
    ['web_search_options', { web_search_options: { search_context_size: 'high' } }],
    ['web_search_options', { web_search_options: {} }],
    ['search_parameters', { search_parameters: { mode: 'on' } }],
    ['plugins', { plugins: [{ id: 'web' }] }],
    ['background', { background: true }],
    ['deferred', { deferred: true }],
    ['tools', { tools: [{ type: 'function', function: { name: 'f' } }, { type: 'web_search' }] }],
    ['tools', { tools: [{ type: null }] }],
    ['provider', { provider: { order: ['the dearest'] } }],
    ['provider', { provider: { only: ['the dearest'], zdr: true } }],
    ['provider', { provider: 'the dearest' }],
    ['n_predict', { max_tokens: 1, n_predict: -1 }],
    ['data_sources', { data_sources: [{ type: 'azure_search' }] }],
    ['chat_template', { chat_template: '{% for i in range(100000) %}a{% endfor %}' }],
    ['safety_model', { safety_model: 'guard' }],
    ['extra_body', { extra_body: { google: { cached_content: 'cachedContents/1' } } }],
    ['max_new_tokens', { max_tokens: 1, max_new_tokens: 100_000 }],
  ];

  test.each(ASKED)('is refused to a key with a budget, and passed on for one without: %s %j', async (param, asked) => {
    const { chat, ledger } = stage();
    const response = await chat({ model: 'gpt', messages: MESSAGES, ...asked });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param } });
    expect(ledger.asked).toEqual([]);
    const free = stage({ keys: { [KEY]: keyRecord({ limit: 'none' }) } });
    expect((await free.chat({ model: 'gpt', messages: MESSAGES, ...asked })).status).toBe(200);
    expect(free.fake.sent()).toMatchObject(asked);
  });

  test.each([
    {
      tools: [
        { type: 'function', function: { name: 'f' } },
        { type: 'custom', custom: { name: 'c' } },
        { function: {} },
      ],
    },
    { provider: { data_collection: 'deny', zdr: true, max_price: { prompt: 1 } } },
    { plugins: [], web_search_options: null, background: false, deferred: false, provider: null, tools: [] },
    { extra_body: { google: { thinking_config: { thinking_budget: 1 } }, other: 1 } },
    { store: true, prediction: { type: 'content', content: 'hi' } },
  ])('is not %j', async (asked) => {
    const { chat, fake } = stage();
    expect((await chat({ model: 'gpt', messages: MESSAGES, ...asked })).status).toBe(200);
    expect(fake.sent()).toMatchObject(asked);
  });
});

describe('a request that names other models beside its own', () => {
  test.each([
    ['models', { models: ['dear/model'] }],
    ['fallbacks', { fallbacks: [{ model: 'dear' }] }],
    ['preset', { preset: 'dear' }],
  ])('is refused to everybody: %s', async (param, asked) => {
    for (const limit of ['1', 'none']) {
      const { chat, ledger, fake } = stage({ keys: { [KEY]: keyRecord({ limit }) } });
      const response = await chat({ model: 'gpt', messages: MESSAGES, ...asked });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param } });
      expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
    }
  });

  test('does not get past as one of two', async () => {
    const { chat, fake } = stage();
    await chat(bodyOf(',"tools":[{"type":"web_search"}],"tools":[],"Tools":[{"type":"web_search"}]'));
    expect(fake.sent()).toMatchObject({ tools: [] });
    expect(new TextDecoder().decode(fake.requests[0]?.body)).not.toContain('web_search');
  });

  test('does not get past in another spelling', async () => {
    const { chat, fake } = stage();
    await chat(bodyOf(',"Models":["dear"],"MODELS":["dear"],"Plugins":[{"id":"web"}],"model\\u0073":[]'));
    expect(Object.keys(fake.sent()).sort()).toEqual(['max_completion_tokens', 'messages', 'model', 'models']);
  });
});
