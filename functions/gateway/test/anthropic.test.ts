// Chat completions at Anthropic: replies, streams, refusals and charges are like those of any provider.
import { describe, expect, test } from 'vitest';
import { COUNT, errorBody, event, eventsOf, message, START, STOP, words } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import {
  completion,
  MESSAGES,
  type Script,
  SSE,
  sentText,
  stuckAfter,
  type WireReply,
} from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES };
const STREAM = { ...CHAT, stream: true };
const claude = (differences: object = {}) => entry('gpt', { provider: 'anthropic', ...differences });
const world = (script: Script, more: Partial<Parameters<typeof stage>[0]> = {}) =>
  stage({ snapshot: snapshotOf([claude()], { retries: 0 }), script, ...more });
const plays = (...body: string[]): Script => {
  return () => ({ headers: SSE, body });
};

describe('the request', () => {
  test.each([
    ['of the provider', {}, 'https://api.anthropic.com/v1/messages'],
    ['of the entry', { apiBase: 'http://own:8000/' }, 'http://own:8000/v1/messages'],
    ['of the entry, with the version in it', { apiBase: 'http://own/claude/v1/' }, 'http://own/claude/v1/messages'],
  ])('goes to the address %s', async (_, differences, url) => {
    const { chat, fake } = stage({
      snapshot: snapshotOf([claude(differences)]),
      script: () => ({ body: message('x') }),
    });
    await chat(CHAT);
    expect(fake.requests[0]?.url).toBe(url);
  });

  test('has the key and the version in the headers of Anthropic, and no bearer', async () => {
    const { chat, fake } = world(() => ({ body: message('x') }));
    await chat(CHAT);
    expect(fake.requests[0]?.headers).toMatchObject({
      'x-api-key': 'value-of-gpt-secret-key',
      'anthropic-version': '2023-06-01',
    });
    expect(fake.requests[0]?.headers).not.toHaveProperty('authorization');
    const apiVersion = { secret: 's', secretKey: 'v' };
    const versioned = world(() => ({ body: message('x') }), {
      snapshot: snapshotOf([claude({ credentials: { apiVersion } })]),
    });
    await versioned.chat(CHAT);
    expect(versioned.fake.requests[0]?.headers).toMatchObject({ 'anthropic-version': 'value-of-s-v' });
  });

  test('has a limit above the budget of reasoning, and is refused if the budget does not cover it', async () => {
    const REASONING = { ...CHAT, thinking: { type: 'enabled', budget_tokens: 20_000 } };
    const { chat, fake } = world(() => ({ body: message('x') }));
    await chat(REASONING);
    expect(fake.sent()).toMatchObject({ max_tokens: 21_025 });
    const poor = world(() => ({ body: message('x') }), { keys: { [KEY]: keyRecord({ limit: '0.01' }) } });
    expect((await poor.chat({ ...REASONING, max_tokens: 25_000 })).status).toBe(429);
  });

  test.each([
    ['of the client', { max_completion_tokens: 7 }, {}, 7],
    ['of the client, the larger one', { max_tokens: 9, max_completion_tokens: 7 }, {}, 9],
    ['of the entry', {}, { maxOutputTokens: 64 }, 64],
    ['of the reservation', {}, {}, 16_384],
  ])('has a limit, because Anthropic requires one: that %s', async (_, request, differences, limit) => {
    const { chat, fake } = world(() => ({ body: message('x') }), { snapshot: snapshotOf([claude(differences)]) });
    await chat({ ...CHAT, ...request });
    expect(fake.sent()).toEqual({
      model: 'real-gpt',
      max_tokens: limit,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Say hello.' }] }],
    });
  });

  test('reserves for the length of its translated numbers: 1e20 becomes 21 digits', async () => {
    const numbers = '1e20,'.repeat(2000);
    const tool = `{"type":"function","function":{"name":"f","parameters":{"enum":[${numbers}0]}}}`;
    const call = `{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"a\\":[${numbers}0]}"}}`;
    for (const more of [
      `"messages":[],"tools":[${tool}]`,
      `"messages":[{"role":"assistant","tool_calls":[${call}]}]`,
    ]) {
      const { chat, fake, ledger } = world(() => ({ body: message('x') }));
      expect((await chat(`{"model":"gpt","max_tokens":1,${more}}`)).status).toBe(200);
      const sent = sentText(fake.requests[0]).length;
      expect(sent).toBeGreaterThan(40_000);
      expect(ledger.asked[0]?.amount).toBeGreaterThan(BigInt(sent) * 1000n);
    }
  });

  test('has a limit also for a key without a budget', async () => {
    const { key, ...record } = keyRecord();
    const { budget: _, ...unlimited } = key;
    const keys = { [KEY]: { ...record, key: unlimited, scopes: [unlimited] } };
    const { chat, fake } = world(() => ({ body: message('x') }), { keys });
    await chat(CHAT);
    expect(fake.sent()).toMatchObject({ max_tokens: 16_384 });
  });

  test('without a counterpart at Anthropic is refused, charged nothing, or served by an entry of the other dialect', async () => {
    const audio = {
      ...CHAT,
      messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA' } }] }],
    };
    const keys = { [KEY]: keyRecord({ limit: '1000' }) };
    const alone = world(() => ({ body: message('x') }), { keys });
    const response = await alone.chat(audio);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: 'invalid_request', param: 'messages[0].content[0].type' },
    });
    expect([alone.fake.requests.length, alone.ledger.released.length, alone.ledger.liveReservations()]).toEqual([
      0, 1, 0,
    ]);
    const both = stage({
      snapshot: snapshotOf([claude(), entry('gpt', { identifier: 'second' })]),
      script: () => ({ body: completion('heard') }),
      keys,
    });
    expect((await both.chat(audio)).status).toBe(200);
    expect(both.ledger.settled).toMatchObject([{ identifier: 'second' }]);
  });

  test('that is nested too deeply for a translation is refused, and reserves nothing', async () => {
    const nested = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    const tools = `[{"type":"function","function":{"name":"f","parameters":{"x":${nested}}}}]`;
    const { chat, ledger } = world(() => ({ body: message('x') }));
    const response = await chat(`{"model":"gpt","messages":${JSON.stringify(MESSAGES)},"tools":${tools}}`);
    expect([response.status, ledger.liveReservations()]).toEqual([400, 0]);
  });
});

