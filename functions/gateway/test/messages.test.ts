import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COUNT, errorBody, event, message, START, STOP, words } from '../../../test/gateway/anthropic.ts';
import { KEY } from '../../../test/gateway/instance.ts';
import { textOf, WAYS } from '../../../test/gateway/stage.ts';
import { addressOf, SSE, sentText, stuckAfter } from '../../../test/gateway/upstream.ts';
import { runs } from '../../../test/support/runs.ts';
import { ASK, errorOf, open } from './messages.fixture.ts';

describe('a message', () => {
  test('passes byte for byte in both directions, with its query and the headers that choose features', async () => {
    const reply = ` ${message('hello', { context_management: { applied_edits: [] }, big: 1 })}\n`;
    const { ask, fake } = open({ script: () => ({ body: reply }) });
    const body =
      '{"model":"claude","system":[{"type":"text","text":"x-anthropic-billing-header: a=1"},{"type":"text","text":"\\u00e9","cache_control":{"type":"ephemeral","ttl":"1h"}}],"max_tokens":100,"messages":[{"role":"user","content":"hi"},{"role":"system","content":"mid","output_config":{"effort":"low"}}],"safeguards":{"a":12345678901234567890},"thinking":{"type":"adaptive"},"Model":"dear"}';
    const beta = 'claude-code-20250219, interleaved-thinking-2025-05-14,x';
    const response = await ask(
      body,
      { authorization: `Bearer ${KEY}`, 'anthropic-beta': beta, 'x-app': 'cli' },
      '?beta=true',
    );
    expect(await textOf(response)).toBe(reply);
    const [sent] = fake.requests;
    expect(addressOf(sent)).toBe('https://api.anthropic.com/v1/messages?beta=true');
    expect(sentText(sent)).toBe(body.replace('"claude"', '"real-claude"').replace(',"Model":"dear"', ''));
    expect(sent?.headers).toMatchObject({
      'x-api-key': 'value-of-claude-secret-key',
      'anthropic-beta': beta,
      'anthropic-version': '2023-06-01',
    });
    expect(Object.keys(sent?.headers ?? {})).not.toContain('x-app');
  });

  test.each([
    ['a bearer', { authorization: `Bearer ${KEY}` }, 200],
    ['x-api-key', { 'x-api-key': KEY }, 200],
    [
      'a bearer beside the key of another account',
      { authorization: `Bearer ${KEY}`, 'x-api-key': 'sk-ant-other' },
      200,
    ],
    ['a bearer that is no key, beside one', { authorization: 'Bearer sk-other', 'x-api-key': KEY }, 401],
    ['no key', {}, 401],
  ])('is sent with %s', async (_, headers, status) => {
    const { ask } = open();
    const response = await ask(ASK, headers);
    expect(response.status).toBe(status);
    if (status === 401) expect(response.headers.get('x-should-retry')).toBe('false');
  });

  test('is charged by its counts, each kind of tokens at its own price', async () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 1000,
      cache_creation_input_tokens: 300,
      output_tokens: 5,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
      server_tool_use: { web_search_requests: 2 },
    };
    const price = { input: '1', output: '2', cachedInput: '0.1', cacheWrite: '1.25', cacheWriteLong: '2' };
    const script = () => ({ body: message('hello', { usage }) });
    const { ask, ledger } = open({ script, entry: { price, toolCosts: { webSearch: '0.01' }, maxInputTokens: 2000 } });
    await ask({ ...ASK, tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }] });
    const cost = 10n * 1000n + 1000n * 100n + 100n * 1250n + 200n * 2000n + 5n * 2000n + 2n * 10_000_000n;
    expect(ledger.settled).toMatchObject([
      { cost, estimated: false, tokens: { input: 1310, output: 5, cachedInput: 1000, cacheWrite: 300 } },
    ]);
  });

  test('that was sampled more than once is charged for each sample', async () => {
    const once = { input_tokens: 100, output_tokens: 50 };
    const usage = { ...once, iterations: [{ type: 'compaction', input_tokens: 900, output_tokens: 70 }, once] };
    const { ask, ledger } = open({ script: () => ({ body: message('hello', { usage }) }) });
    await ask(ASK);
    expect(ledger.settled).toMatchObject([{ tokens: { input: 1000, output: 120 } }]);
  });

  test('counted as zero beside its answer is estimated', async () => {
    const usage = { input_tokens: 0, output_tokens: 0 };
    const { ask, ledger } = open({ script: () => ({ body: message('a'.repeat(90), { usage }) }) });
    await ask(ASK);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { input: expect.any(Number), output: 30 } }]);
    expect(ledger.settled[0]?.tokens.input).toBeGreaterThan(5);
  });

  test('that is streamed never costs less by a later count', async () => {
    const counts = { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
    const later = event('message_delta', { delta: {}, usage: counts });
    const { ask, ledger } = open({
      script: () => ({ headers: SSE, body: [START, ...words('a'), COUNT, later, STOP] }),
    });
    await textOf(await ask({ ...ASK, stream: true }));
    expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 10, output: 3 } }]);
  });

  test('without a count is estimated', async () => {
    const { ask, ledger } = open({ script: () => ({ body: message('hello hello', { usage: null }) }) });
    await ask(ASK);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 4 } }]);
  });
});

