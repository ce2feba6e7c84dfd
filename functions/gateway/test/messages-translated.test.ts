// Messages to models of OpenAI's dialect, as a client of Anthropic sees them: the same budget, errors, streams and
// counts.
import { describe, expect, test } from 'vitest';
import { event, message } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { type OneModel, stage, stageOne, textOf, WAYS } from '../../../test/gateway/stage.ts';
import {
  chunk,
  completion,
  embedded,
  MESSAGES,
  type Script,
  SSE,
  sentText,
  streamed,
  stuckAfter,
} from '../../../test/gateway/upstream.ts';

const ASK = { model: 'gpt', max_tokens: 100, messages: MESSAGES };
const init = (body: object) => ({
  method: 'POST',
  headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01', 'anthropic-beta': 'b' },
  body: JSON.stringify(body),
});

function open({ script = () => ({ body: completion('hello') }), ...more }: OneModel = {}) {
  const world = stageOne(entry('gpt'), { script, ...more });
  return { ...world, ask: (body: object, path = '/v1/messages?beta=true') => world.app.request(path, init(body)) };
}

test('a message becomes a chat completion, without the headers and the query of Anthropic', async () => {
  const { ask, fake, ledger } = open();
  const response = await ask(ASK);
  expect(await response.json()).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'hello' }] });
  expect(fake.requests[0]?.url).toBe('https://api.openai.com/v1/chat/completions');
  expect(Object.keys(fake.requests[0]?.headers ?? {}).filter((name) => name.startsWith('anthropic'))).toEqual([]);
  expect(fake.sent()).toEqual({ model: 'real-gpt', messages: MESSAGES, max_completion_tokens: 100, store: false });
  expect(ledger.settled).toMatchObject([{ cost: 20_000n, estimated: false, tokens: { input: 10, output: 5 } }]);
});

test('a limit that the budget does not cover is lowered', async () => {
  const { ask, fake } = open({ limit: '0.0002' });
  const lowered = Number((await ask(ASK)).headers.get('x-gateway-clamped-to'));
  expect(lowered).toBeLessThan(100);
  expect(fake.sent()).toMatchObject({ max_completion_tokens: lowered });
});

test('tools without members reserve for the length of their translation', async () => {
  const { ask, ledger, fake } = open({ limit: '1000000' });
  await ask({ ...ASK, tools: Array(1000).fill({ name: 't' }) });
  const sent = sentText(fake.requests[0]);
  expect(sent.length).toBeGreaterThan(50_000);
  // The gateway writes names and types around each, which models read in fewer tokens than these.
  expect(ledger.asked[0]?.amount).toBeGreaterThan(50_000n * 1000n);
});

test('an image reserves for the maximum of the other dialect', async () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'a'.repeat(3000) };
  const { ask, ledger } = open({ limit: '1000000' });
  const body = { ...ASK, messages: [{ role: 'user', content: [{ type: 'image', source }] }] };
  await ask(body);
  expect(ledger.asked[0]?.amount).toBe(
    BigInt(JSON.stringify(body).length + 4 * 40 - 3000 + 100_000) * 1000n + 200_000n,
  );
});

test.each([
  [400, '{"error":{"message":"too long","code":"context_length_exceeded"}}', 400, 'invalid_request_error'],
  [429, '{"error":{"message":"slow down"}}', 429, 'rate_limit_error'],
  [500, '<html>', 502, 'api_error'],
])('a refusal of the provider with %d has the format of Anthropic', async (status, body, ours, type) => {
  const { ask, ledger } = open({ script: () => ({ status, body }) });
  const response = await ask(ASK);
  expect([response.status, await response.json()]).toMatchObject([ours, { type: 'error', error: { type } }]);
  expect(ledger.liveReservations()).toBe(0);
});

const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth);

test.each([
  ['input of a call', 'assistant', `{"type":"tool_use","input":${nested(20_000, '{"a":', '}').replace(':}', ':1}')}}`],
  ['documents', 'user', nested(20_000, '{"type":"document","source":{"type":"content","content":[', ']}}')],
])('%s nested too deeply are refused, nothing is charged, and the entry counts no request', async (_, role, block) => {
  const snapshot = snapshotOf([entry('gpt'), entry('gpt', { identifier: 'b' })], { strategy: 'LeastBusy' });
  const { app, fake, ledger, lines } = stage({ snapshot, keys: { [KEY]: keyRecord({ limit: '1000000' }) } });
  const body = `{"model":"gpt","max_tokens":5,"messages":[{"role":"${role}","content":[${block}]}]}`;
  const response = await app.request('/v1/messages', { ...init({}), body });
  expect([response.status, await response.json()]).toMatchObject([400, { error: { type: 'invalid_request_error' } }]);
  expect([fake.requests.length, ledger.liveReservations(), ledger.settled.length]).toEqual([0, 0, 0]);
  expect(lines).toContainEqual(expect.objectContaining({ message: 'request' }));
});