describe('a reply', () => {
  test('is a chat completion, and its usage is charged', async () => {
    const { chat, ledger } = world(() => ({ body: message('Hello.') }));
    expect(await (await chat(CHAT)).json()).toEqual({
      id: 'msg_01',
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'claude-x-2026',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello.', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 15,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      },
    });
    expect(ledger.settled).toMatchObject([{ cost: 20_000n, estimated: false }]);
  });

  test('counts tokens that the cache read and wrote as input', async () => {
    const usage = { input_tokens: 3, cache_read_input_tokens: 40, cache_creation_input_tokens: 7, output_tokens: 5 };
    const { chat, ledger } = world(() => ({ body: message('x', { usage }) }));
    expect(await (await chat(CHAT)).json()).toMatchObject({ usage: { prompt_tokens: 50, total_tokens: 55 } });
    expect(ledger.settled[0]?.tokens).toEqual({ input: 50, output: 5, cachedInput: 40, cacheWrite: 7 });
  });

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['tool_use', 'tool_calls'],
    ['refusal', 'content_filter'],
    ['something_new', 'stop'],
  ])('that ended by %s has finish_reason %s', async (stop_reason, finish_reason) => {
    const { chat } = world(() => ({ body: message('x', { stop_reason }) }));
    expect(await (await chat(CHAT)).json()).toMatchObject({ choices: [{ finish_reason }] });
  });

  test('that calls tools has their names and arguments', async () => {
    const content = [
      { type: 'thinking', thinking: 'Rain?', signature: 'x' },
      { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Ulm' } },
    ];
    const { chat } = world(() => ({ body: message('', { content, stop_reason: 'tool_use' }) }));
    expect(await (await chat(CHAT)).json()).toMatchObject({
      choices: [
        {
          message: {
            content: null,
            reasoning_content: 'Rain?',
            tool_calls: [
              { id: 'toolu_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Ulm"}' } },
            ],
          },
        },
      ],
    });
  });

  test('without usage is charged an estimate above zero, at most the reservation, and marked', async () => {
    const { chat, ledger } = world(() => ({ body: message('Hello there.', { usage: undefined }) }));
    await chat(CHAT);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 4 } }]);
  });
});

