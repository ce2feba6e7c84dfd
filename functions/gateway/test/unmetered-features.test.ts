import { describe, expect, test } from 'vitest';
import { message } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, type World } from '../../../test/gateway/stage.ts';
import { completion, MESSAGES, SSE, sentText, streamed, USAGE_CHUNK } from '../../../test/gateway/upstream.ts';
import { WAYS_TO_SPEND } from '../../../test/gateway/ways-to-spend.ts';
import { OWN_MEMBERS as ofChat } from '../wire/chat/openai.ts';
import { OWN_MEMBERS as ofMessages } from '../wire/messages/anthropic.ts';
import { DECIDING_MEMBERS } from '../wire/prompt/unmetered-features.ts';
import { OWN_MEMBERS as ofResponses } from '../wire/responses/openai.ts';

const bodyOf = (members: string) => `{"model":"gpt","messages":[{"role":"user","content":"hi"}]${members}}`;

test.each(['priority', 'Priority', 1])('a more expensive service tier is refused: %s', async (service_tier) => {
  const { chat, ledger } = stage();
  const response = await chat({ model: 'gpt', messages: MESSAGES, service_tier });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param: 'service_tier' } });
  expect(ledger.asked).toEqual([]);
});

test('a service tier at the listed price is passed on, and no other one with it', async () => {
  const { chat, fake } = stage();
  await chat(bodyOf(',"service_tier":"priority","Service_Tier":"priority","service_tier":"flex"'));
  expect(Object.entries(fake.sent()).filter(([name]) => /tier/i.test(name))).toEqual([['service_tier', 'flex']]);
});

describe('work that a provider bills in addition to tokens', () => {
  const ASKED: ReadonlyArray<[string, object]> = [
    ['web_search_options', { web_search_options: { search_context_size: 'high' } }],
    ['web_search_options', { web_search_options: {} }],
    ['plugins', { plugins: [{ id: 'file-parser' }] }],
    ['plugins', { plugins: 'web' }],
    ['tools', { tools: [{ type: 'code_interpreter' }] }],
    ['search_parameters', { search_parameters: { mode: 'on' } }],
    ['plugins', { plugins: [{ id: 'web' }] }],
    ['background', { background: true }],
    ['deferred', { deferred: true }],
    ['tools', { tools: [{ type: 'function', function: { name: 'f' } }, { type: 'web_search' }] }],
    ['tools', { tools: [{ type: null }] }],
    ['provider', { provider: { order: ['the most expensive'] } }],
    ['provider', { provider: { only: ['the most expensive'], zdr: true } }],
    ['provider', { provider: 'the most expensive' }],
    ['n_predict', { max_tokens: 1, n_predict: -1 }],
    ['data_sources', { data_sources: [{ type: 'azure_search' }] }],
    ['chat_template', { chat_template: '{% for i in range(100000) %}a{% endfor %}' }],
    ['safety_model', { safety_model: 'guard' }],
    ['enable_search', { enable_search: true }],
    ['search_options', { search_options: { forced_search: true } }],
    ['compound_custom', { compound_custom: { tools: { enabled_tools: ['web_search'] } } }],
    ['search_settings', { search_settings: { include_domains: ['a'] } }],
    ['extra_body', { extra_body: { google: { cached_content: 'cachedContents/1' } } }],
    ['max_new_tokens', { max_tokens: 1, max_new_tokens: 100_000 }],
    ['tools', { tools: [{ type: 'web_search', max_uses: '100' }] }],
    ['search_parameters', { search_parameters: { mode: 'on', max_search_results: 2.5 } }],
  ];

  test.each(ASKED)('is refused: %s %j', async (param, asked) => {
    const { chat, ledger } = stage();
    const response = await chat({ model: 'gpt', messages: MESSAGES, ...asked });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param } });
    expect(ledger.asked).toEqual([]);
  });

  test('is refused also if its type is a text of megabytes, which the engine cannot match', async () => {
    const { chat, lines } = stage();
    const tools = [{ type: `web_search${'_1'.repeat(4_000_000)}x` }];
    expect((await chat({ model: 'gpt', messages: MESSAGES, tools })).status).toBe(400);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
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
    { prediction: { type: 'content', content: 'hi' } },
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
  ])('is refused for every key: %s', async (param, asked) => {
    const { chat, ledger, fake } = stage();
    const response = await chat({ model: 'gpt', messages: MESSAGES, ...asked });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param } });
    expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
  });

  test('is refused as one of two members', async () => {
    const { chat, fake } = stage();
    await chat(bodyOf(',"tools":[{"type":"web_search"}],"tools":[],"Tools":[{"type":"web_search"}]'));
    expect(fake.sent()).toMatchObject({ tools: [] });
    expect(sentText(fake.requests[0])).not.toContain('web_search');
  });

  test('is refused in another spelling', async () => {
    const { chat, fake } = stage();
    await chat(bodyOf(',"Models":["dear"],"MODELS":["dear"],"Plugins":[{"id":"web"}],"model\\u0073":[]'));
    expect(Object.keys(fake.sent()).sort()).toEqual(['max_completion_tokens', 'messages', 'model', 'models', 'store']);
  });
});

