// The unmodified Anthropic client over real sockets: messages, streams, counts, models and errors.
import Anthropic, { APIError, AuthenticationError, RateLimitError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KEY, keyValueOf } from '../../../../../test/gateway/instance.ts';
import { openGateway } from './gateway.fixture.ts';

let stage: Awaited<ReturnType<typeof openGateway>>;
let client: Anthropic;
beforeAll(async () => {
  stage = await openGateway({ provider: 'anthropic', path: '' });
  client = new Anthropic({ apiKey: KEY, baseURL: stage.url, maxRetries: 0 });
});
afterAll(() => stage.close());

const messages = [{ role: 'user' as const, content: 'one two three' }];
const ASK = { model: 'echo', max_tokens: 100, messages };

async function refusal(asked: Promise<unknown>): Promise<APIError> {
  const error: unknown = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof APIError) return error;
  throw new Error('not refused');
}

test('gets a message, and the count of the upstream is booked', async () => {
  const before = stage.ledger.settled.length;
  const message = await client.messages.create(ASK);
  expect(message.content).toMatchObject([{ type: 'text', text: 'one two three' }]);
  const { input_tokens: input, output_tokens: output } = message.usage;
  expect(stage.ledger.settled.slice(before)).toMatchObject([{ tokens: { input, output }, estimated: false }]);
});

test('streams a message to its end', async () => {
  const before = stage.ledger.settled.length;
  const stream = client.messages.stream({ ...ASK, model: 'sample-small' });
  const final = await stream.finalMessage();
  expect(final).toMatchObject({ stop_reason: 'end_turn', usage: { output_tokens: 10 } });
  expect(await stream.finalText()).toBe('This is the sample upstream. You said: one two three');
  expect(stage.ledger.settled.slice(before)).toMatchObject([{ tokens: { output: 10 }, estimated: false }]);
});

test('that aborts a stream stops the upstream, and is charged for what it got', async () => {
  const before = stage.ledger.settled.length;
  const stream = client.messages.stream({ ...ASK, model: 'chatterbox', max_tokens: 3000 });
  let texts = 0;
  stream.on('text', () => {
    texts += 1;
    if (texts === 10) stream.abort();
  });
  await stream.done().catch(() => {});
  await expect.poll(() => stage.ledger.settled.length).toBe(before + 1);
  expect(stage.ledger.settled.at(-1)?.tokens.output).toBeGreaterThanOrEqual(8);
  await expect.poll(() => stage.sample.stats.read().models.chatterbox?.abandoned).toBe(1);
});

test('meets a stream that breaks as an error, never as a message', async () => {
  const error = await refusal(client.messages.stream({ ...ASK, model: 'cut' }).finalMessage());
  expect(error.message).toContain('The provider failed to answer');
});

test('counts tokens for nothing', async () => {
  const before = stage.ledger.settled.length;
  const { input_tokens: counted } = await client.messages.countTokens({ model: 'echo', messages });
  const { usage } = await client.messages.create(ASK);
  expect(counted).toBe(usage.input_tokens);
  expect(stage.ledger.settled).toHaveLength(before + 1);
});

test('lists the models, and finds one', async () => {
  const ids: string[] = [];
  for await (const { id } of client.models.list({ limit: 5 })) ids.push(id);
  expect(ids).toContain('echo');
  expect(await client.models.retrieve('echo')).toMatchObject({ type: 'model', id: 'echo', display_name: 'echo' });
});

test('is told what it did wrong in its own words', async () => {
  const refused = await refusal(client.messages.create({ ...ASK, model: 'refuse-400' }));
  expect([refused.status, refused.type]).toEqual([400, 'invalid_request_error']);
  expect(refused.message).toContain('does not like this request');
  const other = new Anthropic({ apiKey: keyValueOf('nobody'), baseURL: stage.url });
  expect(await refusal(other.messages.create(ASK))).toBeInstanceOf(AuthenticationError);
  const limited = await refusal(client.messages.create({ ...ASK, model: 'rate-limited' }));
  expect(limited).toBeInstanceOf(RateLimitError);
  expect(limited.headers?.get('retry-after')).toBe('7');
});

test('whose budget is spent asks once, however often it would retry', async () => {
  stage.ledger.spendNow('key-scope', '1000');
  const asked = stage.lines.length;
  const patient = new Anthropic({ authToken: KEY, baseURL: stage.url, maxRetries: 5 });
  const spent = await refusal(patient.messages.create(ASK));
  expect([spent.status, spent.type]).toEqual([429, 'billing_error']);
  expect(spent.message).toContain('is exceeded: 1000 dollars per 30d');
  expect(stage.lines.length).toBe(asked + 1);
});
