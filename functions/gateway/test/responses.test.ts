import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { event } from '../../../test/gateway/anthropic.ts';
import { entry } from '../../../test/gateway/instance.ts';
import { ADDED, COMPLETED, CREATED, deltas, markedId, response } from '../../../test/gateway/responses.ts';
import { codeOf, type OneModel, stageOne, textOf, WAYS } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { SSE, sentText, stuckAfter } from '../../../test/gateway/upstream.ts';
import { runs } from '../../../test/support/runs.ts';

const ASK = { model: 'gpt', input: 'Say hello.' };

function open({ script = () => ({ body: response('hello') }), ...more }: OneModel = {}) {
  const world = stageOne(entry('gpt', { maxOutputTokens: 100 }), { script, ...more });
  return { ...world, ask: (body: unknown) => world.chat(body, { path: '/v1/responses' }) };
}

describe('a response', () => {
  test('passes byte for byte in both directions', async () => {
    const reply = ` ${response('hello', { big: 12 })}\n`;
    const { ask, fake } = open({ script: () => ({ body: reply }) });
    const body =
      '{"model":"gpt","store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"a","client_metadata":{"n":12345678901234567890},"reasoning":{"summary":"auto"},"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"\\u00e9"}]}],"max_output_tokens":50,"Model":"dear"}';
    expect(await textOf(await ask(body))).toBe(reply);
    expect(fake.requests[0]?.url).toBe('https://api.openai.com/v1/responses');
    expect(sentText(fake.requests[0])).toBe(body.replace('"gpt"', '"real-gpt"').replace(',"Model":"dear"', ''));
  });

  test('is charged by its counts: cached, reasoning, searches', async () => {
    const usage = {
      input_tokens: 1000,
      input_tokens_details: { cached_tokens: 600 },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: 40 },
      total_tokens: 1050,
    };
    const output = [
      { type: 'web_search_call', action: { type: 'search' } },
      { type: 'web_search_call', action: { type: 'open_page' } },
    ];
    const price = { input: '1', output: '2', cachedInput: '0.1', reasoning: '3' };
    const script = () => ({ body: response('hello', { usage, output }) });
    const { ask, ledger } = open({ script, entry: { price, toolCosts: { webSearch: '0.01' }, maxInputTokens: 1000 } });
    await ask({ ...ASK, tools: [{ type: 'web_search' }] });
    const cost = 400n * 1000n + 600n * 100n + 10n * 2000n + 40n * 3000n + 10_000_000n;
    expect(ledger.settled).toMatchObject([{ cost, estimated: false, tokens: { input: 1000, cachedInput: 600 } }]);
  });

  test.each([
    ['charged where they have a price', { webSearch: '0.01' }, 10_000_000n, undefined],
    ['counted where they have none', {}, 0n, 1],
  ])('whose searches are offline and reported: they are %s', async (_, toolCosts, cost, unpriced) => {
    const output = [{ type: 'web_search_call', action: { type: 'search' } }];
    const { ask, ledger, lines, counted } = open({
      script: () => ({ body: response('hello', { output }) }),
      entry: { toolCosts },
    });
    await ask({ ...ASK, tools: [{ type: 'web_search', external_web_access: false }] });
    expect(ledger.settled).toMatchObject([{ cost: 20_000n + cost, estimated: false }]);
    expect(lines[0]?.fields.unpricedSearches).toBe(unpriced);
    const metric = 'gateway_operator_unpriced_searches_total';
    expect(counted.map(([name]) => name).includes(metric)).toBe(unpriced !== undefined);
  });

  test('counted as zero beside its answer is estimated', async () => {
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
    const { ask, ledger } = open({ script: () => ({ body: response('a'.repeat(90), { usage }) }) });
    await ask(ASK);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 30 } }]);
    expect(ledger.settled[0]?.tokens.input).toBeGreaterThan(5);
  });

  test('without a count is estimated', async () => {
    const { ask, ledger } = open({ script: () => ({ body: response('hello hello', { usage: null }) }) });
    await ask(ASK);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 4 } }]);
  });

  test('without a limit gets that of the reservation; a limit that the budget does not cover is lowered', async () => {
    const unlimited = open();
    await unlimited.ask(ASK);
    expect(unlimited.fake.sent()).toEqual({ ...ASK, model: 'real-gpt', max_output_tokens: 100, store: false });
    const poor = open({ limit: '0.0002' });
    const reply = await poor.ask({ ...ASK, max_output_tokens: 100 });
    const lowered = Number(reply.headers.get('x-gateway-clamped-to'));
    expect(poor.fake.sent()).toMatchObject({ max_output_tokens: lowered });
    expect(lowered).toBeLessThan(100);
    expect(lowered).toBeGreaterThanOrEqual(16);
  });
});

