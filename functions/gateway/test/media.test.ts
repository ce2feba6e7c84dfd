// Media: the reservation for an image, a document, an audio file or a video, and its charge if no provider counts it
// (LEDGER 9, 10).
import { describe, expect, test } from 'vitest';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import { START, words } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { CREATED, deltas } from '../../../test/gateway/responses.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { breaksAfter, chunk, type Script, SSE, streamed, stuckAfter } from '../../../test/gateway/upstream.ts';

/** An API, the provider behind it, and how a request with media is written there. */
interface Way {
  readonly path: string;
  readonly provider: string;
  readonly limit: string;
  readonly body: (parts: ReadonlyArray<object>) => object;
  readonly image: (data: string) => object;
  /** Files by their kind: encoded in the request, and elsewhere. */
  readonly files: Readonly<Record<string, (data: string) => object>>;
  readonly elsewhere: ReadonlyArray<object>;
  /** The maximum tokens of an image. */
  readonly imageTokens: number;
  /** The beginning of a stream that has counted nothing yet. */
  readonly begun: string[];
}

const URL_OF = 'https://files.example/a';
const chat = {
  path: '/chat/completions',
  limit: 'max_tokens',
  body: (content: unknown) => ({ messages: [{ role: 'user', content }] }),
  image: (data: string) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }),
  files: {
    document: (data: string) => ({ type: 'file', file: { file_data: `data:application/pdf;base64,${data}` } }),
    audio: (data: string) => ({ type: 'input_audio', input_audio: { data, format: 'wav' } }),
    video: (data: string) => ({ type: 'video_url', video_url: { url: `data:video/mp4;base64,${data}` } }),
    'video in place of an image': (data: string) => ({ type: 'image_url', image_url: `data:video/mp4;base64,${data}` }),
  },
  elsewhere: [
    { type: 'file', file: { file_url: URL_OF } },
    { type: 'audio_url', audio_url: { url: URL_OF } },
    { type: 'video_url', video_url: URL_OF },
    { type: 'image_url', image_url: { url: `${URL_OF}.pdf` } },
    { type: 'text', content: { type: 'file', file: { file_url: URL_OF } } },
    { type: 'hologram' },
  ],
  begun: [chunk({ content: 'a' }), chunk({ content: 'b' })],
};
const messages = {
  path: '/messages',
  limit: 'max_tokens',
  body: (content: unknown) => ({ messages: [{ role: 'user', content }] }),
  image: (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }),
  files: {
    document: (data: string) => ({
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data },
    }),
    'document in place of an image': (data: string) => ({
      type: 'image',
      source: { type: 'base64', media_type: 'application/pdf', data },
    }),
  },
  elsewhere: [
    { type: 'document', source: { type: 'url', url: URL_OF } },
    { type: 'image', source: { type: 'url', url: `${URL_OF}.pdf` } },
    { type: 'hologram' },
    {
      type: 'web_fetch_tool_result',
      content: { type: 'web_fetch_result', content: { type: 'document', source: { type: 'url', url: URL_OF } } },
    },
  ],
};
const WAYS: ReadonlyArray<Way> = [
  { ...chat, provider: 'openai', imageTokens: 100_000 },
  { ...messages, provider: 'anthropic', imageTokens: 8_000, begun: words('a', 'b') },
  {
    path: '/responses',
    limit: 'max_output_tokens',
    provider: 'openai',
    imageTokens: 100_000,
    body: (content) => ({ input: [{ role: 'user', content }] }),
    image: (data) => ({ type: 'input_image', image_url: `data:image/png;base64,${data}` }),
    files: {
      document: (data) => ({ type: 'input_file', file_data: `data:application/pdf;base64,${data}` }),
      'document in place of an image': (data) => ({
        type: 'input_image',
        image_url: `data:application/pdf;base64,${data}`,
      }),
      audio: (data) => ({ type: 'input_audio', input_audio: { data, format: 'wav' } }),
    },
    elsewhere: [
      { type: 'input_file', file_url: URL_OF },
      { type: 'hologram' },
      { type: 'input_image', image_url: `${URL_OF}.pdf` },
      { type: 'function_call_output', output: { type: 'input_file', file_url: URL_OF } },
      { type: 'message', content: { type: 'input_file', file_url: URL_OF } },
    ],
    begun: [CREATED, ...deltas('a', 'b')],
  },
];
const NAMED = WAYS.map((way) => [`${way.path} behind ${way.provider}`, way] as const);

/** 3,000 bytes. */
const DATA = 'QUJD'.repeat(1000);
const BYTES = 3000;
const LARGEST = 1_050_000;
/** A dollar for a million tokens of input, nothing for output. */
const PRICE = { price: { input: '1', output: '0' } };

interface Options {
  readonly limit?: string;
  readonly script?: Script;
  readonly entry?: Partial<SnapshotEntry>;
  readonly routing?: object;
}

