import { expect, test } from 'vitest';
import { toUtf8 } from '#core/json/bytes.ts';
import { message } from '../../../test/gateway/anthropic.ts';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { completion, MESSAGES, SSE } from '../../../test/gateway/upstream.ts';
import { createReader } from '../wire/chat/anthropic-stream.ts';
import { withoutSecretsIn } from '../wire/json/secrets.ts';
import { MAX_PARTS } from '../wire/streams/parts.ts';
import { dataOf } from '../wire/streams/sse.ts';
import { ASK, open } from './messages.fixture.ts';

const MEBIBYTE = new Uint8Array(1024 * 1024).fill(0x20);

/** Many answers with all their log probabilities, say. */
async function* endless(): AsyncGenerator<Uint8Array> {
  while (true) yield MEBIBYTE;
}

test('a reply that is too long for the gateway is charged, not repeated, and no failure of its entry', async () => {
  const { chat, ledger, fake, lines, counted } = stage({ script: () => ({ body: endless() }) });
  for (const time of [1, 2, 3]) {
    const response = await chat({ model: 'gpt', messages: MESSAGES, n: 8, logprobs: true, top_logprobs: 20 });
    expect([response.status, fake.requests.length]).toEqual([502, time]);
  }
  const whole = { estimated: true, tokens: { output: 8 * 16_384 } };
  expect(ledger.settled).toMatchObject([whole, whole, whole]);
  expect([ledger.liveReservations(), ledger.released.length, lines.length]).toEqual([0, 0, 3]);
  expect(counted.some(([name]) => name === 'gateway_operator_cooldowns_total')).toBe(false);
});

test('concurrent plain replies stay within the memory budget: one without memory is charged', async () => {
  let go = () => {};
  const wait = new Promise<void>((resolve) => {
    go = resolve;
  });
  async function* long(): AsyncGenerator<Uint8Array> {
    for (let piece = 0; piece < 2; piece += 1) yield MEBIBYTE;
    await wait;
    throw new Error('the provider left');
  }
  const snapshot = snapshotOf([entry('gpt')], { retries: 0 });
  // Room for 10 MiB of one key. A reply counts twice until it is whole.
  const memory = { limit: 64 * 1024 * 1024, own: 0 };
  const { chat, ledger, fake } = stage({ snapshot, script: () => ({ body: long() }), deps: { memory } });
  const ask = () => chat({ model: 'gpt', messages: MESSAGES, max_tokens: 5 });
  const others = [ask(), ask()];
  await expect.poll(() => fake.requests.length).toBe(2);
  await settleDown();
  expect([(await ask()).status, ledger.settled]).toMatchObject([503, [{ estimated: true, tokens: { output: 5 } }]]);
  go();
  await Promise.all(others);
});

test('an attempt that ends in an error closes its connection, also of a stream whose first event never ends', async () => {
  const megabyte = new Uint8Array(1024 * 1024).fill(0x78);
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield megabyte;
  }
  const { chat, fake } = stage({ script: () => ({ headers: SSE, body: endless() }) });
  const response = chat({ model: 'gpt', messages: MESSAGES, max_tokens: 5, stream: true });
  expect((await response).status).toBe(502);
  expect(fake.requests.map(({ signal }) => signal.aborted)).toEqual([true]);
});

test('pending events take memory of their key: without memory the stream ends', async () => {
  let go = () => {};
  const wait = new Promise<void>((resolve) => {
    go = resolve;
  });
  async function* torn(): AsyncGenerator<Uint8Array> {
    yield toUtf8('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\ndata: ');
    for (let piece = 0; piece < 3; piece += 1) yield new Uint8Array(1024 * 1024).fill(0x78);
    await wait;
  }
  const snapshot = snapshotOf([entry('gpt')], { retries: 0 });
  // Room for 10 MiB of one key. An event counts twice until it is whole.
  const memory = { limit: 64 * 1024 * 1024, own: 0 };
  const { chat, counted } = stage({ snapshot, script: () => ({ headers: SSE, body: torn() }), deps: { memory } });
  const ask = async () => (await chat({ model: 'gpt', messages: MESSAGES, stream: true })).text();
  const streams = [ask(), ask()];
  await expect(Promise.race(streams)).rejects.toThrow();
  go();
  await Promise.allSettled(streams);
  // The gateway had no memory: that is no failure of the entry.
  expect(counted.some(([name]) => name === 'gateway_operator_cooldowns_total')).toBe(false);
});

const COSTLY = `{"x":[${Array.from({ length: 300_000 }, (_, at) => `{"k${at}":1}`).join()}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`;

test.each([
  ['plain', false, {}, COSTLY],
  ['streamed', true, SSE, `data: ${COSTLY}\n\n`],
])(
  'a %s reply of more values than the gateway can read without blocking others is charged and not read',
  async (_, stream, headers, body) => {
    const { chat, ledger } = stage({ script: () => ({ headers, body: [body] }) });
    const response = await chat({ model: 'gpt', messages: MESSAGES, max_tokens: 5, stream });
    expect([response.status, ledger.settled]).toMatchObject([502, [{ estimated: true }]]);
  },
);