test.each(['/chat/completions', '/responses', '/embeddings'])(
  'no member by which a request reaches into a shared server gets to a provider of %s',
  async (path) => {
    const { chat, fake } = stage();
    const body = { model: 'gpt', messages: MESSAGES, input: 'a' };
    const { messages: _, ...others } = body;
    const own = path === '/chat/completions' ? { model: 'gpt', messages: MESSAGES } : others;
    const names = ['priority', 'Priority', 'request_id', 'requestId', 'mm_processor_kwargs', 'media_io_kwargs'];
    await chat({ ...Object.fromEntries(names.map((name) => [name, 1])), ...own }, { path });
    expect(Object.keys(fake.sent()).filter((name) => names.includes(name))).toEqual([]);
  },
);

/** Members that the gateway acts on, by route. */
const OWN: Readonly<Record<string, ReadonlySet<string>>> = {
  '/chat/completions': ofChat,
  '/messages': ofMessages,
  '/responses': ofResponses,
  '/embeddings': DECIDING_MEMBERS,
};

const UNTRANSLATED = WAYS_TO_SPEND.filter(
  ({ path, provider }) => path in OWN && provider === (path === '/messages' ? 'anthropic' : 'openai'),
);

test.each(UNTRANSLATED)(
  'no member that decides reaches a provider of $path as protocol buffers would write it',
  async (way) => {
    const { path, provider, body, whole } = way;
    const names = [...(OWN[path] ?? [])].map(
      (name) => [name, name.replaceAll(/_(.)/g, (_, next) => next.toUpperCase())] as const,
    );
    const others = names.filter(([name, other]) => name !== other);
    expect(others.length).toBeGreaterThan(5);
    for (const [name, other] of others) {
      const world = { snapshot: snapshotOf([entry('gpt', { provider })]), script: () => ({ body: whole }) };
      const { chat, fake } = stage({ ...world, keys: { [KEY]: keyRecord({ limit: '100' }) } });
      expect((await chat({ [other]: 1, ...body, [`${other}_`]: 1 }, { path })).status).toBe(200);
      const sent = Object.keys(fake.sent());
      expect(
        sent.filter((one) => one !== name && one.replaceAll('_', '').toLowerCase() === other.toLowerCase()),
      ).toEqual([]);
    }
  },
);

