// Streams that a provider ends with an error: they are not broken, so clients see which error it was.
import { describe, expect, test } from 'vitest';
import { chunkFrame, exceptionFrame, FRAMED } from '../../../test/gateway/aws-event-stream.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { BROKEN_OFF, stage, textOf, WAYS } from '../../../test/gateway/stage.ts';
import { chunk, MESSAGES, type Script, SSE } from '../../../test/gateway/upstream.ts';
import { WAYS_TO_SPEND, type Way } from '../../../test/gateway/ways-to-spend.ts';

const STREAMED = WAYS_TO_SPEND.filter(({ stream }) => stream !== undefined);
/** The credential of the model entry (stage.ts). */
const SECRET = 'value-of-gpt-secret-key';
/** The provider's message, in all its errors here. */
const WORDS = /Say hello|org-17/;

function open({ provider, path, body }: Way, script: Script, room?: number) {
  const snapshot = snapshotOf([entry('gpt', { provider })], {
    cooldown: { failures: 1, within: 1000, duration: 1000 },
  });
  const world = stage({ snapshot, script, room, keys: { [KEY]: keyRecord({ limit: '100' }) } });
  return { ...world, ask: async () => textOf(await world.chat({ ...body, stream: true }, { path })) };
}

const endedBy = (way: Way, type: string): Script => {
  const { begun = [], failed } = way.stream ?? {};
  return () => ({ headers: SSE, body: [...begun, ...(failed === undefined ? [] : [failed(type)])] });
};

const cools = ({ counted }: Pick<ReturnType<typeof open>, 'counted'>) =>
  counted.filter(([name]) => name === 'gateway_operator_cooldowns_total').length;

/** The data of the last event. */
const lastOf = (text: string): unknown => JSON.parse(text.trimEnd().split('data: ').at(-1) ?? '');

describe.each(STREAMED)('a stream of $provider on $path', (way) => {
  test.each(WAYS)(
    'that ends with an error passes its type, not its message, and ends cleanly, over %s',
    async (_, room) => {
      const world = open(way, endedBy(way, 'overloaded_error'), room);
      const text = await world.ask();
      expect(text).toContain('"overloaded_error"');
      expect(text).not.toContain(BROKEN_OFF);
      expect(text).not.toMatch(WORDS);
      expect(text).not.toMatch(/DONE|message_stop|upstream_error/);
      expect(world.ledger.settled).toMatchObject([{ estimated: true }]);
      expect(world.ledger.settled[0]?.tokens.output).toBeGreaterThan(0);
      expect(world.lines.filter(({ message }) => message === 'request')).toMatchObject([
        { level: 'warn', fields: { end: 'failed', status: 200, upstreamCode: 'overloaded_error' } },
      ]);
      expect([world.fake.requests.length, cools(world)]).toEqual([1, 1]);
    },
  );

  test('that ends with an error whose name is a credential writes no credential to the log', async () => {
    const world = open(way, endedBy(way, SECRET));
    expect(await world.ask()).not.toContain(SECRET);
    expect(world.lines.some(({ fields }) => fields?.end === 'failed')).toBe(true);
    expect(JSON.stringify(world.lines)).not.toContain(SECRET);
  });

  test.each(['authentication_error', 'insufficient_quota', 'a text, which may hold anything', 'x'.repeat(65)])(
    'that ends with an error of our account, or one without a name, shows neither: %s',
    async (type) => {
      const text = await open(way, endedBy(way, type)).ask();
      expect(text).not.toContain(type);
      expect(text).not.toMatch(WORDS);
      expect(text).not.toContain(BROKEN_OFF);
      expect(text).toMatch(/"(server_error|api_error)"/);
    },
  );

  test('that ends because of the request is no failure of the entry', async () => {
    const world = open(way, endedBy(way, 'invalid_request_error'));
    expect(await world.ask()).toContain('"invalid_request_error"');
    expect(cools(world)).toBe(0);
  });

  test('whose connection breaks is still broken off', async () => {
    const body = way.stream?.begun ?? [];
    expect(await open(way, () => ({ headers: SSE, body })).ask()).toContain(BROKEN_OFF);
  });
});

test('an error has its type and code in the format of each API', async () => {
  const types: unknown[] = [];
  for (const way of STREAMED.filter(({ path }) => !path.startsWith('/v1'))) {
    types.push([way.provider, lastOf(await open(way, endedBy(way, 'overloaded_error')).ask())]);
  }
  const message = 'The provider ended the stream with an error (overloaded_error).';
  const chat = { error: { message, type: 'overloaded_error', param: null, code: 'overloaded_error' } };
  const messages = { type: 'error', error: { type: 'overloaded_error', message } };
  const error = { code: 'overloaded_error', message };
  expect(types).toMatchObject([
    ['openai', chat],
    ['anthropic', chat],
    ['anthropic', messages],
    ['openai', messages],
    ['openai', { type: 'response.failed', sequence_number: 5, response: { id: 'resp_1', status: 'failed', error } }],
  ]);
});

test('an exception of Bedrock in a stream is an error of Anthropic', async () => {
  const start = { type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 1 } } };
  const body = [chunkFrame(start), exceptionFrame('serviceUnavailableException', 'org-17')];
  const credentials = { apiKey: { secret: 's', secretKey: 'k' }, awsRegion: { secret: 's', secretKey: 'r' } };
  const snapshot = snapshotOf([entry('gpt', { provider: 'bedrock', model: 'claude', credentials })]);
  const deps = { credentials: { read: () => 'eu-west-1' } };
  const { chat } = stage({ snapshot, deps, script: () => ({ headers: FRAMED, body }) });
  const ask = { model: 'gpt', max_tokens: 9, messages: MESSAGES, stream: true };
  const text = await textOf(await chat(ask, { path: '/messages' }));
  expect(lastOf(text)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
  expect(text).not.toContain('org-17');
});

test('a count in the error or after it is the charge', async () => {
  const usage = { prompt_tokens: 7, completion_tokens: 5 };
  const error = { code: 502, message: 'org-17' };
  const counted = `data: ${JSON.stringify({ error, choices: [{ index: 0, delta: {}, finish_reason: 'error' }], usage })}\n\n`;
  const later = [`data: ${JSON.stringify({ error })}\n\n`, `data: ${JSON.stringify({ choices: [], usage })}\n\n`];
  for (const end of [[counted], later, [later.join('')]]) {
    const { chat, ledger } = stage({ script: () => ({ headers: SSE, body: [chunk({ content: 'a' }), ...end] }) });
    expect(await textOf(await chat({ model: 'gpt', messages: MESSAGES, stream: true }))).toContain('"code":"502"');
    expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 7, output: 5 } }]);
  }
});
