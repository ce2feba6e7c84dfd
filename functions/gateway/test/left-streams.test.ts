// Streams whose client leaves before the provider's count: no part of them is free.
import { describe, expect, test } from 'vitest';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import { event } from '../../../test/gateway/anthropic.ts';
import { entry } from '../../../test/gateway/instance.ts';
import { stageOne } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { chunk, MESSAGES, SSE, stuckAfter } from '../../../test/gateway/upstream.ts';

const CENT = 10_000_000n;
const WINDOW = 100_000n;
/** A dollar for a million tokens of the prompt, two for those of the answer. */
const searching = { toolCosts: { webSearch: '0.01' }, maxInputTokens: Number(WINDOW) };

/** The settlement of a stream of these events, whose client leaves after the last one. */
async function leave(
  events: ReadonlyArray<string>,
  body: object,
  { path, ...of }: { readonly path: string } & Partial<SnapshotEntry>,
) {
  const script = () => ({ headers: SSE, body: stuckAfter(...events) });
  const { chat, ledger } = stageOne(entry('gpt', { maxOutputTokens: 100, ...of }), { script, limit: '1000' });
  const client = new AbortController();
  const response = await chat({ model: 'gpt', stream: true, ...body }, { path, signal: client.signal });
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  for (let piece = 0; piece < events.length; piece += 1) void reader?.read().catch(() => {});
  await settleDown();
  client.abort();
  await settleDown();
  const [settled] = ledger.settled;
  return { settled, held: ledger.asked[0]?.amount ?? 0n };
}

describe('a stream with web searches whose client leaves', () => {
  const searchOf = (index: number) =>
    event('content_block_start', {
      index,
      content_block: { type: 'server_tool_use', id: `s${index}`, name: 'web_search', input: {} },
    });
  const begin = event('message_start', { message: { id: 'm', usage: { input_tokens: 20, output_tokens: 1 } } });
  const text = event('content_block_delta', { index: 9, delta: { type: 'text_delta', text: 'abcdef' } });
  const MESSAGE = { max_tokens: 100, messages: MESSAGES, tools: [{ type: 'web_search_20250305', name: 'web_search' }] };
  const ofMessages = { path: '/messages', provider: 'anthropic', ...searching };

  test('of Messages is charged for its searches, and for their pages with the prompt', async () => {
    const { settled, held } = await leave([begin, searchOf(0), searchOf(1), text], MESSAGE, ofMessages);
    expect(settled).toMatchObject({ tokens: { input: 20 + 2 * 30_000, output: 9 }, estimated: true });
    expect(settled?.cost).toBe(60_020n * 1000n + 9n * 2000n + 2n * CENT);
    expect(settled?.cost).toBeLessThanOrEqual(held);
  });

  test('of Messages without a search so far is charged for one search, and the counted prompt', async () => {
    const { settled } = await leave([begin, text], MESSAGE, ofMessages);
    expect(settled?.cost).toBe(20n * 1000n + 2n * 2000n + CENT);
  });

  test('of Responses is charged for its searches; opened pages are no searches', async () => {
    const item = (type: string, action: string) =>
      event('response.output_item.done', { output_index: 0, item: { type, action: { type: action } } });
    const search = item('web_search_call', 'search');
    const delta = event('response.output_text.delta', { output_index: 1, content_index: 0, delta: 'abcdef' });
    const events = [event('response.created', { response: { id: 'r', output: [] } }), search, search, search];
    const { settled } = await leave(
      [...events, item('web_search_call', 'open_page'), delta],
      { input: 'news?', tools: [{ type: 'web_search' }] },
      { path: '/responses', ...searching },
    );
    expect(settled?.cost).toBe(120_030_000n);
  });

  test('of an API that shows no searches is charged for their maximum', async () => {
    const body = { messages: MESSAGES, max_tokens: 100, search_parameters: { mode: 'on', max_search_results: 4 } };
    const { settled } = await leave([chunk({ content: 'abcdef' })], body, { path: '/chat/completions', ...searching });
    expect(settled?.cost).toBe(WINDOW * 1000n + 2n * 2000n + 4n * CENT);
  });
});

describe('a stream whose client leaves before any count', () => {
  const chargedShare = async (content: string) => {
    const body = { messages: [{ role: 'user', content }], max_tokens: 100 };
    const { settled } = await leave([chunk({ content: 'abc' })], body, { path: '/chat/completions' });
    return (settled?.tokens.input ?? 0) / Buffer.byteLength(content);
  };

  test('is charged for a prompt of prose at a token for three bytes', async () => {
    expect(await chargedShare('Tell me how a day in the old town begins. '.repeat(500))).toBeCloseTo(1 / 3, 1);
  });

  test.each([
    ['squared words', '\u33c2'.repeat(10_000), 0.95],
    ['base64', 'aGVsbG8gV29ybGQ4NzYyMTkwQUJ'.repeat(1000), 0.5],
    ['faces', '😀'.repeat(10_000), 0.95],
  ])('is charged for other letters by their tokens: %s', async (_, content, min) => {
    expect(await chargedShare(content)).toBeGreaterThan(min);
  });
});