describe('the reservation of a response', () => {
  const [MSG_1, RESP_1] = [markedId('msg_1'), markedId('resp_1')];
  const reservationOf = async (more: object, model: object = {}) => {
    const { ask, ledger } = open({ limit: '1000000', entry: model, storeResponses: true });
    const body = JSON.stringify({ ...ASK, max_output_tokens: 0 + 1, ...more });
    await ask(body);
    return Number((ledger.asked[0]?.amount ?? 0n) / 1000n) - 2 - body.replaceAll(/\.gw[0-9a-f]{40}/g, '').length;
  };
  const data = `data:image/png;base64,${'a'.repeat(3000)}`;

  test.each<[string, number, ReadonlyArray<object>]>([
    [
      'text, calls, outputs and reasoning are their bytes',
      0,
      [
        { role: 'user', content: 'a' },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'a' }], encrypted_content: 'gAAAA' },
        { type: 'function_call', call_id: 'c', name: 'n', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'text' },
      ],
    ],
    [
      'an image is a hundred thousand',
      100_000 - data.length,
      [{ role: 'user', content: [{ type: 'input_image', image_url: data }] }],
    ],
    [
      'an image that a call returns is too',
      100_000 - data.length,
      [{ type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: data } }],
    ],
    [
      'a file elsewhere is the largest window',
      1_050_000 - 'https://a.test/b.pdf'.length,
      [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://a.test/b.pdf' }] }],
    ],
    ['an item that is new to us is its bytes and a file', 1_050_000, [{ type: 'hologram', data }]],
    ['an item that the provider keeps is the largest window', 1_050_000, [{ type: 'item_reference', id: MSG_1 }]],
  ])('%s', async (_, more, input) => {
    expect(await reservationOf({ input })).toBe(more);
  });

  test.each([
    [{ id: MSG_1 }],
    [{ type: null, id: MSG_1 }],
    [{ id: MSG_1, content: 'a' }],
    [{ type: 'message', id: MSG_1, role: 'assistant', content: [] }],
    [{ type: 'reasoning', id: MSG_1 }],
    [{ type: 'reasoning', id: MSG_1, summary: [], action: 'a' }],
    [{ type: 'function_call', id: MSG_1 }],
  ])('of an item with an id and no content is that of the stored item: %j', async (item) => {
    expect(await reservationOf({ input: [item, { role: 'user', content: 'q' }] })).toBe(1_050_000);
  });

  test('of a request with a stored response is the context window of the model', async () => {
    expect(await reservationOf({ previous_response_id: RESP_1 })).toBe(1_050_000);
    const { ask, ledger } = open({ entry: { maxInputTokens: 5000 }, storeResponses: true });
    await ask({ ...ASK, max_output_tokens: 1, previous_response_id: RESP_1 });
    expect(ledger.asked[0]?.amount).toBe(5002n * 1000n);
  });
});

