import { describe, expect, test } from 'vitest';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { completion, MESSAGES, SSE, sentText, streamed } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, max_tokens: 5 };
const ok = { body: completion('hello') };
const failing = (status: number, body = '{"error":{"message":"no","code":"nope"}}', headers = {}) => ({
  status,
  body,
  headers,
});
const SECRETS: Readonly<Record<string, string | undefined>> = { missing: undefined, empty: ' \n', evil: 'x.example/y' };

describe('the address of a target', () => {
  test.each([
    ['of a known provider', { provider: 'groq' }, 'https://api.groq.com/openai/v1/chat/completions'],
    ['of NVIDIA', { provider: 'nvidia_nim' }, 'https://integrate.api.nvidia.com/v1/chat/completions'],
    ['whatever the case of its name', { provider: 'Mistral' }, 'https://api.mistral.ai/v1/chat/completions'],
    [
      "of the entry, before the provider's",
      { provider: 'openai', apiBase: 'http://own:8000/v1/' },
      'http://own:8000/v1/chat/completions',
    ],
    [
      'of an unknown provider with an apiBase',
      { provider: 'inhouse', apiBase: 'http://own' },
      'http://own/chat/completions',
    ],
    [
      'of the credentials, before all others',
      { apiBase: 'http://own', credentials: { apiBase: { secret: 'http:/', secretKey: '/vault/v1' } } },
      'http://vault/v1/chat/completions',
    ],
    [
      'with the version that Azure requires',
      {
        provider: 'azure',
        apiBase: 'https://r.openai.azure.com/openai/v1',
        credentials: { apiVersion: { secret: '', secretKey: 'preview' } },
      },
      'https://r.openai.azure.com/openai/v1/chat/completions?api-version=preview',
    ],
    [
      'of Bedrock in the region of its credentials',
      { provider: 'bedrock', credentials: { awsRegion: { secret: 'eu-', secretKey: 'central-1' } } },
      'https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1/chat/completions',
    ],
    [
      'of a project on Vertex AI',
      {
        provider: 'vertex_ai',
        credentials: {
          vertexLocation: { secret: '', secretKey: 'us-east5' },
          vertexProject: { secret: '', secretKey: 'p-1' },
        },
      },
      'https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/endpoints/openapi/chat/completions',
    ],
  ])('is %s', async (_, differences, url) => {
    const { chat, fake } = stage({
      snapshot: snapshotOf([entry('gpt', differences)]),
      deps: { credentials: { read: (secret, name) => `${secret}${name}\n` } },
    });
    expect((await chat(CHAT)).status).toBe(200);
    expect(fake.requests[0]?.url).toBe(url);
  });

  test('has the credentials that the provider needs, or none', async () => {
    const models = (provider: string, credentials: object) =>
      snapshotOf([entry('gpt', { provider, apiBase: 'http://own', credentials: { ...credentials } })]);
    const key = { apiKey: { secret: 's', secretKey: 'k' } };
    const sent = async (snapshot: ReturnType<typeof models>) => {
      const { chat, fake } = stage({ snapshot });
      await chat(CHAT);
      return fake.requests[0]?.headers ?? {};
    };
    expect(await sent(models('azure', key))).toMatchObject({ 'api-key': 'value-of-s-k' });
    expect(await sent(models('azure', key))).not.toHaveProperty('authorization');
    expect(await sent(models('vllm', {}))).not.toHaveProperty('authorization');
    expect(await sent(models('openai', { ...key, organization: { secret: 's', secretKey: 'o' } }))).toMatchObject({
      authorization: 'Bearer value-of-s-k',
      'openai-organization': 'value-of-s-o',
    });
  });

  test.each([
    ['an unknown provider without an apiBase', { provider: 'inhouse' }],
    ['Bedrock without a region', { provider: 'bedrock' }],
    [
      'a region that would lead elsewhere',
      { provider: 'bedrock', credentials: { awsRegion: { secret: 'evil', secretKey: 'x' } } },
    ],
    ['an apiBase that is no address', { apiBase: 'ftp://own' }],
    ['an apiBase with a password in it, which would not be sent', { apiBase: 'http://user:password@own' }],
    ['a credential that is not there', { credentials: { apiKey: { secret: 'missing', secretKey: 'key' } } }],
    ['a credential that is empty', { credentials: { apiKey: { secret: 'empty', secretKey: 'key' } } }],
  ])('cannot be found for %s: 503, and the reservation is given back', async (_, differences) => {
    const { chat, ledger, lines, fake } = stage({
      snapshot: snapshotOf([entry('gpt', differences)]),
      deps: {
        credentials: { read: (secret) => (secret in SECRETS ? SECRETS[secret] : 'x') },
      },
    });
    const response = await chat(CHAT);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: 'no_healthy_target' } });
    expect([ledger.liveReservations(), ledger.released.length, fake.requests.length]).toEqual([0, 1, 0]);
    expect(lines).toMatchObject([{ level: 'error', fields: { skipped: [expect.stringMatching(/^gpt: ./)] } }]);
  });

  test('is logged as missing or as empty, with the Secret and its key', async () => {
    const credentials = (secret: string) => ({ credentials: { apiKey: { secret, secretKey: 'key' } } });
    const { chat, lines } = stage({
      snapshot: snapshotOf([entry('a', credentials('missing')), entry('b', credentials('empty'))]),
      deps: { credentials: { read: (secret) => SECRETS[secret] } },
    });
    await chat({ ...CHAT, model: 'a' });
    await chat({ ...CHAT, model: 'b' });
    expect(lines.map(({ fields }) => fields?.skipped)).toEqual([
      ['a: credential apiKey is missing: missing/key'],
      ['b: credential apiKey is empty: empty/key'],
    ]);
  });

  test('of one entry missing leaves the requests to the others', async () => {
    const snapshot = snapshotOf([entry('gpt', { provider: 'inhouse' }), entry('gpt', { identifier: 'second' })]);
    const { chat, ledger } = stage({ snapshot });
    expect((await chat(CHAT)).status).toBe(200);
    expect(ledger.settled[0]?.identifier).toBe('second');
  });
});

