import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { codeOf, stage } from '../../../test/gateway/stage.ts';
import { embedded, sentText } from '../../../test/gateway/upstream.ts';
import { runs } from '../../../test/support/runs.ts';

interface Options {
  readonly reply?: string;
  readonly limit?: string;
  readonly provider?: string;
  readonly maxInputTokens?: number;
}

const EMBED = { model: 'gpt', input: 'Say hello.' };

/**
 * A gateway whose provider answers with embeddings; the model has a price of its input only, a thousand nano-dollars a
 * token.
 */
function open({ reply = embedded(10), limit = '1', ...more }: Options = {}) {
  const models = [entry('gpt', { price: { input: '1' }, ...more })];
  const keys = { [KEY]: keyRecord({ limit }) };
  const world = stage({ snapshot: snapshotOf(models, { retries: 0 }), keys, script: () => ({ body: reply }) });
  const embed = (body: unknown) => world.chat(body, { path: '/embeddings' });
  return { ...world, embed };
}

describe('embeddings', () => {
  test('reach the provider byte for byte except the model, and come back unchanged', async () => {
    const { embed, fake } = open();
    const body = ' {"input" : [ "\\u00e9", "b" ],"dimensions":12345678901234567890, "model":"gpt","Input":["c"]}\n';
    const response = await embed(body);
    expect(await response.text()).toBe(embedded(10));
    expect(fake.requests[0]?.url).toBe('https://api.openai.com/v1/embeddings');
    expect(sentText(fake.requests[0])).toBe(body.replace('"gpt"', '"real-gpt"').replace(',"Input":["c"]', ''));
  });

  test('are charged for their input, by its count', async () => {
    const { embed, ledger, lines } = open();
    await embed(EMBED);
    expect(ledger.settled).toMatchObject([
      { cost: 10_000n, estimated: false, tokens: { input: 10, output: 0 }, model: 'gpt' },
    ]);
    expect(lines[0]?.fields).toMatchObject({ route: 'embeddings', status: 200, stream: false });
  });

  test.each([
    ['the total alone', { total_tokens: 7 }, 7, false],
    ['nothing', undefined, 4, true],
    ['zero', { prompt_tokens: 0, total_tokens: 0 }, 4, true],
    ['an answer too, which has no price', { prompt_tokens: 7, completion_tokens: 9, total_tokens: 16 }, 7, false],
  ])('whose usage has %s are charged too', async (_, usage, input, estimated) => {
    const { embed, ledger } = open({ reply: JSON.stringify({ data: [], usage }) });
    await embed(EMBED);
    expect(ledger.settled).toMatchObject([{ cost: BigInt(input) * 1000n, estimated, tokens: { input } }]);
  });

  test.each([
    ['a text: its bytes', 'é'.repeat(10), 20 + 4],
    ['tokens: their number', [1, 100_257, 3], 3 + 4],
    ['texts', ['ab', 'c'], 3 + 8],
    ['lists of tokens', [[1, 2], [3]], 3 + 8],
  ])('reserve for the maximum of their input: of %s', async (_, input, tokens) => {
    const { embed, ledger } = open();
    await embed({ ...EMBED, input });
    expect(ledger.asked).toMatchObject([{ amount: BigInt(tokens) * 1000n, minAmount: BigInt(tokens) * 1000n }]);
  });

  test.each([
    ['a list', { documents: ['é'.repeat(10), 'b'] }, 26 + 2],
    ['a text', { instruction: 'a'.repeat(500) }, 502],
    ['few bytes', { encoding_format: 'base64', dimensions: 256 }, 8 + 3],
  ])('reserve for the bytes of other members too, beyond the window: %s', async (_, more, bytes) => {
    const { embed, ledger } = open({ maxInputTokens: 14 });
    expect((await embed({ ...EMBED, ...more })).status).toBe(200);
    expect(ledger.asked).toMatchObject([{ amount: BigInt(14 + bytes) * 1000n }]);
  });

  test.each(['messages', 'images', 'inputs', 'content', 'contents'])(
    'refuse %s: it may contain media',
    async (name) => {
      const { embed, ledger } = open();
      expect(await codeOf(await embed({ ...EMBED, [name]: [{ url: 'https://a' }] }))).toEqual([400, 'invalid_request']);
      expect(ledger.asked).toEqual([]);
    },
  );

  test('in a batch of 2,048 reserve for the context window of each', async () => {
    const { embed, ledger } = open({ maxInputTokens: 8 });
    await embed({ ...EMBED, input: Array(2048).fill('a long text, longer than the window') });
    expect(ledger.asked[0]?.amount).toBe(2048n * 8n * 1000n);
  });

  test('that the budget does not cover are refused whole, never clamped', async () => {
    const { embed, fake } = open({ limit: '0.00001' });
    expect(await codeOf(await embed({ ...EMBED, input: 'more than ten tokens may be' }))).toEqual([
      429,
      'budget_exceeded',
    ]);
    expect(fake.requests).toEqual([]);
  });

  test.each([
    ['nothing', undefined],
    ['a number', 5],
    ['an object', {}],
    ['an object in a list', [{ type: 'image_url' }]],
    ['an empty list of tokens', [[]]],
  ])('of %s are refused with 400 before any provider is called or anything is charged', async (_, input) => {
    const { embed, ledger } = open();
    expect(await codeOf(await embed({ ...EMBED, input }))).toEqual([400, 'invalid_request']);
    expect(ledger.asked).toEqual([]);
  });

  test('are never refused with anything but 400, whatever their body is', async () => {
    const { embed, ledger } = open({ limit: '1000000' });
    const names = fc.constantFrom('input', 'Input', 'dimensions', 'user', 'stream', 'tools', 'service_tier');
    const body = fc.dictionary(names, fc.jsonValue()).map((members) => ({ ...members, model: 'gpt' }));
    await fc.assert(
      fc.asyncProperty(fc.oneof(body, fc.jsonValue()), async (sent) => {
        const { status } = await embed(sent);
        expect([200, 400]).toContain(status);
        expect(ledger.liveReservations()).toBe(0);
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('a long reply', () => {
  const vectors = (count: number) => Array(count).fill(0.012345);
  const long = (members: object) => JSON.stringify({ object: 'list', ...members });
  const data = [{ object: 'embedding', index: 0, embedding: vectors(20_000) }];
  const usage = { prompt_tokens: 7, total_tokens: 7 };

  test.each([
    ['behind its vectors', long({ data, model: 'real', usage }), 7, false],
    ['before its vectors', `${long({ model: 'real', usage, data })}\n`, 7, false],
    ['nowhere', long({ data, model: 'real' }), 4, true],
    [
      'far from its ends',
      long({ data: [...data, { usage: { prompt_tokens: 1 } }], usage, model: 'x'.repeat(2000) }),
      7,
      false,
    ],
    ['of another object alone', long({ data: [...data, { usage: { prompt_tokens: 1 } }] }), 4, true],
  ])('comes back untouched, and is charged by its count %s', async (_, reply, input, estimated) => {
    const { embed, ledger } = open({ reply });
    expect(await (await embed(EMBED)).text()).toBe(reply);
    expect(ledger.settled).toMatchObject([{ estimated, tokens: { input } }]);
  });

  test('with more numbers than may be parsed comes back too: they are not parsed', async () => {
    const some = { object: 'embedding', embedding: vectors(3072) };
    const reply = long({ data: Array(2000).fill(some), usage });
    const { embed, ledger } = open({ reply });
    expect((await (await embed(EMBED)).arrayBuffer()).byteLength).toBe(reply.length);
    expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 7 } }]);
  });

  test('that is broken is none', async () => {
    const { embed } = open({ reply: long({ data, usage }).slice(0, -1) });
    expect((await embed(EMBED)).status).toBe(502);
  });
});

describe('a model', () => {
  test('with an input price alone is for embeddings only', async () => {
    const { chat, ledger } = open();
    expect(await codeOf(await chat({ model: 'gpt', messages: [] }))).toEqual([403, 'model_not_priced']);
    expect(ledger.asked).toEqual([]);
  });

  test('whose providers all lack the route is refused there, and nothing is sent', async () => {
    const { embed, fake } = open({ provider: 'anthropic' });
    expect(await codeOf(await embed(EMBED))).toEqual([404, 'route_not_served']);
    expect(fake.requests).toEqual([]);
  });

  test('with several entries is served by those that have the route', async () => {
    const models = [
      entry('gpt', { provider: 'anthropic', weight: 1000 }),
      entry('gpt', { identifier: 'second', provider: 'mistral' }),
    ];
    const { chat, fake } = stage({ snapshot: snapshotOf(models), script: () => ({ body: embedded(10) }) });
    expect((await chat(EMBED, { path: '/v1/embeddings' })).status).toBe(200);
    expect(fake.requests.map(({ url }) => url)).toEqual(['https://api.mistral.ai/v1/embeddings']);
  });
});