describe('a refusal', () => {
  test('of a spent budget ends the run of an agent, with the reset', async () => {
    const { ask } = open({ limit: '0.00001' });
    const spent = await ask(ASK);
    expect(spent.headers.get('x-should-retry')).toBe('false');
    expect(spent.headers.get('retry-after')).toBeNull();
    expect(await spent.json()).toMatchObject({
      type: 'error',
      error: { type: 'billing_error', code: 'budget_exceeded', message: expect.stringContaining('key "billing"') },
    });
  });

  test.each([400, 413, 422])('of the provider with %d reaches the client unchanged', async (status) => {
    const body = errorBody('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum');
    const { ask, ledger } = open({ script: () => ({ status, body }) });
    const response = await ask(ASK);
    expect([response.status, await textOf(response)]).toEqual([status, body]);
    expect([ledger.settled.length, ledger.liveReservations()]).toEqual([0, 0]);
  });

  test('of a proxy, not of Anthropic, becomes our own, and our errors never name a credential', async () => {
    const page = open({ script: () => ({ status: 400, body: '<html>value-of-claude-secret-key' }) });
    expect(await errorOf(await page.ask(ASK))).toEqual([400, 'error', 'invalid_request_error', 'upstream_refused']);
    const gateway = open({
      script: () => ({ status: 400, body: errorBody('x', 'no value-of-claude-secret-key here') }),
    });
    expect(await textOf(await gateway.ask(ASK))).not.toContain('value-of');
  });

  test.each(['/v1/messages', '/v1/messages/count_tokens'])(
    'of %s never reveals a credential, however its letters are escaped',
    async (path) => {
      for (const key of ['\\u0076alue-of-claude-secret-key', 'value\\u002Dof-claude\\u002dsecret-key']) {
        for (const spelled of [key, key.replaceAll('\\', '\\\\')]) {
          const body = `{"type":"error","error":{"type":"invalid_request_error","message":"no ${spelled} here"}}`;
          const { chat } = open({ script: () => ({ status: 400, body }) });
          const response = await chat(ASK, { path });
          expect(response.status).toBe(400);
          expect(((await response.json()) as { error: { message: string } }).error.message).toBe('no … here');
        }
      }
    },
  );

  test.each([
    [429, 'rate_limit_error', 429, 'rate_limit_error', 'upstream_rate_limited'],
    [529, 'overloaded_error', 502, 'api_error', 'upstream_error'],
    [401, 'authentication_error', 502, 'api_error', 'upstream_error'],
  ])('of the provider with %d %s becomes our own error', async (status, type, ours, ourType, code) => {
    const { ask } = open({ script: () => ({ status, body: errorBody(type) }) });
    expect(await errorOf(await ask(ASK))).toEqual([ours, 'error', ourType, code]);
  });

  test.each([
    ['no messages', { messages: undefined }],
    ['a limit of zero', { max_tokens: 0 }],
    ['a limit below zero', { max_tokens: -5 }],
    ['a limit beyond counting', { max_tokens: 1e300 }],
    ['a stream that is a text', { stream: 'true' }],
    ['messages that are texts', { messages: ['hi'] }],
    ['tools that are numbers', { tools: [1, 1] }],
    ['another model to fall back to', { fallbacks: ['dear'] }],
    ['compaction', { context_management: { edits: [{ type: 'compact_20260112' }] } }],
    ['compaction outside of a list', { context_management: { edits: { type: 'compact_20260112' } } }],
    ['compaction in upper case', { context_management: { edits: [{ type: 'COMPACT_20260112' }] } }],
    ['compaction by another name', { context_management: { edits: [{ Type: 'compact_20260112' }] } }],
    [
      'compaction before a harmless type',
      '{"model":"claude","messages":[],"context_management":{"edits":[{"type":"com\\u0070act_20260112","type":"clear"}]}}',
    ],
    ...['user', 'system'].map((role): [string, object] => [
      `a tool that a message of the ${role} declares`,
      { messages: [{ role, content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition: {} } }] }] },
    ]),
    ['searches without number', { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: '100' }] }],
    ['what a plugin finds', { plugins: [{ id: 'web' }] }],
    ['a summary of its own', { compaction: { type: 'auto' } }],
    ['a thread that the provider keeps', { thread: { type: 'continue', previous_message_id: 'msg_1' } }],
    ['another way to pay', { billing_policy: 'dear' }],
    ['a token that pays for another model', { fallback_credit_token: 'a' }],
    ['a search without a price', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    [
      'a tool by two types',
      '{"model":"claude","messages":[],"tools":[{"type":"custom","Type":"code_execution_20250825"}]}',
    ],
  ])('of %s is in the format of Anthropic, before any provider is called or anything is charged', async (_, more) => {
    const { ask, ledger, fake } = open();
    const response = await ask(typeof more === 'string' ? more : { ...ASK, ...more });
    expect(await errorOf(response)).toEqual([400, 'error', 'invalid_request_error', 'invalid_request']);
    expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
  });

  test('of an unknown path has the format of Anthropic for its clients', async () => {
    const { app } = open();
    for (const [path, headers] of [
      ['/v1/messages/batches', {}],
      ['/v1/files', { 'anthropic-version': '2023-06-01' }],
    ] as const) {
      const response = await app.request(path, { method: 'POST', headers });
      expect(await errorOf(response)).toEqual([404, 'error', 'not_found_error', 'not_found']);
    }
  });
});