function open(way: Way, { limit = '1000000', script = () => ({ status: 500 }), entry: more = {}, routing }: Options) {
  const snapshot = snapshotOf([entry('gpt', { provider: way.provider, ...PRICE, ...more })], {
    retries: 0,
    ...routing,
  });
  const world = stage({ snapshot, script, keys: { [KEY]: keyRecord({ limit }) } });
  const bodyOf = (parts: ReadonlyArray<object>, rest: object = {}) =>
    JSON.stringify({ model: 'gpt', [way.limit]: 100, ...way.body(parts), ...rest });
  const ask = (parts: ReadonlyArray<object>, rest: object = {}) => world.chat(bodyOf(parts, rest), { path: way.path });
  /** The reserved tokens, and those of media with this number of encoded letters. */
  const held = async (parts: ReadonlyArray<object>, letters = 0) => {
    await ask(parts);
    const tokens = Number((world.ledger.asked.at(-1)?.amount ?? 0n) / 1_000n);
    return { tokens, media: tokens - (bodyOf(parts).length - letters) };
  };
  return { ...world, bodyOf, ask, held };
}

describe.each(NAMED)('a request on %s reserves for', (_, way) => {
  test.each(Object.entries(way.files))('the bytes of a %s if the window of the model is unknown', async (__, file) => {
    const { held } = open(way, {});
    const part = file(DATA);
    const letters = JSON.stringify(part).match(/(data:[^,"]*,)?[A-Za-z0-9+/]{4000}/)?.[0].length ?? 0;
    const { media } = await held([part], letters);
    expect(media).toBeGreaterThanOrEqual(BYTES);
    expect(media).toBeLessThan(BYTES + 50);
    const long = 'QUJD'.repeat(360_000);
    expect((await held([file(long)])).tokens).toBeLessThan(LARGEST + 1000);
    expect((await held([file(long)])).tokens).toBeGreaterThanOrEqual(LARGEST);
  });

  test.each(Object.entries(way.files))('the whole window for a %s, if the window is known', async (__, file) => {
    const { held } = open(way, { entry: { maxInputTokens: 200_000 } });
    expect(await held([file(DATA)])).toMatchObject({ tokens: 200_000 });
    expect(await held([file(DATA), file(DATA)])).toMatchObject({ tokens: 200_000 });
  });

  test('the largest window for a file at an address, or of an unknown type, or the known window', async () => {
    for (const part of way.elsewhere) {
      const { tokens } = await open(way, {}).held([part]);
      expect(tokens).toBeGreaterThanOrEqual(LARGEST);
      expect(tokens).toBeLessThan(LARGEST + 1000);
      expect(await open(way, { entry: { maxInputTokens: 5000 } }).held([part])).toMatchObject({ tokens: 5000 });
    }
  });

  test('the same with messages without content, such as calls of tools, wherever they are', async () => {
    const alone = JSON.parse(open(way, {}).bodyOf(way.elsewhere)) as Record<string, unknown>;
    const name = 'input' in alone ? 'input' : 'messages';
    const list = alone[name] as ReadonlyArray<object>;
    const call = {
      role: 'assistant',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    };
    const amountOf = async (messages: ReadonlyArray<unknown>) => {
      const world = open(way, {});
      await world.chat(JSON.stringify({ ...alone, [name]: messages }), { path: way.path });
      return world.ledger.asked.at(-1)?.amount ?? 0n;
    };
    const amount = await amountOf(list);
    for (const empty of [call, { role: 'user' }, { role: 'user', content: null }, null])
      for (const messages of [
        [...list, empty],
        [empty, ...list],
      ]) {
        const held = await amountOf(messages);
        // A provider that does not take such a message is not called.
        if (held > 0n) expect(held).toBeGreaterThanOrEqual(amount);
      }
  });

  test('the maximum of an image, whatever its size', async () => {
    for (const data of [DATA, 'QUJD'.repeat(100_000)]) {
      const { media } = await open(way, {}).held([way.image(data)], data.length);
      expect(Math.abs(media - way.imageTokens)).toBeLessThan(50);
    }
    expect(await open(way, { entry: { maxInputTokens: 5000 } }).held([way.image(DATA)])).toMatchObject({
      tokens: 5000,
    });
  });

  test('so many tokens that concurrent requests with files never spend more than the budget', async () => {
    const { ask, ledger, fake } = open(way, {
      limit: '2',
      entry: { price: { input: '2', output: '0' }, maxInputTokens: 1_000_000 },
      script: () => new Promise(() => {}),
    });
    const [document] = Object.values(way.files);
    const asked = Array.from({ length: 9 }, () => ask([document?.(DATA) ?? {}]));
    await settleDown();
    expect(fake.requests).toHaveLength(1);
    expect(ledger.liveReservations()).toBe(1);
    for (const refused of asked.slice(1)) expect(await (await refused).text()).toContain('budget_held');
  });
});

const textOf = (body: string, letters: number): number => Math.ceil((body.length - letters) / 3);

describe.each(NAMED)('a stream on %s whose client leaves before a count', (_, way) => {
  const leave = async (parts: ReadonlyArray<object>, more: Partial<SnapshotEntry>, begun = way.begun) => {
    const world = open(way, { entry: more, script: () => ({ headers: SSE, body: stuckAfter(...begun) }) });
    const reader = (await world.ask(parts, { stream: true })).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await settleDown();
    const [settled] = world.ledger.settled;
    return { ...settled, amount: world.ledger.asked[0]?.amount ?? 0n, body: world.bodyOf(parts, { stream: true }) };
  };

  test('is charged the estimate of its text, and the maximum of its images', async () => {
    const parts = [way.image(DATA), way.image(DATA)];
    const { tokens, estimated, cost, amount, body } = await leave(parts, {});
    const text = textOf(body, 2 * DATA.length);
    expect(Math.abs((tokens?.input ?? 0) - (2 * way.imageTokens + text))).toBeLessThan(50);
    expect([estimated, cost]).toEqual([true, BigInt(tokens?.input ?? 0) * 1_000n]);
    expect(cost).toBeLessThanOrEqual(amount);
  });

  test('is charged the whole window for a file, if it is known, else the reservation for the file', async () => {
    const [file] = Object.values(way.files);
    const part = file?.(DATA) ?? {};
    expect(await leave([part], { maxInputTokens: 200_000 })).toMatchObject({ cost: 200_000_000n, estimated: true });
    for (const elsewhere of way.elsewhere) {
      const { cost = 0n, amount } = await leave([elsewhere], {});
      expect(cost).toBeGreaterThanOrEqual(BigInt(LARGEST) * 1_000n);
      expect(cost).toBeLessThanOrEqual(amount);
    }
  });

  test('is charged the highest price of media, because its kind was not counted', async () => {
    const price = { input: '1', output: '0', inputAudio: '40', inputImage: '5' };
    const [file] = Object.values(way.files);
    const { cost = 0n, amount } = await leave([file?.(DATA) ?? {}], { price });
    expect(cost).toBeGreaterThanOrEqual(BigInt(BYTES) * 40_000n);
    expect(cost).toBeLessThanOrEqual(amount);
  });

  test('without media is charged its estimate', async () => {
    const { tokens, body } = await leave([], {});
    expect(tokens?.input).toBe(textOf(body, 0));
  });
});

test('a stream whose client leaves after a count of the prompt is charged that count', async () => {
  const [, [, way]] = NAMED as [(typeof NAMED)[number], (typeof NAMED)[number]];
  const world = open(way, { script: () => ({ headers: SSE, body: stuckAfter(START, ...way.begun) }) });
  const reader = (await world.ask([way.image(DATA)], { stream: true })).body?.getReader();
  await reader?.read();
  await reader?.cancel();
  await settleDown();
  expect(world.ledger.settled).toMatchObject([{ tokens: { input: 10 } }]);
});

test('a whole stream is charged the count of its provider', async () => {
  const [[, way]] = NAMED as [(typeof NAMED)[number]];
  const world = open(way, { script: () => ({ headers: SSE, body: streamed(['x']) }) });
  await (await world.ask([way.image(DATA)], { stream: true })).text();
  expect(world.ledger.settled).toMatchObject([{ tokens: { input: 10, output: 3 }, estimated: false }]);
});

test.each(NAMED)('an attempt on %s that breaks is charged the maximum of its media', async (_, way) => {
  const { ask, ledger } = open(way, { script: () => ({ body: breaksAfter() }), entry: { maxInputTokens: 200_000 } });
  const [file] = Object.values(way.files);
  expect((await ask([file?.(DATA) ?? {}])).status).toBe(502);
  expect(ledger.settled).toMatchObject([{ cost: 200_000_000n, estimated: true }]);
});

test('a file of text counts as its text, in whatever member', async () => {
  for (const [, way] of [NAMED[0], NAMED[2]].flatMap((one) => (one === undefined ? [] : [one]))) {
    const [file] = Object.values(way.files);
    const part = JSON.parse(JSON.stringify(file?.(DATA)).replace('application/pdf', 'text/csv'));
    expect(await open(way, { entry: { maxInputTokens: 200_000 } }).held([part])).toMatchObject({ media: 0 });
  }
});

test('a search that failed counts as its text', async () => {
  const part = { type: 'web_search_tool_result', content: { type: 'web_search_tool_result_error', error_code: 'a' } };
  for (const [, way] of NAMED.filter(([, { path }]) => path === '/messages'))
    expect((await open(way, {}).held([part])).media).toBe(0);
});

test('rates count media at a usual size: a limit of tokens per minute does not stop every file', async () => {
  const [[, way]] = NAMED as [(typeof NAMED)[number]];
  const { ask, ledger } = open(way, { entry: { maxInputTokens: 1_000_000 } });
  const [file] = Object.values(way.files);
  await ask([file?.(DATA) ?? {}]);
  expect(ledger.asked[0]?.tokens).toBeLessThan(2_000);
});

test('an image of chat completions reserves the maximum of the dialect that it is translated to', async () => {
  const [[, way]] = NAMED as [(typeof NAMED)[number]];
  const { media } = await open({ ...way, provider: 'anthropic' }, {}).held([way.image(DATA)], DATA.length);
  // Each of its objects may grow by forty letters.
  expect(Math.abs(media - 8_000)).toBeLessThan(250);
});
