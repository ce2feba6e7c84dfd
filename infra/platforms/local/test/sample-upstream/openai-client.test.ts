// Real servers, real sockets, the unmodified OpenAI client: what a user has, with only the ledger and the database left
// out.

import OpenAI, { APIError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KEY, keyValueOf } from '../../../../../test/gateway/instance.ts';
import { MODELS, openGateway } from './gateway.fixture.ts';

/** A gateway in front of a sample upstream of its own, and the client. */
async function open(dialect: Dialect) {
  const opened = await openGateway(dialect);
  return { ...opened, client: new OpenAI({ apiKey: KEY, baseURL: opened.url, maxRetries: 0 }) };
}

interface Dialect {
  readonly provider: string;
  readonly path: string;
  /** How many answers a request for two gets. */
  readonly answers: number;
}

const DIALECTS: ReadonlyArray<Dialect> = [
  { provider: 'openai', path: '/v1', answers: 2 },
  { provider: 'anthropic', path: '', answers: 1 },
];

const SEVEN_WORDS = 'This is the sample upstream. You said:';
const messages = [{ role: 'user', content: 'one two three' }] as const;

async function refusal(asked: Promise<unknown>): Promise<APIError> {
  const error: unknown = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof APIError) return error;
  throw new Error('not refused');
}