describe('a group of both dialects', () => {
  const both = (script: Script) =>
    stage({
      snapshot: snapshotOf(
        [
          entry('gpt', { identifier: 'openai', priority: 0 }),
          entry('gpt', { identifier: 'claude', provider: 'anthropic', priority: 1 }),
        ],
        { strategy: 'Priority' },
      ),
      script,
    });
  const isClaude = (url: string) => url.includes('anthropic');

  test('falls back from one entry to the other, each in its own dialect', async () => {
    const { app, fake, ledger } = both(({ url }) => (isClaude(url) ? { body: message('hi') } : { status: 500 }));
    const response = await app.request('/v1/messages', init(ASK));
    expect(await response.json()).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'hi' }] });
    expect(fake.requests.map(({ url }) => isClaude(url))).toContain(true);
    expect(ledger.settled).toMatchObject([{ identifier: 'claude' }]);
  });

  test('sends parts without a counterpart to the entry of their dialect', async () => {
    const { app, fake } = both(() => ({ body: message('hi') }));
    const body = { ...ASK, tools: [{ type: 'bash_20250124', name: 'bash' }] };
    expect((await app.request('/v1/messages', init(body))).status).toBe(200);
    expect(fake.requests.map(({ url }) => isClaude(url))).toEqual([true]);
  });

  test('sends counts only to entries that count, and no request to an entry without its route', async () => {
    const { app, fake } = both(({ url }) => ({ body: isClaude(url) ? '{"input_tokens":7}' : embedded(3) }));
    const counted = await app.request('/v1/messages/count_tokens', init(ASK));
    expect(await counted.json()).toEqual({ input_tokens: 7 });
    const headers = { authorization: `Bearer ${KEY}` };
    await app.request('/embeddings', { method: 'POST', headers, body: JSON.stringify({ model: 'gpt', input: 'a' }) });
    expect(fake.requests.map(({ url }) => isClaude(url))).toEqual([true, false]);
  });
});

test('a count is estimated, with a mark, without a call of a provider that has no counts', async () => {
  const { ask, fake } = open();
  const response = await ask(ASK, '/v1/messages/count_tokens');
  expect([response.status, response.headers.get('x-gateway-estimated')]).toEqual([200, 'true']);
  expect(((await response.json()) as { input_tokens: number }).input_tokens).toBeGreaterThan(5);
  expect(fake.requests).toEqual([]);
});

describe.each(WAYS)('a stream, over %s,', (_, room) => {
  const streaming = { ...ASK, stream: true };

  test('has the events of a message, and is charged by its count', async () => {
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: streamed(['a', 'b']) }), room });
    const text = await textOf(await ask(streaming));
    expect([...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)).toEqual([
      ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop'],
      ...['message_delta', 'message_stop'],
    ]);
    expect(ledger.settled).toMatchObject([{ cost: 16_000n, estimated: false, tokens: { input: 10, output: 3 } }]);
  });

  test('is cut at its reservation, with its block closed and all events of an end', async () => {
    const body = [chunk({ role: 'assistant', content: '' }), ...Array(200).fill(chunk({ content: 'word' }))];
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: stuckAfter(...body) }), room });
    const text = await textOf(await ask({ ...streaming, max_tokens: 5 }));
    expect(text).toMatch(/content_block_stop.*"stop_reason":"max_tokens".*event: message_stop\n[^\n]*\n\n$/s);
    expect(text.match(/text_delta/g)).toHaveLength(Number(ledger.settled[0]?.tokens.output));
  });

  test('that breaks off ends with an error', async () => {
    const { ask, ledger } = open({ script: () => ({ headers: SSE, body: [chunk({ content: 'a' })] }), room });
    const text = await textOf(await ask(streaming));
    expect(text).toContain('event: error\ndata: {"type":"error","error":{"type":"api_error"');
    expect(text).not.toContain('message_stop');
    expect(ledger.settled).toMatchObject([{ estimated: true }]);
  });
});

test('a client gets pings while its provider is silent', async () => {
  const timeouts = { connect: 100, firstByte: 1000, idle: 100_000, total: 600_000 };
  const script: Script = () => ({
    headers: SSE,
    body: stuckAfter(chunk({ role: 'assistant', reasoning_content: 'hm' })),
  });
  const { app, clock } = stage({ snapshot: snapshotOf([entry('gpt')], { timeouts }), script });
  const reader = (await app.request('/messages', init({ ...ASK, stream: true }))).body?.getReader();
  const read = async () => new TextDecoder().decode((await reader?.read())?.value);
  expect(await read()).toContain('message_start');
  await clock.pass(15_000);
  await clock.pass(15_000);
  expect(await read()).toBe(event('ping'));
});
