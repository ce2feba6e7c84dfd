import { describe, expect, test } from 'vitest';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { chunk, completion, MESSAGES, SSE } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, stream: true };
const WORDS = 'nine bytes '.repeat(20);
/** A second of sound as it is streamed. */
const SECOND = 'A'.repeat(64_000);

/** Says this again and again, and never ends. */
async function* goesOn(delta: object, times: number): AsyncGenerator<Uint8Array> {
  for (let time = 0; time < times; time += 1) yield new TextEncoder().encode(chunk(delta));
  await new Promise(() => {});
}

/** Output tokens and cost when the client leaves after ten of them. */
async function leftAfterTen(delta: object) {
  const price = { input: '0', output: '1', outputAudio: '8' };
  const snapshot = snapshotOf([entry('gpt', { price })]);
  const world = stage({ snapshot, script: () => ({ headers: SSE, body: goesOn(delta, 10) }) });
  const reader = (await world.chat(CHAT)).body?.getReader();
  for (let time = 0; time < 10; time += 1) await reader?.read();
  await reader?.cancel();
  await settleDown();
  const [settled] = world.ledger.settled;
  return { output: settled?.tokens.output, cost: settled?.cost };
}

describe('a client that leaves a stream pays for what was said, in whatever way it is said', () => {
  test.each<[string, object]>([
    ['text', { content: WORDS }],
    ['text in parts', { content: [{ type: 'text', text: WORDS }] }],
    [
      'thinking in parts, as of Mistral',
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: WORDS }] }] },
    ],
    [
      'the call of a tool that takes any text',
      { tool_calls: [{ index: 0, type: 'custom', custom: { input: WORDS } }] },
    ],
    ['what a sound says in words', { audio: { transcript: WORDS } }],
  ])('%s', async (_, delta) => {
    const tokens = Math.ceil((10 * WORDS.length) / 3);
    expect(await leftAfterTen(delta)).toEqual({ output: tokens, cost: BigInt(tokens) * 1000n });
  });

  test('sound, at the price of sound and not by the bytes of its base64', async () => {
    expect(await leftAfterTen({ audio: { id: 'a', data: SECOND } })).toEqual({ output: 200, cost: 200n * 8000n });
  });

  test('sound in pieces of less than a token, which cut nothing', async () => {
    const piece = { audio: { data: 'A'.repeat(320) } };
    expect(await leftAfterTen(piece)).toEqual({ output: 1, cost: 8000n });
    const body = [...Array(50)].map(() => chunk(piece));
    const world = stage({ script: () => ({ headers: SSE, body: [...body, 'data: [DONE]\n\n'] }) });
    const text = await (await world.chat({ ...CHAT, max_tokens: 10 })).text();
    expect(text).toBe(`${body.join('')}data: [DONE]\n\n`);
  });

  test('pictures', async () => {
    const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${SECOND}` } };
    expect(await leftAfterTen({ images: [picture] })).toMatchObject({ output: 10_000 });
    expect(await leftAfterTen({ content: [picture] })).toMatchObject({ output: 10_000 });
  });
});

test('a reply that was spoken and that nobody counted is charged for its sound', async () => {
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
])('%s without usage that is longer than its limit is charged and shown as long as that', async (_, how, reply) => {
  // A hold pays for each byte of the prompt, more than the prompt costs.
  const price = { input: '1', output: '1' };
  const world = stage({ snapshot: snapshotOf([entry('gpt', { price })]), script: () => reply });
  await (await world.chat({ ...CHAT, ...how, max_tokens: 7 })).text();
  const [{ tokens, cost, estimated } = NOTHING] = world.ledger.settled;
  expect([tokens.output, cost, estimated]).toEqual([7, BigInt(tokens.input + 7) * 1000n, true]);
});

test('parts within parts without end are counted, and end no stream', async () => {
  const deep = `${'['.repeat(50_000)}"deep"${']'.repeat(50_000)}`;
  const body = [chunk({ content: 'X' }).replace('"X"', deep), 'data: [DONE]\n\n'];
  const world = stage({ script: () => ({ headers: SSE, body }) });
  expect(await (await world.chat(CHAT)).text()).toContain('[DONE]');
  expect(world.ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 2 } }]);
});