describe('web searches at an entry with a price for them', () => {
  const searching = entry('gpt', { toolCosts: { webSearch: '0.01' }, maxInputTokens: 1000 });
  const CENT = 10_000_000n;
  const searches = (usage: object): World => ({
    snapshot: snapshotOf([entry('gpt', { identifier: 'plain' }), searching]),
    script: () => ({ body: completion('found', { prompt_tokens: 10, completion_tokens: 5, ...usage }) }),
  });
  const CHAT = { model: 'gpt', messages: MESSAGES, max_tokens: 5 };

  test.each([
    [{ web_search_options: {} }, 10n],
    [{ search_parameters: { mode: 'auto', max_search_results: 3 } }, 3n],
    [{ plugins: [{ id: 'web' }] }, 10n],
    [
      {
        tools: [
          { type: 'web_search_20250305', max_uses: 2 },
          { type: 'web_search', max_uses: 1 },
        ],
      },
      3n,
    ],
  ])('are reserved at their maximum, sent only there, and charged by their count: %j', async (asked, maxCount) => {
    const { chat, ledger, fake } = stage(searches({ server_tool_use: { web_search_requests: 2 } }));
    expect((await chat({ ...CHAT, ...asked })).status).toBe(200);
    expect(fake.sent()).toMatchObject(asked);
    expect(ledger.asked[0]?.amount).toBeGreaterThanOrEqual(maxCount * CENT);
    expect(ledger.asked[0]?.amount).toBeLessThan((maxCount + 1n) * CENT);
    expect(ledger.asked[0]?.minAmount).toBeGreaterThanOrEqual(maxCount * CENT);
    expect(ledger.settled).toMatchObject([{ identifier: 'gpt', cost: 20_000n + 2n * CENT, estimated: false }]);
  });

  test.each([
    ['Perplexity', { num_search_queries: 3 }, 3n, false],
    ['xAI', { num_sources_used: 4 }, 4n, false],
    ['nobody searched', { server_tool_use: { web_search_requests: 0 } }, 0n, false],
    ['a provider that does not count after all', {}, 1n, true],
  ])('are read from the usage: %s', async (_, usage, counted, estimated) => {
    const { chat, ledger } = stage(searches(usage));
    await chat({ ...CHAT, web_search_options: {} });
    expect(ledger.settled).toMatchObject([{ cost: 20_000n + counted * CENT, estimated }]);
  });

  test.each([
    ['the context window', 200_000, 200_000n],
    ['the largest window that is known', undefined, 1_050_000n],
  ])('reserve for their pages too: %s', async (_, maxInputTokens, tokens) => {
    const snapshot = snapshotOf([entry('gpt', { toolCosts: { webSearch: '0.01' }, maxInputTokens })]);
    const keys = { [KEY]: keyRecord({ limit: '1000' }) };
    const { chat, ledger } = stage({ ...searches({}), snapshot, keys });
    await chat({ ...CHAT, tools: [{ type: 'web_search', max_uses: 1 }] });
    expect(ledger.asked).toMatchObject([{ amount: tokens * 1000n + 5n * 2000n + CENT }]);
  });

  test('are charged in a stream too', async () => {
    const counted = USAGE_CHUNK.replace('"total_tokens":13', '"server_tool_use":{"web_search_requests":2}');
    const body = streamed(['x']).map((event) => (event === USAGE_CHUNK ? counted : event));
    const { chat, ledger } = stage({ snapshot: snapshotOf([searching]), script: () => ({ headers: SSE, body }) });
    await (await chat({ ...CHAT, stream: true, web_search_options: {} })).text();
    expect(ledger.settled).toMatchObject([{ cost: 16_000n + 2n * CENT, estimated: false }]);
  });

  test('are not charged if the translation leaves them out', async () => {
    const claude = entry('gpt', { provider: 'anthropic', toolCosts: { webSearch: '0.01' } });
    const { chat, ledger, fake } = stage({ snapshot: snapshotOf([claude]), script: () => ({ body: message('x') }) });
    await chat({ ...CHAT, web_search_options: {} });
    expect(JSON.stringify(fake.sent())).not.toContain('search');
    expect(ledger.settled).toMatchObject([{ cost: 20_000n, estimated: false }]);
    expect(ledger.asked[0]?.amount).toBeLessThan(CENT);
  });

  test('need no price if they are offline', async () => {
    const { chat } = stage();
    expect((await chat({ ...CHAT, search_parameters: { mode: 'off' } })).status).toBe(200);
  });
});

describe('a tool that hides behind another', () => {
  test.each([
    ['a type that stands twice', '"tools":[{"type":"web_search","type":"function"}]'],
    ['a type in another spelling', '"tools":[{"Type":"web_search"}]'],
    ['a type beside one in another spelling', '"tools":[{"type":"function","TYPE":"web_search"}]'],
    ['a type with escapes', '"tools":[{"type":"web_search","t\\u0079pe":"function"}]'],
    ['a type with a long s', '"plugins":[{"id":"web"},{"Id":"file-parser"}]'],
    ['a limit as protocol buffers write it', '"tools":[{"type":"web_search","max_uses":1,"maxUses":100}]'],
    ['the second of many', '"tools":[{"type":"function","function":{"name":"f"}}, {"type":"mcp","type":"function"}]'],
    ['what else Gemini takes', '"extra_body":{"google":{"cached_content":"x"},"google":{}}'],
    ['what chooses a provider', '"provider":{"zdr":true,"ZDR":false}'],
  ])('is refused: %s', async (_, members) => {
    const { chat, fake, ledger } = stage();
    const response = await chat(bodyOf(`,${members}`));
    expect([response.status, fake.requests.length, ledger.asked.length]).toEqual([400, 0, 0]);
  });

  test('is not searched in objects of the client', async () => {
    const properties = { id: { type: 'string' }, ID: { type: 'string' }, Type: { type: 'number' } };
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties } } }];
    const { chat, fake } = stage();
    expect((await chat({ model: 'gpt', messages: MESSAGES, tools })).status).toBe(200);
    expect(fake.sent()).toMatchObject({ tools });
  });
});
