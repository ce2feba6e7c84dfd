// Claude on Bedrock and on Vertex AI: each cloud has its own form of Messages, which clients do not see.
import { describe, expect, test } from 'vitest';
import { COUNT, event, message, START, STOP, words } from '../../../test/gateway/anthropic.ts';
import { chunkFrame, exceptionFrame, FRAMED, framed } from '../../../test/gateway/aws-event-stream.ts';
import { entry, KEY, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { addressOf, MESSAGES, type Script, SSE, sentText } from '../../../test/gateway/upstream.ts';

const MODEL = 'eu.anthropic.claude-x-v1:0';
const ASK = { model: 'claude', max_tokens: 100, messages: MESSAGES };
const PLACES: Readonly<Record<string, string>> = {
  awsRegion: 'eu-west-1',
  vertexLocation: 'us-east5',
  vertexProject: 'p-1',
};

function open(provider: string, script: Script = () => ({ body: message('hello') }), model = MODEL) {
  const names = provider.startsWith('bedrock')
    ? ['apiKey', 'awsRegion']
    : ['apiKey', 'vertexLocation', 'vertexProject'];
  const credentials = Object.fromEntries(names.map((name) => [name, { secret: 's', secretKey: name }]));
  const world = stage({
    snapshot: snapshotOf([entry('claude', { provider, model, credentials })], { retries: 0 }),
    script,
    deps: { credentials: { read: (_, name) => PLACES[name] ?? `value-of-${name}` } },
  });
  const ask = (body: string | object, path = '/v1/messages?beta=true') =>
    world.app.request(path, {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a, b' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return { ...world, ask };
}

const BEDROCK = 'https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-x-v1%3A0';
const VERTEX =
  'https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/publishers/anthropic/models';

describe('a message', () => {
  test('to Bedrock has its model in the address, versions in the body, and all else unchanged', async () => {
    const { ask, fake } = open('bedrock');
    const body =
      '{"max_tokens":100,"model":"claude","messages":[{"role":"user","content":"\\u00e9"}],"safeguards":{"a":12345678901234567890},"stream":false}';
    expect(await (await ask(body)).text()).toBe(message('hello'));
    const [sent] = fake.requests;
    expect(sent?.url).toBe(`${BEDROCK}/invoke`);
    expect(sentText(sent)).toBe(
      '{"max_tokens":100,"messages":[{"role":"user","content":"\\u00e9"}],"safeguards":{"a":12345678901234567890},"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["a","b"]}',
    );
    expect(sent?.headers).toMatchObject({ authorization: 'Bearer value-of-apiKey' });
    expect(Object.keys(sent?.headers ?? {}).filter((name) => /^(anthropic|x-api)/.test(name))).toEqual([]);
  });

  test('to Vertex AI keeps its features in a header', async () => {
    const { ask, fake } = open('vertex_ai', undefined, 'claude-x@20260101');
    await ask(ASK);
    const [sent] = fake.requests;
    expect(sent?.url).toBe(`${VERTEX}/claude-x%4020260101:rawPredict`);
    expect(JSON.parse(sentText(sent))).toEqual({ ...ASK, model: undefined, anthropic_version: 'vertex-2023-10-16' });
    expect(sent?.headers).toMatchObject({ authorization: 'Bearer value-of-apiKey', 'anthropic-beta': 'a, b' });
    expect(sent?.headers).not.toHaveProperty('anthropic-version');
  });

  test("to Bedrock's newer endpoint is Anthropic's own", async () => {
    const { ask, fake } = open('bedrock_mantle');
    await ask(ASK);
    expect(addressOf(fake.requests[0])).toBe(
      'https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages?beta=true',
    );
    expect(fake.requests[0]?.headers).toMatchObject({
      'x-api-key': 'value-of-apiKey',
      'anthropic-version': '2023-06-01',
    });
  });

  test('of a client of OpenAI is sent in the same ways', async () => {
    const { chat, fake } = open('bedrock');
    await chat({ model: 'claude', messages: MESSAGES });
    expect(fake.requests[0]?.url).toBe(`${BEDROCK}/invoke`);
    expect(Object.keys(fake.sent())).toEqual(['anthropic_version', 'max_tokens', 'messages']);
  });

  test('of another maker goes to the endpoint for OpenAI, by translation', async () => {
    const { ask, fake } = open('bedrock', () => ({ status: 500 }), 'openai.gpt-oss-120b-1:0');
    await ask(ASK);
    expect(fake.requests[0]?.url).toBe('https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions');
  });
});

describe('a stream', () => {
  const streaming = { ...ASK, stream: true };
  const EVENTS = [
    START,
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...words('a', 'é'),
    COUNT,
    STOP,
  ];

  test.each([1, 9, 100_000])(
    'of Bedrock, in packets of %d bytes, reaches the client as events of Anthropic',
    async (size) => {
      const bytes = framed(EVENTS.join(''));
      const packets = [...Array(Math.ceil(bytes.length / size)).keys()].map((at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      const { ask, fake, ledger } = open('bedrock', () => ({ headers: FRAMED, body: packets }));
      expect(await textOf(await ask(streaming))).toBe(EVENTS.join(''));
      expect(fake.requests[0]?.url).toBe(`${BEDROCK}/invoke-with-response-stream`);
      expect(fake.sent()).not.toHaveProperty('stream');
      expect(ledger.settled).toMatchObject([{ cost: 16_000n, estimated: false }]);
    },
  );

  test('of Bedrock that ends in an exception, or has a wrong checksum, ends with an error and is charged', async () => {
    const begun = [START, ...words('a')].map((text) => framed(text));
    const wrong = Uint8Array.from(chunkFrame({ type: 'ping' }), (byte, at) => (at === 40 ? byte ^ 1 : byte));
    for (const last of [exceptionFrame('throttlingException', 'slow down'), wrong]) {
      const { ask, ledger } = open('bedrock', () => ({ headers: FRAMED, body: [...begun, last] }));
      expect(await textOf(await ask(streaming))).toContain('event: error');
      expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { input: 10, output: 1 } }]);
    }
  });

  test('of Bedrock that begins with an exception is a refusal', async () => {
    const { ask, ledger } = open('bedrock', () => ({
      headers: FRAMED,
      body: [exceptionFrame('throttlingException', 'x')],
    }));
    expect((await ask(streaming)).status).toBe(429);
    expect(ledger.liveReservations()).toBe(0);
  });

  test('of Vertex AI passes as it is', async () => {
    const { ask, fake } = open('vertex_ai', () => ({ headers: SSE, body: EVENTS }), 'claude-x');
    expect(await textOf(await ask(streaming))).toBe(EVENTS.join(''));
    expect(fake.requests[0]?.url).toBe(`${VERTEX}/claude-x:streamRawPredict`);
    expect(fake.sent()).toMatchObject({ stream: true });
  });
});

test("a cloud's own refusal has its reason in the format of Anthropic", async () => {
  const { ask } = open('bedrock', () => ({
    status: 400,
    body: '{"message":"The provided model identifier is invalid."}',
  }));
  const response = await ask(ASK);
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { type: 'error', error: { type: 'invalid_request_error', message: 'The provided model identifier is invalid.' } },
  ]);
});

test('counts are estimated there', async () => {
  const { ask, fake } = open('bedrock');
  const response = await ask(ASK, '/v1/messages/count_tokens');
  expect([response.status, response.headers.get('x-gateway-estimated'), fake.requests.length]).toEqual([
    200,
    'true',
    0,
  ]);
});