describe.each(WAYS)('a streamed message, over %s,', (_, room) => {
  const streaming = { ...ASK, stream: true };
  const BLOCK = event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
  const PING = event('ping');

  test('passes event by event, with pings and unknown events, and is charged by its last counts', async () => {
    const events = [START, PING, BLOCK, ': comment\n\n', event('novelty', { a: 1 }), ...words('a', 'b'), COUNT, STOP];
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: events }), room });
    expect(await textOf(await ask(streaming))).toBe(events.join(''));
    expect(ledger.settled).toMatchObject([{ cost: 16_000n, estimated: false, tokens: { input: 10, output: 3 } }]);
  });

  test('is cut at its reservation, with its blocks closed and all events of an end', async () => {
    const body = [START, BLOCK, ...words(...Array(200).fill('word'))];
    const { ask, ledger, fake } = open({ script: () => ({ headers: SSE, body: stuckAfter(...body) }), room });
    const text = await textOf(await ask({ ...streaming, max_tokens: 5 }));
    const end = text.slice(text.lastIndexOf('event: content_block_delta')).split('\n\n').slice(1).join('\n\n');
    expect(text.match(/text_delta/g)).toHaveLength(Number(ledger.settled[0]?.tokens.output));
    expect(end).toBe(
      event('content_block_stop', { index: 0 }) +
        event('message_delta', {
          delta: { stop_reason: 'max_tokens', stop_sequence: null },
          usage: { output_tokens: ledger.settled[0]?.tokens.output },
        }) +
        STOP,
    );
    expect(fake.requests[0]?.signal.aborted).toBe(true);
  });

  test('without a last event gets one; one that breaks off ends with an error', async () => {
    const whole = open({ script: () => ({ headers: SSE, body: [START, ...words('a'), COUNT] }), room });
    expect(await textOf(await whole.ask(streaming))).toBe([START, ...words('a'), COUNT, STOP].join(''));
    const broken = open({ script: () => ({ headers: SSE, body: [START, ...words('a')] }), room });
    const text = await textOf(await broken.ask(streaming));
    expect(text).toContain('event: error\ndata: {"type":"error","error":{"type":"api_error"');
    expect(text).not.toContain('message_stop');
    expect(broken.ledger.settled).toMatchObject([{ estimated: true, tokens: { input: 10, output: 1 } }]);
  });

  test('with wrong, repeated or missing counts is charged for its content, and ends', async () => {
    const lie = event('message_delta', { delta: { stop_reason: null }, usage: { output_tokens: 1 } });
    const { ask, ledger } = open({
      script: () => ({ headers: SSE, body: [START, ...words('a', 'b'), lie, COUNT, COUNT, STOP] }),
      room,
    });
    await textOf(await ask(streaming));
    expect(ledger.settled).toMatchObject([{ tokens: { output: 3 }, estimated: false }]);
    const without = open({
      script: () => ({
        headers: SSE,
        body: [START, ...words('a', 'b'), event('message_delta', { delta: { stop_reason: 'end_turn' } }), STOP],
      }),
      room,
    });
    await textOf(await without.ask(streaming));
    expect(without.ledger.settled).toMatchObject([{ tokens: { input: 10, output: 2 }, estimated: true }]);
  });
});

test('no body makes the gateway fail or leave a reservation, whatever it contains', async () => {
  const { ask, ledger } = open({ limit: '1000000' });
  const names = fc.constantFrom(
    'model',
    'messages',
    'system',
    'tools',
    'thinking',
    'stream',
    'max_tokens',
    'context_management',
    'metadata',
    'container',
    'speed',
    'type',
    'content',
    'source',
    'data',
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.oneof(
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.constantFrom('image', 'document', 'base64', 'text', 'tool_result'),
      ),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(names, tie('value'), { maxKeys: 5 }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(fc.dictionary(names, value), async (body) => {
      const { status } = await ask({ ...body, model: 'claude' });
      expect([200, 400, 429]).toContain(status);
      expect(ledger.liveReservations()).toBe(0);
    }),
    { numRuns: runs(300) },
  );
});