describe('a request', () => {
  test.each([
    ['background', { background: true }],
    ['store', { store: true }],
    ['conversation', { conversation: { id: 'conv_1' } }],
    ['prompt', { prompt: { id: 'pmpt_1' } }],
    ['service_tier', { service_tier: 'priority' }],
    ['max_tokens', { max_tokens: 5 }],
    ['max_output_tokens', { max_output_tokens: 0 }],
    ['max_output_tokens', { max_output_tokens: -1 }],
    ['input', { input: 5 }],
    ['tools', { tools: [{ type: 'file_search' }] }],
    ['tools', { tools: [{ type: 'namespace', tools: [{ type: 'code_interpreter' }] }] }],
    ['tools', { tools: [{ type: 'web_search' }] }],
    ['tools', { tools: [{ type: 'web_search', external_web_access: false, max_uses: '100' }] }],
    ['tools', { tools: [{ type: 'web_search_preview', external_web_access: false }] }],
    ['tools', { tools: [{ type: 'web_search_preview_2025_03_11', external_web_access: false }] }],
    ['tools', { tools: [{ type: 'web_search', external_web_access: false }, { type: 'web_search' }] }],
    ['plugins', { tools: [{ type: 'web_search', external_web_access: false }], plugins: [{ id: 'web' }] }],
    ...['safety_model', 'data_sources', 'chat_template'].map((name): [string, object] => [name, { [name]: ['a'] }]),
    ['tools', { input: [{ type: 'additional_tools', role: 'developer', tools: [{ type: 'mcp' }] }] }],
    ['tools', { input: [{ type: 'tool_search_output', call_id: 'c', tools: [] }] }],
    ['tools', '{"model":"gpt","input":[{"Type":"addition\\u0061l_tools","type":"message"}]}'],
    ['tools', { input: [{ type: 'compaction_trigger' }] }],
    ['plugins', { plugins: [{ id: 'web' }] }],
    ['search_parameters', { search_parameters: { mode: 'on' } }],
    ['web_search_options', { web_search_options: {} }],
    ['extra_body', { extra_body: { google: { cached_content: 'a' } } }],
    ['tools', '{"model":"gpt","tools":[{"type":"namespace","tools":[{"type":"web_search","type":"function"}]}]}'],
    ['context_management', { context_management: [{ type: 'compaction', compact_threshold: 1000 }] }],
    [
      'tools',
      '{"model":"gpt","input":"a","tools":[{"type":"web_search","external_web_access":false,"external_web_access":true}]}',
    ],
  ])('is refused for its %s: %j, before any provider is called or anything is charged', async (param, more) => {
    const { ask, ledger, fake } = open();
    const refused = await ask(typeof more === 'string' ? more : { ...ASK, ...more });
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: 'invalid_request', param } }]);
    expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
  });

  test.each([
    [{ store: false, background: false, conversation: null, previous_response_id: null }],
    [{ tools: [{ type: 'web_search', external_web_access: false }] }],
    [{ tools: [{ type: 'web_search_2025_08_26', external_web_access: false }] }],
    [
      {
        tools: [
          { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] },
          { type: 'custom', name: 'a' },
        ],
      },
    ],
    [{ tools: [{ type: 'local_shell' }, { type: 'apply_patch' }], truncation: 'auto', text: { verbosity: 'low' } }],
  ])('may contain %j', async (more) => {
    const { ask, fake } = open();
    expect((await ask({ ...ASK, ...more })).status).toBe(200);
    expect(fake.sent()).toMatchObject(more);
  });

  test.each([
    ['openai', false],
    ['azure', false],
    ['xai', true],
    ['openrouter', true],
    ['groq', true],
    ['vllm', false],
    ['somebody', true],
  ])(
    'with an offline web search has a search at a provider without that switch: %s, %s',
    async (provider, isRefused) => {
      const { ask, ledger } = open({ entry: { provider } });
      const response = await ask({ ...ASK, tools: [{ type: 'web_search', external_web_access: false }] });
      expect([response.status === 400, ledger.asked.length]).toEqual([isRefused, isRefused ? 0 : 1]);
    },
  );

  test('with a spent budget gets a refusal that Codex shows, with the reset', async () => {
    const { ask } = open({ limit: '0.000001' });
    expect(await (await ask(ASK)).json()).toMatchObject({
      error: {
        type: 'usage_limit_reached',
        code: 'budget_exceeded',
        message: expect.stringContaining('key "billing"'),
      },
    });
    const { ask: later, ledger } = open();
    ledger.spendNow('key-scope', '1');
    const spent = await later(ASK);
    expect(spent.headers.get('retry-after')).toBeNull();
    expect(await spent.json()).toMatchObject({ error: { type: 'usage_limit_reached', resets_at: expect.any(Number) } });
  });

  test('for a WebSocket is refused immediately: there are no WebSockets', async () => {
    const { app } = open();
    const upgrade = await app.request('/v1/responses', { headers: { upgrade: 'websocket' } });
    expect(await codeOf(upgrade)).toEqual([426, 'upgrade_not_supported']);
    expect(await codeOf(await app.request('/v1/responses'))).toEqual([405, 'method_not_allowed']);
  });

  test.each([
    [20_000, 200],
    [20_001, 400],
  ])('with %i items of input is answered with %i', async (count, status) => {
    const { chat } = open();
    const input = Array.from({ length: count }, () => ({ role: 'user', content: 'a' }));
    const reply = await chat({ ...ASK, input }, { path: '/responses' });
    expect(reply.status).toBe(status);
    if (status === 400)
      expect(await reply.json()).toMatchObject({ error: { code: 'invalid_request', param: 'input' } });
  });

  test('for a model whose providers have chat only is refused, and nothing is sent', async () => {
    const { ask, fake } = open({ entry: { provider: 'deepseek' } });
    expect(await codeOf(await ask(ASK))).toEqual([404, 'route_not_served']);
    expect(fake.requests).toEqual([]);
  });
});

const WRITTEN = { type: 'message', content: [{ type: 'output_text', text: 'hello hello' }] };