describe('a stream of several answers whose server counts in each event', () => {
  const usage = (output: number) => ({
    usage: { prompt_tokens: 10, completion_tokens: output, total_tokens: 10 + output },
  });
  const answers = Array.from({ length: 20 }, (_, index) => ({
    choices: [{ index, delta: { content: 'abc'.repeat(100) } }],
  }));
  const events = answers.map((answer) => chunk({}, { ...answer, ...usage(100) }));
  const body = { messages: MESSAGES, max_tokens: 200, n: 20 };

  test('and whose client leaves is charged for all of them', async () => {
    const { settled } = await leave(events, body, { path: '/chat/completions' });
    expect(settled).toMatchObject({ tokens: { input: 10, output: 2000 }, estimated: true });
  });

  test('is charged the last count of the server', async () => {
    const end = `data: ${JSON.stringify({ choices: [], ...usage(1900) })}\n\n`;
    const { settled } = await leave([...events, end], body, { path: '/chat/completions' });
    expect(settled).toMatchObject({ tokens: { input: 10, output: 1900 }, estimated: false });
  });

  test('and that has ended without a count of all is charged for all of them', async () => {
    const ends = answers.map((_, index) =>
      chunk({}, { choices: [{ index, delta: {}, finish_reason: 'stop' }], ...usage(100) }),
    );
    const script = () => ({ headers: SSE, body: [...events, ...ends, 'data: [DONE]\n\n'] });
    const { chat, ledger } = stageOne(entry('gpt', { maxOutputTokens: 100 }), { script, limit: '1000' });
    await (await chat({ model: 'gpt', stream: true, ...body })).text();
    await settleDown();
    expect(ledger.settled).toMatchObject([{ tokens: { input: 10, output: 2000 }, estimated: true }]);
  });
});

describe('a stream of several answers whose provider counts once', () => {
  const usage = { usage: { prompt_tokens: 10, completion_tokens: 800, total_tokens: 810 } };
  const words = 'abc'.repeat(600);
  const of = (index: number, more: object = {}) => ({ index, delta: { content: words }, ...more });
  const [begun, ended] = [(index: number) => of(index), (index: number) => of(index, { finish_reason: 'stop' })];
  const piece = (choices: ReadonlyArray<object>, more: object = {}) => chunk({}, { choices, ...more });

  test.each([
    ['beside the last choice', [piece([begun(0)]), piece([begun(1)]), piece([ended(0)]), piece([ended(1)], usage)]],
    ['beside the last choices', [piece([begun(0), begun(1)]), piece([ended(0), ended(1)], usage)]],
    ['behind all', [piece([ended(0), ended(1)]), 'data: [DONE]\n\n', piece([], usage)]],
  ])('%s is charged that count', async (_, events) => {
    const body = { messages: MESSAGES, max_tokens: 1000, n: 2 };
    const { settled } = await leave(events, body, { path: '/chat/completions', maxOutputTokens: 1000 });
    expect(settled).toMatchObject({ tokens: { input: 10, output: 800 }, estimated: false });
  });
});

test('a count of all answers in each event (Gemini) is the charge', async () => {
  const usage = (output: number) => ({
    usage: { prompt_tokens: 10, completion_tokens: output, total_tokens: 10 + output },
  });
  const choice = (index: number, finish_reason: string | null) => ({
    choices: [{ index, delta: { content: 'abc'.repeat(300) }, finish_reason }],
  });
  const body = [
    chunk({}, { ...choice(0, null), ...usage(100) }),
    chunk({}, { ...choice(0, 'stop'), ...usage(200) }),
    chunk({}, { ...choice(1, null), ...usage(300) }),
    chunk({}, { ...choice(1, 'stop'), ...usage(400) }),
    'data: [DONE]\n\n',
  ];
  const model = entry('gpt', { provider: 'gemini', maxOutputTokens: 1000 });
  const { chat, ledger } = stageOne(model, { script: () => ({ headers: SSE, body }), limit: '1000' });
  await (await chat({ model: 'gpt', stream: true, messages: MESSAGES, max_tokens: 1000, n: 2 })).text();
  await settleDown();
  expect(ledger.settled).toMatchObject([{ tokens: { input: 10, output: 400 }, estimated: false }]);
});
