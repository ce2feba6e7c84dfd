import { describe, expect, test } from 'vitest';
import { event } from '../../../test/gateway/anthropic.ts';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { COMPLETED, CREATED } from '../../../test/gateway/responses.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { chunk, completion, MESSAGES, SSE, stuckAfter } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, stream: true };
const WORDS = 'nine bytes '.repeat(20);
/** A second of audio as it is streamed. */
const SECOND = 'A'.repeat(64_000);

/** A provider that repeats this word, and never ends. */
async function* endlessly(delta: object, times: number): AsyncGenerator<Uint8Array> {
  for (let time = 0; time < times; time += 1) yield new TextEncoder().encode(chunk(delta));
  await new Promise(() => {});
}

/** Output tokens and cost when the client leaves after ten of them. */
async function leftAfterTen(delta: object) {
  const price = { input: '0', output: '1', outputAudio: '8' };
  const snapshot = snapshotOf([entry('gpt', { price })]);
  const world = stage({ snapshot, script: () => ({ headers: SSE, body: endlessly(delta, 10) }) });
  const reader = (await world.chat(CHAT)).body?.getReader();
  for (let time = 0; time < 10; time += 1) await reader?.read();
  await reader?.cancel();
  await settleDown();
  const [settled] = world.ledger.settled;
  return { output: settled?.tokens.output, cost: settled?.cost };
}