describe('a provider with other names of members', () => {
  test('that forbids stream_options and max_completion_tokens gets neither', async () => {
    const snapshot = snapshotOf([entry('gpt', { provider: 'mistral' })]);
    const { chat, fake } = stage({ snapshot, script: () => ({ headers: SSE, body: streamed(['x']) }) });
    await (
      await chat({ model: 'gpt', messages: MESSAGES, stream: true, stream_options: { include_usage: true } })
    ).text();
    expect(fake.sent()).toEqual({ model: 'real-gpt', messages: MESSAGES, stream: true, max_tokens: 16_384 });
  });

  test.each([
    ['mistral', '1', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['deepseek', '1', { max_completion_tokens: 5, max_tokens: 3 }, { max_tokens: 5 }],
    ['ollama', 'none', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['a server of our own', '1', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['a server of our own', '1', {}, { max_tokens: 16_384 }],
    ['openai', '1', { max_completion_tokens: 5 }, { max_completion_tokens: 5, store: false }],
    ['openai', '1', { max_tokens: 5 }, { max_tokens: 5, store: false }],
  ])(
    'is told the limit by the name that it knows, or it would know of none: %s, with a budget of %s, of %j',
    async (provider, limit, asked, expected) => {
      const snapshot = snapshotOf([entry('gpt', { provider, apiBase: 'http://127.0.0.1:1/v1' })]);
      const { chat, fake } = stage({ snapshot, keys: { [KEY]: keyRecord({ limit }) } });
      expect((await chat({ model: 'gpt', messages: MESSAGES, ...asked })).status).toBe(200);
      expect(fake.sent()).toEqual({ model: 'real-gpt', messages: MESSAGES, ...expected });
    },
  );

  test('gets a lowered limit by that name too', async () => {
    const body = { model: 'gpt', messages: MESSAGES, max_completion_tokens: 1000 };
    const keys = { [KEY]: keyRecord({ limit: ((JSON.stringify(body).length + 2 * 7) / 1_000_000).toFixed(9) }) };
    const { chat, fake } = stage({ snapshot: snapshotOf([entry('gpt', { provider: 'deepseek' })]), keys });
    await chat(body);
    expect(fake.sent()).toEqual({ model: 'real-gpt', messages: MESSAGES, max_tokens: 7 });
  });
});

describe('entries that share a name', () => {
  const three = ['a', 'b', 'c'].map((identifier, index) =>
    entry('gpt', { identifier, model: identifier, weight: [1, 3, 4][index] ?? 0 }),
  );

  test('are chosen in proportion to their weights', async () => {
    const chosen: Record<string, number> = {};
    for (let dice = 0; dice < 256; dice += 1) {
      const { chat, fake } = stage({
        snapshot: snapshotOf(three),
        deps: { random: (count) => new Uint8Array(count).fill(dice) },
      });
      await chat(CHAT);
      const { model } = fake.sent();
      chosen[String(model)] = (chosen[String(model)] ?? 0) + 1;
    }
    expect(chosen).toEqual({ a: 32, b: 96, c: 128 });
  });

  test.each([
    ['500', failing(500)],
    ['429', failing(429)],
    ["401: our key is wrong, not the client's", failing(401)],
    ['404', failing(404)],
    ['a redirect', failing(302, '')],
    ['a page in place of a reply', { body: '<html>' }],
    ['an error in place of a reply', { body: '{"error":{"message":"overloaded","code":503}}' }],
  ])('replace one that answers %s', async (_, reply) => {
    const { chat, fake, ledger } = stage({
      snapshot: snapshotOf(three),
      script: (__, call) => (call === 1 ? reply : ok),
    });
    expect((await chat(CHAT)).status).toBe(200);
    expect(fake.requests.map((request) => JSON.parse(sentText(request)).model)).toEqual(['a', 'b']);
    expect(ledger.settled).toMatchObject([{ identifier: 'b' }]);
  });

  test.each([400, 413, 422])('do not replace a refusal of the request itself: %d', async (status) => {
    const body = '{"error":{"message":"temperature is too high for value-of-gpt-secret-key","param":"temperature"}}';
    const { chat, fake, ledger } = stage({ snapshot: snapshotOf(three), script: () => failing(status, body) });
    const response = await chat(CHAT);
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({
      error: {
        message: 'temperature is too high for …',
        type: 'invalid_request_error',
        param: 'temperature',
        code: 'upstream_refused',
      },
    });
    expect([fake.requests.length, ledger.released.length, ledger.settled.length]).toEqual([1, 1, 0]);
  });

  test('replace a stream that fails before its first event, never after it', async () => {
    const { chat, fake, ledger } = stage({
      snapshot: snapshotOf(three),
      script: (_, call) => {
        if (call === 1)
          return {
            headers: SSE,
            body: [': one moment\n\n', 'event: error\ndata: {"error":{"message":"overloaded"}}\n\n'],
          };
        if (call === 2) return { headers: SSE, body: ['data: {"error":{"message":"overloaded"}}\n\n'] };
        return { headers: SSE, body: streamed(['x']) };
      },
    });
    const response = await chat({ ...CHAT, stream: true });
    expect(await response.text()).toContain('[DONE]');
    expect(fake.requests).toHaveLength(3);
    expect([ledger.asked.length, ledger.settled.length, ledger.liveReservations()]).toEqual([1, 1, 0]);
  });
});

describe('a plain reply', () => {
  test.each([
    ['plain text', []],
    ['words of many bytes', [...new TextEncoder().encode('grüß 😀')]],
    ['a replacement character of its own', [0xef, 0xbf, 0xbd]],
    ['bytes that are no UTF-8', [0xff, 0xc3]],
  ])('with %s in it reaches the client byte for byte', async (_, content) => {
    const [before = '', after = ''] = completion('|').split('|');
    const encoder = new TextEncoder();
    const bytes = new Uint8Array([...encoder.encode(before), ...content, ...encoder.encode(after)]);
    const { chat } = stage({
      script: () => ({
        body: (async function* () {
          yield bytes;
        })(),
      }),
    });
    const response = await chat({ model: 'gpt', messages: MESSAGES });
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  });

  test('without usage is charged an estimate above zero, at most the reservation, and marked', async () => {
    const { chat, ledger } = stage({ script: () => ({ body: completion('four words of reply', null) }) });
    await chat(CHAT);
    expect(ledger.settled).toMatchObject([{ estimated: true }]);
    expect(ledger.settled[0]?.cost).toBeGreaterThan(0n);
    expect(ledger.settled[0]?.cost).toBeLessThanOrEqual(ledger.asked[0]?.amount ?? 0n);
  });

  test('counted as zero is charged an estimate', async () => {
    const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const { chat, ledger } = stage({ script: () => ({ body: completion('a'.repeat(9), zero) }) });
    await chat(CHAT);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 3 } }]);
    expect(ledger.settled[0]?.tokens.input).toBeGreaterThan(5);
  });

  test('whose provider bills more than the reservation is booked in full, and counted in a metric', async () => {
    const { chat, ledger, counted } = stage({
      script: () => ({ body: completion('x', { prompt_tokens: 9, completion_tokens: 99_999 }) }),
    });
    expect((await chat(CHAT)).status).toBe(200);
    expect(ledger.settled[0]?.cost).toBe(9_000n + 99_999n * 2_000n);
    expect(counted.map(([name]) => name)).toContain('gateway_operator_replies_above_reservation_total');
  });

  test('that cannot be booked does not reach the client', async () => {
    const { chat, ledger, lines } = stage();
    ledger.fail('settle');
    const response = await chat(CHAT);
    expect(response.status).toBe(503);
    expect(await response.text()).not.toContain('hello');
    expect(lines[0]).toMatchObject({ level: 'error', fields: { why: 'the disk is full' } });
  });

  test('for a key with a small rest is clamped to that rest, for each answer', async () => {
    const body = { model: 'gpt', messages: MESSAGES, max_tokens: 1000, n: 2 };
    const prompt = JSON.stringify(body).length;
    const keys = { [KEY]: keyRecord({ limit: ((prompt + 2 * 2 * 7) / 1_000_000).toFixed(9) }) };
    const { chat, fake } = stage({ keys });
    const response = await chat(body);
    expect(response.headers.get('x-gateway-clamped-to')).toBe('7');
    expect(fake.sent()).toMatchObject({ max_tokens: 7 });
    expect(fake.sent()).not.toHaveProperty('max_completion_tokens');
  });
});