const chunks = (toChunk: (at: number) => object) =>
  Array.from({ length: 2 * MAX_PARTS }, (_, at) => `data: ${JSON.stringify(toChunk(at))}\n\n`).join('');

test('a stream has a maximum number of parts', async () => {
  const events = chunks((at) => ({ type: 'content_block_start', index: at, content_block: { type: 'tool_use' } }));
  const reader = createReader({ created: 0, redact: (words) => words });
  expect(() => reader.push(toUtf8(events))).toThrow('more than 4096 parts');
});

test('an event that its provider cuts is charged, and the next event of the gateway is separate', async () => {
  const start = { type: 'message_start', message: { id: 'm', role: 'assistant', usage: { input_tokens: 7 } } };
  const torn = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"text":"wort';
  const body = [`event: message_start\ndata: ${JSON.stringify(start)}\n\n${torn}`];
  const { ask, ledger } = open({ script: () => ({ headers: SSE, body }) });
  const text = await textOf(await ask({ ...ASK, stream: true }));
  expect(text).toContain(`${torn}\n\nevent: error\n`);
  expect(ledger.settled.map(({ tokens }) => tokens.output > 10)).toEqual([true]);
});

test.each([
  ['chat', { prompt_tokens: 2 ** 53 - 1, completion_tokens: 2 ** 53 - 1 }],
  ['chat', { prompt_tokens: 10, completion_tokens: 10 ** 9 + 1 }],
])('an impossible count does not count: %s %j', async (_, usage) => {
  const { chat, ledger } = stage({ script: () => ({ body: completion('a', usage) }) });
  await chat({ model: 'gpt', messages: MESSAGES, max_tokens: 5 });
  expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 1 } }]);
});

test('counts with an impossible sum are charged with the maximum of the ledger', async () => {
  const one = { input_tokens: 10 ** 9, output_tokens: 10 ** 9 };
  const usage = { ...one, iterations: Array.from({ length: 1_100 }, () => one) };
  const { ask, ledger } = open({ script: () => ({ body: message('a', { usage }) }) });
  await ask(ASK);
  expect(ledger.settled).toMatchObject([{ cost: 3n * 10n ** 12n, tokens: { input: 10 ** 9, output: 10 ** 9 } }]);
});

test.each([
  ['null', { choices: null }],
  ['an error', { error: { message: 'filtered' } }],
])('an answer without content (%s) that its provider has counted is charged and not repeated', async (_, body) => {
  const usage = { prompt_tokens: 1_000, completion_tokens: 500 };
  const { chat, ledger, fake } = stage({ script: () => ({ body: JSON.stringify({ ...body, usage }) }) });
  const response = await chat({ model: 'gpt', messages: MESSAGES, max_tokens: 500 });
  expect([response.status, fake.requests.length]).toEqual([502, 1]);
  expect(ledger.settled).toMatchObject([{ tokens: { input: 1_000, output: 500 } }]);
});

test.each([
  ['an object', {}],
  ['a long text', 'x'.repeat(257)],
])('a part of a stream may not have %s as its index', (_, index) => {
  const reader = createReader({ created: 0, redact: (words) => words });
  const event = { type: 'content_block_start', index, content_block: { type: 'tool_use' } };
  expect(() => reader.push(toUtf8(`data: ${JSON.stringify(event)}\n\n`))).toThrow('neither an index nor an id');
});

test('an id that the gateway writes into every chunk is cut', () => {
  const reader = createReader({ created: 0, redact: (words) => words });
  const [id, model] = ['i'.repeat(1_000_000), 'm'.repeat(1_000_000)];
  const [piece] = reader.push(toUtf8(`data: ${JSON.stringify({ type: 'message_start', message: { id, model } })}\n\n`));
  expect(piece?.bytes.length).toBeLessThan(1_000);
});

test('an event of very many lines is none', () => {
  expect(() => dataOf(toUtf8(`: a\n${'b\n'.repeat(20_000)}\n`))).toThrow('more than 10000 lines');
});

test('an error of a response is searched for credentials up to the length that is shown', () => {
  const redact = (words: string) => words.replaceAll('secret', '…');
  const response = { id: 'r', output: [], error: { message: 'a secret' } };
  expect(withoutSecretsIn(response, redact)).toEqual({ ...response, error: { message: 'a …' } });
  const long = { ...response, error: { message: 'x'.repeat(100_000) } };
  expect(JSON.stringify(withoutSecretsIn(long, redact)).length).toBeLessThan(200);
  const other = { id: 'r', error: { message: 'a secret' }, x: 'y'.repeat(1_000_000) };
  expect(withoutSecretsIn(other, redact)).toEqual({ ...other, error: { message: 'a …' } });
});