describe.each(WAYS)('a streamed response, over %s,', (_, room) => {
  const streaming = { ...ASK, stream: true };

  test('passes event by event and ends with its last one', async () => {
    const events = [
      CREATED,
      ADDED,
      ...deltas('a', 'b'),
      ': comment\n\n',
      'event: keepalive\ndata: {"type":"keepalive"}\n\n',
      COMPLETED,
    ];
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: [...events, 'data: [DONE]\n\n'] }), room });
    expect(await textOf(await ask(streaming))).toBe(events.join(''));
    expect(ledger.settled).toMatchObject([{ cost: 16_000n, estimated: false }]);
  });

  test('whose client closes after the last event has not left', async () => {
    const { ask, ledger, lines } = open({
      script: () => ({ headers: SSE, body: stuckAfter(CREATED, ...deltas('a'), COMPLETED) }),
      room,
    });
    const reader = (await ask(streaming)).body?.getReader();
    const decoder = new TextDecoder();
    for (let text = ''; !text.includes('response.completed'); ) text += decoder.decode((await reader?.read())?.value);
    await reader?.cancel();
    await settleDown();
    expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { output: 3 } }]);
    expect(lines[0]?.fields).toMatchObject({ end: 'complete', status: 200 });
  });

  test('is cut at its reservation, with its message closed and a response that is incomplete', async () => {
    const body = [CREATED, ADDED, ...deltas(...Array(200).fill('word'))];
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: stuckAfter(...body) }), room });
    const text = await textOf(await ask({ ...streaming, max_output_tokens: 16 }));
    const events = text
      .trim()
      .split('\n\n')
      .map((one) => JSON.parse(one.split('\ndata: ')[1] ?? ''));
    const output = Number(ledger.settled[0]?.tokens.output);
    const words = 'word'.repeat(events.filter(({ type }) => type === 'response.output_text.delta').length);
    const content = [{ type: 'output_text', text: words }];
    const item = { id: 'msg_1', status: 'incomplete', content };
    expect(events.slice(-4)).toMatchObject([
      { type: 'response.output_text.done', text: words, item_id: 'msg_1' },
      { type: 'response.content_part.done', part: content[0] },
      { type: 'response.output_item.done', item },
      {
        type: 'response.incomplete',
        response: {
          id: 'resp_1',
          status: 'incomplete',
          incomplete_details: { reason: 'max_output_tokens' },
          output: [item],
          usage: { output_tokens: output },
        },
      },
    ]);
    const numbers = events.map(({ sequence_number: number }) => number);
    expect(numbers).toEqual([...numbers.keys()]);
  });

  test.each([
    ['a whole item', [ADDED, event('response.output_item.done', { output_index: 0, item: WRITTEN })]],
    ['its end', []],
    [
      'deltas, its item and its end',
      [ADDED, ...deltas('hello hello'), event('response.output_item.done', { output_index: 0, item: WRITTEN })],
    ],
  ])('without a count whose text comes in %s is charged for it once', async (_, events) => {
    const end = event('response.completed', { response: { id: 'resp_1', status: 'completed', output: [WRITTEN] } });
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: [CREATED, ...events, end] }), room });
    expect(await textOf(await ask(streaming))).toContain('response.completed');
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 4 } }]);
  });

  test('that fails immediately is charged what its provider counted', async () => {
    const usage = { input_tokens: 10, output_tokens: 3, total_tokens: 13 };
    const error = { code: 'server_error', message: 'no' };
    const body = [event('response.failed', { response: { id: 'resp_1', status: 'failed', error, usage } })];
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body }), room });
    expect((await ask(streaming)).status).toBe(502);
    expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 10, output: 3 } }]);
  });

  test('that failed shows no credential', async () => {
    const error = { code: 'invalid_prompt', message: 'no value-of-gpt-secret-key here' };
    const failed = { ...JSON.parse(response('')), status: 'failed', error, instructions: 'value-of-gpt-secret-key' };
    const streams = { headers: SSE, body: [CREATED, event('response.failed', { response: failed })] };
    for (const script of [() => streams, () => ({ body: JSON.stringify(failed) })]) {
      const { ask } = open({ script, room });
      const text = await textOf(await ask(streaming));
      expect(text).toContain('"instructions":"…"');
      expect(text).not.toContain('value-of-gpt');
    }
  });

  test('that breaks off fails, and is charged for its content', async () => {
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: [CREATED, ...deltas('a', 'b')] }), room });
    const text = await textOf(await ask(streaming));
    expect(text.slice(text.lastIndexOf('event: '))).toMatch(
      /^event: response\.failed\n.*"status":"failed".*"code":"server_error"/,
    );
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 2 } }]);
  });
});

test('no body makes the gateway fail or leave a reservation, whatever it contains', async () => {
  const { ask, ledger } = open({ limit: '1000000' });
  const names = fc.constantFrom(
    'input',
    'tools',
    'stream',
    'store',
    'previous_response_id',
    'reasoning',
    'type',
    'content',
    'output',
    'image_url',
    'encrypted_content',
    'max_output_tokens',
    'text',
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.oneof(
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.constantFrom('input_image', 'message', 'reasoning', 'item_reference', 'function'),
      ),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(names, tie('value'), { maxKeys: 5 }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(fc.dictionary(names, value), async (body) => {
      const { status } = await ask({ ...body, model: 'gpt' });
      expect([200, 400, 429, 502]).toContain(status);
      expect(ledger.liveReservations()).toBe(0);
    }),
    { numRuns: runs(300) },
  );
});