describe.each(DIALECTS)('the OpenAI client, in front of a provider that speaks like $provider,', (dialect) => {
  let stage: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    stage = await open(dialect);
  });
  afterAll(() => stage.close());
  const settledNow = () => stage.ledger.settled.length;

  test('gets a reply, and what the upstream reported is what was booked', async () => {
    const before = settledNow();
    const reply = await stage.client.chat.completions.create({ model: 'echo', messages: [...messages] });
    expect(reply.choices[0]?.message.content).toBe('one two three');
    const { promptTokens, completionTokens } = stage.sample.stats.read().models.echo ?? {};
    expect(stage.ledger.settled.slice(before)).toMatchObject([
      { tokens: { input: promptTokens, output: completionTokens }, estimated: false, identifier: 'echo' },
    ]);
  });

  test('streams, with usage when it asks for it and without when it does not', async () => {
    for (const include_usage of [true, false]) {
      const before = settledNow();
      const stream = await stage.client.chat.completions.create({
        model: 'sample-small',
        messages: [...messages],
        stream: true,
        stream_options: { include_usage },
      });
      let text = '';
      let usage = 0;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? '';
        usage += chunk.usage?.completion_tokens ?? 0;
      }
      expect(text).toBe('This is the sample upstream. You said: one two three');
      expect(usage).toBe(include_usage ? 10 : 0);
      expect(stage.ledger.settled.slice(before)).toMatchObject([{ tokens: { output: 10 }, estimated: false }]);
    }
  });

  test('gets replies that the upstream compressed, whole and streamed', async () => {
    const before = settledNow();
    const body = { model: 'compressed', messages: [...messages], max_tokens: 7 };
    const reply = await stage.client.chat.completions.create(body);
    expect(reply.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: SEVEN_WORDS } });
    let text = '';
    for await (const chunk of await stage.client.chat.completions.create({ ...body, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe(SEVEN_WORDS);
    const counted = { estimated: false, tokens: { output: 7 } };
    expect(stage.ledger.settled.slice(before)).toMatchObject([counted, counted]);
  });

  test('that aborts a stream stops the upstream, and is charged for what it got', async () => {
    const before = settledNow();
    const stream = await stage.client.chat.completions.create({
      model: 'chatterbox',
      messages: [...messages],
      stream: true,
    });
    let chunks = 0;
    for await (const _ of stream) {
      chunks += 1;
      if (chunks === 10) stream.controller.abort();
    }
    await expect.poll(() => stage.sample.stats.read().models.chatterbox?.abandoned).toBe(1);
    await expect.poll(settledNow).toBe(before + 1);
    expect(stage.ledger.settled.at(-1)).toMatchObject({ estimated: true });
    expect(stage.ledger.settled.at(-1)?.tokens.output).toBeGreaterThanOrEqual(8);
    expect(stage.ledger.liveReservations()).toBe(0);
  });

  test('that aborts before the first byte stops the upstream and is charged for the prompt', async () => {
    const before = settledNow();
    const abort = new AbortController();
    const asked = stage.client.chat.completions.create(
      { model: 'hang', messages: [...messages], stream: true },
      { signal: abort.signal },
    );
    await expect.poll(() => stage.sample.stats.read().models.hang?.requests).toBe(1);
    abort.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(() => stage.sample.stats.read().models.hang?.abandoned).toBe(1);
    await expect.poll(settledNow).toBe(before + 1);
    expect(stage.ledger.settled.at(-1)).toMatchObject({ estimated: true, tokens: { output: 0 } });
  });

  test('that leaves a plain request is charged in full: the upstream is read to its end', async () => {
    const before = settledNow();
    const abort = new AbortController();
    const asked = stage.client.chat.completions.create(
      { model: 'echo', messages: [...messages], n: 2 },
      { signal: abort.signal },
    );
    await expect.poll(() => stage.ledger.liveReservations() + settledNow() - before).toBe(1);
    abort.abort();
    await asked.catch(() => {});
    await expect.poll(settledNow).toBe(before + 1);
    expect(stage.ledger.settled.at(-1)).toMatchObject({ estimated: false, tokens: { output: 3 * dialect.answers } });
  });

  test.each([
    ['error-500', 502, 'upstream_error'],
    ['rate-limited', 429, 'upstream_rate_limited'],
    ['overloaded', 502, 'upstream_error'],
    ['refuse-400', 400, 'upstream_refused'],
    ['wrong-key', 502, 'upstream_error'],
  ])('meets %s as %d %s, and is charged nothing', async (model, status, code) => {
    const before = settledNow();
    const error = await refusal(stage.client.chat.completions.create({ model, messages: [...messages] }));
    expect([error.status, error.code]).toEqual([status, code]);
    expect([settledNow() - before, stage.ledger.liveReservations()]).toEqual([0, 0]);
    if (code === 'upstream_rate_limited') expect(error.headers?.get('retry-after')).toBe('7');
    if (code === 'upstream_refused') expect(error.message).toContain('does not like this request');
  });

  test('meets a reply that breaks as 502, asked for once and charged for its prompt and what came', async () => {
    const before = settledNow();
    const error = await refusal(stage.client.chat.completions.create({ model: 'cut', messages: [...messages] }));
    expect([error.status, error.code]).toEqual([502, 'upstream_error']);
    expect([settledNow() - before, stage.ledger.liveReservations()]).toEqual([1, 0]);
    expect(stage.ledger.settled.at(-1)).toMatchObject({ estimated: true, tokens: { output: expect.any(Number) } });
    expect(stage.ledger.settled.at(-1)?.tokens.output).toBeGreaterThan(0);
  });

  test('meets a stream that breaks as an error, after the words that came', async () => {
    const before = settledNow();
    const stream = await stage.client.chat.completions.create({ model: 'cut', messages: [...messages], stream: true });
    let text = '';
    const error = await refusal(
      (async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      })(),
    );
    expect([text, error.code]).toEqual(['This is the sample upstream.', 'upstream_error']);
    expect(stage.ledger.settled.slice(before)).toMatchObject([{ estimated: true }]);
  });

  test('gets embeddings of texts and of tokens, in either encoding, where the provider has them', async () => {
    const before = settledNow();
    const ask = (input: string | string[] | number[][], encoding_format?: 'float') =>
      stage.client.embeddings.create({ model: 'echo', input, ...(encoding_format && { encoding_format }) });
    if (dialect.provider === 'anthropic') {
      const error = await refusal(ask('one'));
      expect([error.status, error.code, settledNow()]).toEqual([404, 'route_not_served', before]);
      return;
    }
    const [encoded, floats] = [await ask(['one two three', 'four']), await ask(['one two three', 'four'], 'float')];
    expect(encoded.data.map(({ embedding }) => embedding)).toEqual(floats.data.map(({ embedding }) => embedding));
    expect(encoded.data[0]?.embedding).toHaveLength(8);
    await ask([[1, 2, 3], [4]]);
    const counted = { estimated: false, tokens: { input: 5, output: 0 } };
    expect(stage.ledger.settled.slice(before)).toMatchObject([counted, counted, { tokens: { input: 4 } }]);
  });

  test('gets responses, whole and streamed, and counts their prompt for nothing, where the provider has them', async () => {
    const before = settledNow();
    const ask = { model: 'sample-small', input: 'one two three', max_output_tokens: 100 };
    if (dialect.provider === 'anthropic') {
      const error = await refusal(stage.client.responses.create(ask));
      expect([error.status, error.code, settledNow()]).toEqual([404, 'route_not_served', before]);
      return;
    }
    const whole = await stage.client.responses.create(ask);
    expect(whole.output_text).toBe('This is the sample upstream. You said: one two three');
    const final = await stage.client.responses.stream({ ...ask, max_output_tokens: 7 }).finalResponse();
    expect(final).toMatchObject({ status: 'incomplete', output_text: SEVEN_WORDS });
    const { input_tokens: counted } = await stage.client.responses.inputTokens.count({
      input: ask.input,
      model: ask.model,
    });
    expect(counted).toBe(whole.usage?.input_tokens);
    const settled = { estimated: false, tokens: { input: counted } };
    expect(stage.ledger.settled.slice(before)).toMatchObject([settled, { ...settled, tokens: { output: 7 } }]);
  });

  test('lists the models and reads its own key', async () => {
    const models: string[] = [];
    for await (const model of stage.client.models.list()) models.push(model.id);
    expect(models).toEqual([...MODELS, 'wrong-key']);
    expect(await stage.client.get('/key')).toMatchObject({ alias: 'billing', maxBudget: '1000', isActive: true });
  });

  test('is told apart from one with another key', async () => {
    const error = await refusal(new OpenAI({ apiKey: keyValueOf('nobody'), baseURL: stage.url }).models.list());
    expect([error.status, error.code]).toEqual([401, 'invalid_api_key']);
  });

  test('is served by the same process after a hundred clients dropped their streams at the same time', async () => {
    const before = settledNow();
    await Promise.all(
      [...Array(100).keys()].map(async () => {
        const stream = await stage.client.chat.completions.create({
          model: 'chatterbox',
          messages: [...messages],
          stream: true,
        });
        for await (const _ of stream) break;
        stream.controller.abort();
      }),
    );
    await expect.poll(settledNow).toBe(before + 100);
    expect(stage.ledger.liveReservations()).toBe(0);
    expect((await stage.client.chat.completions.create({ model: 'echo', messages: [...messages] })).object).toBe(
      'chat.completion',
    );
  });
});
