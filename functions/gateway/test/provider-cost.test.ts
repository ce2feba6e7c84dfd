// Costs that a provider reports: the larger of its cost and our cost is charged (LEDGER 10).
import { describe, expect, test } from 'vitest';
import { event } from '../../../test/gateway/anthropic.ts';
import { entry } from '../../../test/gateway/instance.ts';
import { CREATED, response } from '../../../test/gateway/responses.ts';
import { stageOne, textOf } from '../../../test/gateway/stage.ts';
import { chunk, completion, DONE, embedded, MESSAGES, SSE, type WireReply } from '../../../test/gateway/upstream.ts';

/** Ours: 10 tokens of input for a thousand nano-dollars each, 5 of output for two thousand. */
const COUNT = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const OURS = 20_000n;

const usageChunk = (usage: object) => `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
const streamOf = (...usages: ReadonlyArray<object>): WireReply => ({
  headers: SSE,
  body: [chunk({ content: 'a' }), chunk({}, {}, 'stop'), ...usages.map(usageChunk), DONE],
});

/** The charge of one request to this provider, which gives this answer. */
async function charge(provider: string, reply: WireReply, path = '/chat/completions') {
  const { chat, ledger } = stageOne(entry('gpt', { provider }), { script: () => reply, limit: '1000' });
  const isChat = path === '/chat/completions' || path === '/messages';
  const input = isChat ? { messages: MESSAGES, max_tokens: 90 } : { input: 'a' };
  const stream = reply.headers === SSE;
  const answer = await chat({ model: 'gpt', ...input, ...(stream ? { stream } : {}) }, { path });
  await textOf(answer);
  return ledger.settled[0]?.cost;
}

describe.each([
  ['openrouter', (dollars: unknown) => ({ cost: dollars, cost_details: { upstream_inference_cost: 9 } })],
  ['perplexity', (dollars: unknown) => ({ cost: { input_tokens_cost: 9, total_cost: dollars } })],
])('the cost of %s', (provider, costOf) => {
  test.each([
    ['more than ours', 0.0000275, 27_500n],
    ['less than ours', 0.000000001, OURS],
    ['zero', 0, OURS],
    ['a fraction of a nano-dollar more', 0.0000200001, 20_001n],
    ['with an exponent', 3e-5, 30_000n],
    ['negative', -1, OURS],
    ['a text', '1', OURS],
    ['null', null, OURS],
  ])('that is %s', async (_, dollars, charged) => {
    const usage = { ...COUNT, ...costOf(dollars) };
    expect(await charge(provider, { body: completion('a', usage) })).toBe(charged);
    expect(await charge(provider, streamOf(usage))).toBe(charged);
  });

  test('has a maximum', async () => {
    const usage = JSON.stringify({ ...COUNT, ...costOf(1) }).replace(/:1\b/g, ':1e400');
    expect(await charge(provider, { body: completion('a', 0).replace('"usage":0', `"usage":${usage}`) })).toBe(OURS);
    const huge = { ...COUNT, ...costOf(1e300) };
    expect(await charge(provider, { body: completion('a', huge) })).toBe(10n ** 15n);
  });

  test('stays, although a later count has no cost or a smaller one', async () => {
    const usage = { ...COUNT, ...costOf(0.00005) };
    expect(await charge(provider, streamOf(usage, COUNT))).toBe(50_000n);
    expect(await charge(provider, streamOf(usage, { ...COUNT, completion_tokens: 6, ...costOf(0) }))).toBe(50_000n);
    expect(await charge(provider, streamOf(COUNT, usage))).toBe(50_000n);
  });
});

test('the cost of xAI is in units of 1e-10 dollars', async () => {
  for (const [cost_in_usd_ticks, charged] of [
    [300_001, 30_001n],
    [0, OURS],
    [-5, OURS],
  ] as const) {
    const usage = { ...COUNT, cost_in_usd_ticks };
    expect(await charge('xai', { body: completion('a', usage) })).toBe(charged);
    expect(await charge('xai', streamOf(usage))).toBe(charged);
  }
});

test('the cost counts on every route', async () => {
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost: 0.00004 };
  const completed = event('response.completed', { response: { id: 'resp_1', output: [], usage } });
  expect(await charge('openrouter', { body: response('a', { usage }) }, '/responses')).toBe(40_000n);
  expect(await charge('openrouter', { headers: SSE, body: [CREATED, completed] }, '/responses')).toBe(40_000n);
  const counted = { ...COUNT, cost: 0.00004 };
  expect(await charge('openrouter', { body: completion('a', counted) }, '/messages')).toBe(40_000n);
  expect(await charge('openrouter', streamOf(counted), '/messages')).toBe(40_000n);
  const vectors = embedded(10).replace('"total_tokens"', '"cost":0.00004,"total_tokens"');
  expect(await charge('openrouter', { body: vectors }, '/embeddings')).toBe(40_000n);
});

test('a member of that name from any other provider does not count: its unit is unknown', async () => {
  const usage = { ...COUNT, cost: 5 };
  expect(await charge('openai', { body: completion('a', usage) })).toBe(OURS);
  expect(await charge('my-own-server', { body: completion('a', usage) })).toBe(undefined);
});