describe('a client that leaves a stream is charged for the output so far, of whatever kind', () => {
  test.each<[string, object]>([
    ['text', { content: WORDS }],
    ['text in parts', { content: [{ type: 'text', text: WORDS }] }],
    [
      'reasoning in parts, as of Mistral',
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: WORDS }] }] },
    ],
    [
      'the call of a tool that takes any text',
      { tool_calls: [{ index: 0, type: 'custom', custom: { input: WORDS } }] },
    ],
    ['what audio says in words', { audio: { transcript: WORDS } }],
  ])('%s', async (_, delta) => {
    const tokens = Math.ceil((10 * WORDS.length) / 3);
    expect(await leftAfterTen(delta)).toEqual({ output: tokens, cost: BigInt(tokens) * 1000n });
  });

  test('audio, at the price of audio and not by the bytes of its base64', async () => {
    expect(await leftAfterTen({ audio: { id: 'a', data: SECOND } })).toEqual({ output: 200, cost: 200n * 8000n });
  });

  test('audio in pieces of less than a token, which do not cut the stream', async () => {
    const piece = { audio: { data: 'A'.repeat(320) } };
    expect(await leftAfterTen(piece)).toEqual({ output: 1, cost: 8000n });
    const body = [...Array(50)].map(() => chunk(piece));
    const world = stage({ script: () => ({ headers: SSE, body: [...body, 'data: [DONE]\n\n'] }) });
    const text = await (await world.chat({ ...CHAT, max_tokens: 10 })).text();
    expect(text).toBe(`${body.join('')}data: [DONE]\n\n`);
  });

  test('images', async () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${SECOND}` } };
    // Ten of them are more than the limit that the gateway has sent.
    expect(await leftAfterTen({ images: [image] })).toMatchObject({ output: 16_384 });
    expect(await leftAfterTen({ content: [image] })).toMatchObject({ output: 16_384 });
  });
});

describe('images and audio of an answer cost the highest rate of output, unless the provider counts them separately', () => {
  const IMAGE = { type: 'image_url', image_url: { url: `data:image/png;base64,${SECOND}` } };
  const IN_IMAGES = { content: 'A cat.', images: [IMAGE] };
  const IN_PARTS = { content: [{ type: 'text', text: 'A cat.' }, IMAGE] };
  const SPOKEN = { content: null, audio: { data: SECOND, transcript: 'A cat.' } };
  const PRICE = { input: '0', output: '2', outputAudio: '8', outputImage: '30' };
  const usageOf = (details: object) => ({
    prompt_tokens: 10,
    completion_tokens: 1_300,
    total_tokens: 1_310,
    completion_tokens_details: details,
  });
  const CASES: ReadonlyArray<[string, object, object, bigint]> = [
    ['an image', IN_IMAGES, {}, 1_300n * 30n],
    ['an image in parts', IN_PARTS, {}, 1_300n * 30n],
    ['an image, with reasoning that is counted', IN_IMAGES, { reasoning_tokens: 300 }, 1_000n * 30n + 300n * 2n],
    ['an image that is counted', IN_IMAGES, { image_tokens: 1_290 }, 1_290n * 30n + 10n * 2n],
    ['audio', SPOKEN, {}, 1_300n * 30n],
    ['audio that is counted', SPOKEN, { audio_tokens: 1_290 }, 1_290n * 8n + 10n * 2n],
    ['text alone', { content: 'A cat.' }, {}, 1_300n * 2n],
  ];
  const snapshot = snapshotOf([entry('gpt', { price: PRICE })]);
  const WAYS = ['/chat/completions', '/messages'];

  test.each(CASES)('a whole reply: %s', async (_, message, details, cost) => {
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    const body = JSON.stringify({ choices, usage: usageOf(details) });
    for (const path of WAYS) {
      const world = stage({ snapshot, script: () => ({ body }) });
      expect((await world.chat({ ...CHAT, stream: false, max_tokens: 2_000 }, { path })).status).toBe(200);
      expect(world.ledger.settled).toMatchObject([{ cost: cost * 1000n, estimated: false }]);
    }
  });

  test.each(CASES)('a stream: %s', async (_, delta, details, cost) => {
    const counted = `data: ${JSON.stringify({ choices: [], usage: usageOf(details) })}\n\n`;
    for (const path of WAYS) {
      const body = [chunk(delta), chunk({}, {}, 'stop'), counted, 'data: [DONE]\n\n'];
      const world = stage({ snapshot, script: () => ({ headers: SSE, body }) });
      await (await world.chat({ ...CHAT, max_tokens: 2_000 }, { path })).text();
      expect(world.ledger.settled).toMatchObject([{ cost: cost * 1000n, estimated: false }]);
    }
  });

  test('a stream whose client leaves after an image is charged for the maximum of an image', async () => {
    const script = () => ({ headers: SSE, body: endlessly(IN_IMAGES, 1) });
    const world = stage({ snapshot, script });
    const reader = (await world.chat(CHAT)).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await settleDown();
    expect(world.ledger.settled).toMatchObject([{ cost: (16_000n * 30n + 2n * 2n) * 1000n, estimated: true }]);
  });
});

describe('a summary of reasoning in a streamed response', () => {
  const summary = event('response.reasoning_summary_text.delta', { output_index: 0, summary_index: 0, delta: WORDS });
  const RESPONSE = { model: 'gpt', input: 'Say hello.', stream: true, max_output_tokens: 1_000 };

  test('is charged if the client leaves before the count', async () => {
    const world = stage({ script: () => ({ headers: SSE, body: stuckAfter(CREATED, summary) }) });
    const reader = (await world.chat(RESPONSE, { path: '/responses' })).body?.getReader();
    for (let time = 0; time < 2; time += 1) await reader?.read();
    await reader?.cancel();
    await settleDown();
    const output = Math.ceil(WORDS.length / 3);
    expect(world.ledger.settled).toMatchObject([{ estimated: true, tokens: { output } }]);
  });

  test('does not cut the stream, and is charged by the count of the provider', async () => {
    const body = [CREATED, ...Array(20).fill(summary), COMPLETED];
    const world = stage({ script: () => ({ headers: SSE, body }) });
    const text = await (await world.chat({ ...RESPONSE, max_output_tokens: 16 }, { path: '/responses' })).text();
    expect(text).toBe(body.join(''));
    expect(world.ledger.settled).toMatchObject([{ estimated: false, tokens: { output: 3 } }]);
  });
});

test('an uncounted reply with audio is charged for its audio', async () => {
  const message = { role: 'assistant', content: null, audio: { id: 'a', data: SECOND, transcript: 'Hello' } };
  const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] });
  const world = stage({ script: () => ({ body }) });
  await world.chat({ ...CHAT, stream: false });
  expect(world.ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 22 } }]);
});

const NOTHING = { tokens: { input: 0, output: 0 }, cost: 0n, estimated: false };

test.each([
  ['a reply', { stream: false }, { body: completion(WORDS, null) }],
  ['a stream', { stream: true }, { headers: SSE, body: [chunk({ content: WORDS }), 'data: [DONE]\n\n'] }],
])('%s without usage that is longer than its limit is charged and shown with the limit', async (_, how, reply) => {
  // A reservation has a token for each byte of the prompt, which is more than the prompt costs.
  const price = { input: '1', output: '1' };
  const world = stage({ snapshot: snapshotOf([entry('gpt', { price })]), script: () => reply });
  await (await world.chat({ ...CHAT, ...how, max_tokens: 7 })).text();
  const [{ tokens, cost, estimated } = NOTHING] = world.ledger.settled;
  expect([tokens.output, cost, estimated]).toEqual([7, BigInt(tokens.input + 7) * 1000n, true]);
});

test('deeply nested parts are counted, and do not end the stream', async () => {
  const deep = `${'['.repeat(50_000)}"deep"${']'.repeat(50_000)}`;
  const body = [chunk({ content: 'X' }).replace('"X"', deep), 'data: [DONE]\n\n'];
  const world = stage({ script: () => ({ headers: SSE, body }) });
  expect(await (await world.chat(CHAT)).text()).toContain('[DONE]');
  expect(world.ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 2 } }]);
});