describe('a refusal', () => {
  test.each<[string, WireReply, number, string]>([
    [
      '400',
      { status: 400, body: errorBody('invalid_request_error', 'max_tokens: too large') },
      400,
      'upstream_refused',
    ],
    ['401: our key', { status: 401, body: errorBody('authentication_error') }, 502, 'upstream_error'],
    ['404: our model', { status: 404, body: errorBody('not_found_error') }, 502, 'upstream_error'],
    ['413', { status: 413, body: errorBody('request_too_large') }, 413, 'upstream_refused'],
    [
      '429',
      { status: 429, headers: { 'retry-after': '9' }, body: errorBody('rate_limit_error') },
      429,
      'upstream_rate_limited',
    ],
    ['500', { status: 500, body: errorBody('api_error') }, 502, 'upstream_error'],
    ['529: overloaded', { status: 529, body: errorBody('overloaded_error') }, 502, 'upstream_error'],
    [
      'an overload in a stream that has not begun',
      { headers: SSE, body: event('ping') + event('error', { error: { type: 'overloaded_error' } }) },
      502,
      'upstream_error',
    ],
    [
      'a limit in a stream that has not begun',
      { headers: SSE, body: event('error', { error: { type: 'rate_limit_error' } }) },
      429,
      'upstream_rate_limited',
    ],
    ['a page in between', { body: '<html>' }, 502, 'upstream_error'],
  ])('by %s reaches the client like that of any provider, and is charged nothing', async (_, reply, status, code) => {
    const { chat, ledger, lines } = world(() => reply);
    const response = await chat(STREAM);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect([ledger.settled.length, ledger.released.length, ledger.liveReservations()]).toEqual([0, 1, 0]);
    if (status !== 502 || reply.body === '<html>') return;
    expect(lines[0]?.fields).toMatchObject({ upstreamCode: expect.stringMatching(/_error$/) });
  });

  test('lets another entry answer, charged once', async () => {
    const { chat, fake, ledger } = stage({
      snapshot: snapshotOf([claude(), entry('gpt', { identifier: 'second' })]),
      script: (_, call) =>
        call === 1 ? { status: 529, body: errorBody('overloaded_error') } : { body: completion('hi') },
    });
    expect((await chat(CHAT)).status).toBe(200);
    expect(fake.requests.map(({ url }) => url)).toEqual([
      'https://api.anthropic.com/v1/messages',
      'https://api.openai.com/v1/chat/completions',
    ]);
    expect([ledger.asked.length, ledger.settled.length, ledger.settled[0]?.identifier]).toEqual([1, 1, 'second']);
  });
});

describe('a stream', () => {
  test('ends with its usage for a client that requested it, counted over the whole message', async () => {
    const { chat } = world(plays(START, ...words('a', 'b'), COUNT, STOP));
    const events = eventsOf(await (await chat({ ...STREAM, stream_options: { include_usage: true } })).text());
    expect(events.at(-1)).toBe('[DONE]');
    expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({
      id: 'msg_01',
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 },
    });
  });

  test('at its reservation is cut with finish_reason length, and charged at most the reservation', async () => {
    const body = JSON.stringify(STREAM).length;
    const keys = { [KEY]: keyRecord({ limit: ((body + 2 * 40 + 20) / 1_000_000).toFixed(9) }) };
    const texts = Array.from({ length: 40 }, (_, index) => `w${index} `);
    const { chat, fake, ledger } = world(plays(START, ...words(...texts), COUNT, STOP), { keys });
    const response = await chat(STREAM);
    expect(response.headers.get('x-gateway-clamped-to')).toBe('10');
    const events = eventsOf(await response.text());
    expect(fake.sent()).toMatchObject({ max_tokens: 10, stream: true });
    expect(JSON.parse(events.at(-3) ?? '')).toMatchObject({ choices: [{ delta: { content: 'w9 ' } }] });
    expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({
      id: 'msg_01',
      model: 'claude-x-2026',
      choices: [{ index: 0, delta: {}, finish_reason: 'length' }],
    });
    expect(events.at(-1)).toBe('[DONE]');
    expect(fake.requests[0]?.signal.aborted).toBe(true);
    expect(ledger.settled[0]?.cost).toBeLessThanOrEqual(ledger.asked[0]?.amount ?? 0n);
  });

  test('whose client leaves is stopped immediately; the prompt is charged by its count, the answer by an estimate', async () => {
    const body = stuckAfter(START, ...words('one', 'two', 'three'));
    const { chat, fake, ledger } = world(() => ({ headers: SSE, body }));
    const reader = (await chat(STREAM)).body?.getReader();
    for (let pieces = 0; pieces < 4; pieces += 1) await reader?.read();
    await reader?.cancel();
    await settleDown();
    expect(fake.requests[0]?.signal.aborted).toBe(true);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { input: 10 } }]);
    expect(ledger.settled[0]?.tokens.output).toBeGreaterThanOrEqual(3);
    expect(ledger.liveReservations()).toBe(0);
  });

  test('whose client leaves after the count is charged by that count', async () => {
    const { chat, ledger } = world(() => ({ headers: SSE, body: stuckAfter(START, ...words('one'), COUNT) }));
    const reader = (await chat(STREAM)).body?.getReader();
    for (let pieces = 0; pieces < 3; pieces += 1) await reader?.read();
    await reader?.cancel();
    await settleDown();
    expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 10, output: 3 } }]);
  });
});
