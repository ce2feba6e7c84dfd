import { describe, expect, test } from 'vitest';
import { MAX_COST } from '#core/money/price.ts';
import { entry, KEY, keyRecord, keyValueOf, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { codeOf, Envelope, stage } from '../../../test/gateway/stage.ts';
import { NOW, settleDown } from '../../../test/gateway/time.ts';
import { completion, MESSAGES } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES };

describe('a chat completion', () => {
  test('reaches the upstream with the real model and the real key, and comes back untouched', async () => {
    const body = `${completion('hello')}\n `;
    const { chat, fake } = stage({
      script: () => ({
        headers: { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'up-1', 'set-cookie': 'a=b' },
        body,
      }),
    });
    const response = await chat(CHAT);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(body);
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'application/json; charset=utf-8',
      'x-gateway-budget-remaining': '0.99998',
      'x-gateway-budget-reset': '2026-12-20T12:00:00.000Z',
      'x-request-id': 'request-1',
      'x-upstream-request-id': 'up-1',
    });
    expect(fake.requests[0]?.url).toBe('https://api.openai.com/v1/chat/completions');
    expect(fake.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer value-of-gpt-secret-key',
      'accept-encoding': 'identity',
    });
    expect(fake.sent()).toMatchObject({ model: 'real-gpt', messages: MESSAGES });
  });

  test('with an absurd price is charged the maximum of the ledger, and not refused', async () => {
    const snapshot = snapshotOf([entry('gpt', { price: { input: '999999999', output: '999999999' } })]);
    const body = completion('hello', { prompt_tokens: 10 ** 9, completion_tokens: 10 ** 9 });
    const keys = { [KEY]: keyRecord({ limit: '9000000' }) };
    const { chat, ledger } = stage({ snapshot, keys, script: () => ({ body }) });
    await chat({ model: 'gpt', messages: MESSAGES });
    expect(ledger.settled).toMatchObject([{ cost: MAX_COST, estimated: false }]);
  });

  test('is charged by its usage, to a nano-dollar', async () => {
    const { chat, ledger } = stage();
    await chat(CHAT);
    expect(ledger.settled).toEqual([
      {
        reservation: 'request-1',
        cost: 20_000n,
        tokens: { input: 10, output: 5, cachedInput: 0, cacheWrite: 0 },
        model: 'gpt',
        identifier: 'gpt',
        estimated: false,
      },
    ]);
    expect(ledger.liveReservations()).toBe(0);
  });

  test('is served under /v1 as well, whatever the case of the scheme and the blanks around the key', async () => {
    const { app } = stage();
    for (const authorization of [`bearer ${KEY}`, `BEARER   ${KEY}  `, `Bearer\t${KEY}`]) {
      const response = await app.request('/v1/chat/completions', {
        method: 'POST',
        headers: { authorization },
        body: JSON.stringify(CHAT),
      });
      expect(response.status).toBe(200);
    }
  });
});

test('a refusal because of the key ends with the blockedMessage of the instance, a refusal because of the request does not', async () => {
  const snapshot = { ...snapshotOf([entry('gpt')]), blockedMessage: 'Ask in #ai-platform.' };
  const { chat, app } = stage({ snapshot, keys: { [KEY]: keyRecord({ blocked: true }) } });
  expect(await messageOf(await chat('{}'))).toMatch(/ Ask in #ai-platform\.$/);
  expect(await messageOf(await app.request('/nowhere'))).not.toContain('#ai-platform');
});

const messageOf = async (response: Response) => Envelope.parse(await response.json()).error.message;

describe('a key', () => {
  test.each([
    ['no header', null],
    ['another scheme', `Basic ${KEY}`],
    ['nothing behind the scheme', 'Bearer '],
    ['two words', `Bearer ${KEY} ${KEY}`],
    ['a key of another form', 'Bearer sk-unknown'],
    ['an unknown key', `Bearer ${keyValueOf('nobody')}`],
    ['a key without the scheme', KEY],
  ])('that is no key value is refused with 401: %s', async (how, authorization) => {
    const { app, ledger, fake, finds } = stage();
    const headers: Record<string, string> = authorization === null ? {} : { authorization };
    const response = await app.request('/chat/completions', { method: 'POST', headers, body: '{"model":' });
    expect(await codeOf(response)).toEqual([401, 'invalid_api_key']);
    expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
    // A mistyped or invented text costs no query.
    expect(finds).toHaveLength(how === 'an unknown key' ? 1 : 0);
  });

  test.each([
    ['expired', keyRecord({ expiresAt: NOW }), 401, 'expired_api_key'],
    ['blocked', keyRecord({ blocked: true }), 403, 'key_blocked'],
    ['whose team is gone', keyRecord({ blocked: true, missingOwnerReason: 'TeamNotFound' }), 403, 'key_blocked'],
    ['of a blocked user', keyRecord({}, [scope('user', { blocked: true })]), 403, 'key_blocked'],
    ['of a blocked team', keyRecord({}, [scope('team', { blocked: true })]), 403, 'key_blocked'],
  ])('that is %s does not work, whatever the body', async (_, record, status, code) => {
    const { chat, get, lines } = stage({ keys: { [KEY]: record } });
    expect(await codeOf(await chat('not json'))).toEqual([status, code]);
    expect(lines[0]?.fields).toMatchObject({ code, alias: record.key.name, key: expect.stringContaining('/') });
    expect(await codeOf(await get('/models'))).toEqual([status, code]);
    expect(await codeOf(await get('/key'))).toEqual([status, code]);
  });
});

test('a request that is refused before its reservation, which no limit counts, reads no spend from the store', async () => {
  const budget = { limit: '1000000000', duration: '30d', alignment: 'Rolling' } as const;
  const keys = { [KEY]: keyRecord({ budget }) };
  const { chat, get, ledger } = stage({ keys });
  let reads = 0;
  Object.assign(ledger, {
    knownSpend: (scopes: ReadonlyArray<unknown>) => scopes.map(() => undefined),
    spend: async () => {
      reads += 1;
      return { ok: true, value: [] };
    },
  });
  expect(await codeOf(await chat('not json'))).toEqual([400, 'invalid_request']);
  expect(reads).toBe(0);
  expect((await get('/models')).status).toBe(200);
  expect(reads).toBe(1);
});

describe('a model', () => {
  const models = snapshotOf([entry('gpt'), entry('other')]);
  test.each([
    ['outside the list of the key', keyRecord({ models: ['other'] }), 'gpt', 403, 'model_access_denied'],
    [
      'outside the list of the key and served by nobody',
      keyRecord({ models: ['other'] }),
      'none',
      403,
      'model_access_denied',
    ],
    [
      'outside the list of the user',
      keyRecord({}, [scope('user', { models: ['other'] })]),
      'gpt',
      403,
      'model_access_denied',
    ],
    [
      'outside the list of a team',
      keyRecord({}, [scope('team', { models: ['other'] })]),
      'gpt',
      403,
      'model_access_denied',
    ],
    ['that nobody serves', keyRecord(), 'none', 404, 'model_not_found'],
    [
      'in the list of the key that the instance has dropped',
      keyRecord({ models: ['gone'] }),
      'gone',
      404,
      'model_not_found',
    ],
    ['that differs in case', keyRecord(), 'GPT', 404, 'model_not_found'],
  ])('%s is refused, and nothing is reserved', async (_, record, model, status, code) => {
    const { chat, ledger } = stage({ snapshot: models, keys: { [KEY]: record } });
    expect(await codeOf(await chat({ ...CHAT, model }))).toEqual([status, code]);
    expect(ledger.asked).toEqual([]);
  });

  test('without a price is refused, never free', async () => {
    const { chat, fake } = stage({ snapshot: snapshotOf([entry('gpt', { price: undefined })]) });
    expect(await codeOf(await chat(CHAT))).toEqual([403, 'model_not_priced']);
    expect(fake.requests).toEqual([]);
  });

  test("is listed once in OpenAI's shape for keys that may use it, without its providers", async () => {
    const snapshot = snapshotOf([entry('gpt'), entry('gpt', { identifier: 'second' }), entry('other'), entry('third')]);
    const record = keyRecord({ models: ['other', 'gpt', 'gone'] }, [scope('team', { models: ['gpt', 'third'] })]);
    const { get } = stage({ snapshot, keys: { [KEY]: record } });
    for (const path of ['/models', '/v1/models']) {
      const response = await get(path);
      expect(await response.json()).toEqual({
        object: 'list',
        data: [
          {
            id: 'gpt',
            object: 'model',
            created: 0,
            owned_by: 'gateway-operator',
            pricing: { unit: 'dollars per million tokens', input: '1', output: '2' },
          },
        ],
      });
    }
  });
});

describe('a request', () => {
  test("has one id in its answer, its log line and the ledger, beside the client's own id", async () => {
    const { app, ledger, lines } = stage();
    const response = await app.request('/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'x-request-id': 'mine-1' },
      body: JSON.stringify({ model: 'gpt', messages: MESSAGES }),
    });
    const id = response.headers.get('x-request-id');
    expect(id).toBe('request-1');
    expect([ledger.asked[0]?.id, ledger.settled[0]?.reservation]).toEqual([id, id]);
    expect(lines[0]?.fields).toMatchObject({ requestId: id, clientRequestId: 'mine-1' });
  });

  test("has our own id; the client's id is only echoed", async () => {
    const { app } = stage();
    const ask = (headers: Record<string, string>) => app.request('/models', { headers });
    const named = await ask({ 'x-request-id': 'mine-1' });
    expect([named.headers.get('x-request-id'), named.headers.get('x-client-request-id')]).toEqual([
      'request-1',
      'mine-1',
    ]);
    const odd = await ask({ 'x-client-request-id': 'ü'.repeat(9) });
    expect(odd.headers.get('x-client-request-id')).toBeNull();
  });
});

describe('the routes', () => {
  test.each([
    ['GET', '/chat/completions', 405, 'method_not_allowed'],
    ['POST', '/models', 405, 'method_not_allowed'],
    ['DELETE', '/v1/key', 405, 'method_not_allowed'],
    ['GET', '/v1/embeddings', 405, 'method_not_allowed'],
    ['POST', '/v1/images/generations', 404, 'not_found'],
    ['GET', '/', 404, 'not_found'],
    ['POST', '/key/generate', 404, 'not_found'],
  ])('%s %s is answered in the same envelope', async (method, path, status, code) => {
    const { app } = stage();
    const response = await app.request(path, { method });
    expect(response.headers.get('x-request-id')).toMatch(/^request-/);
    expect(response.headers.get('allow') !== null).toBe(status === 405);
    expect(await codeOf(response)).toEqual([status, code]);
  });

  test('a gateway without its configuration is alive, not ready, and refuses with 503', async () => {
    const { app, chat } = stage({ snapshot: undefined });
    expect((await app.request('/healthz')).status).toBe(200);
    expect((await app.request('/readyz')).status).toBe(503);
    expect(await codeOf(await chat(CHAT))).toEqual([503, 'no_healthy_target']);
    expect((await stage().app.request('/readyz')).status).toBe(200);
    expect((await stage().app.request('/metrics')).status).toBe(404);
  });

  test('a gateway whose database another version has made is alive, and not ready', async () => {
    const { app } = stage({ deps: { hasVersionMismatch: () => true } });
    expect((await app.request('/healthz')).status).toBe(200);
    const reply = await app.request('/readyz');
    expect([reply.status, await reply.text()]).toEqual([503, expect.stringContaining('another version')]);
  });

  test('our own error is a 500 that shows only the request id of the log line', async () => {
    const { chat, lines } = stage({
      deps: {
        hash: () => {
          throw new Error('secret detail');
        },
      },
    });
    const response = await chat(CHAT);
    expect(await response.clone().text()).not.toContain('secret detail');
    expect(await codeOf(response)).toEqual([500, 'internal_error']);
    const requestId = response.headers.get('x-request-id');
    expect(requestId).toMatch(/./);
    expect(lines.at(-1)).toMatchObject({ level: 'error', fields: { requestId, why: 'secret detail' } });
  });
});

describe('the log', () => {
  test('has the user, and the tags and metadata of the key, for answers and refusals', async () => {
    const words = { tags: ['batch', 'eu'], metadata: { centre: '42' } };
    const user = scope('user', { name: 'alice@example.com', alias: 'Alice' });
    const { chat, get, lines } = stage({ keys: { [KEY]: keyRecord({ ...words, models: ['gpt'] }, [user]) } });
    await (await chat(CHAT)).text();
    await (await chat({ ...CHAT, model: 'other' })).text();
    expect(lines.map(({ fields }) => fields)).toMatchObject([
      { status: 200, user: 'Alice', ...words },
      { status: 403, user: 'Alice', ...words },
    ]);
    expect(await (await get('/key')).json()).toMatchObject({
      scopes: [{ kind: 'key' }, { name: 'alice@example.com', alias: 'Alice' }],
    });
  });

  test('has at most 4 KiB of tags and metadata in each line, and marks a cut', async () => {
    const tags = Array.from({ length: 64 }, (_, at) => `${at} ${'é'.repeat(120)}`);
    const metadata = Object.fromEntries(tags.map((tag, at) => [`name-${at}`, tag]));
    const shownBy = async (words: object) => {
      const { chat, lines } = stage({ keys: { [KEY]: keyRecord(words) } });
      await (await chat({ ...CHAT, model: 'other' })).text();
      return lines.at(-1)?.fields ?? {};
    };
    const cut = await shownBy({ tags, metadata });
    expect([cut.tags, cut.metadata, cut.labelsCut]).toEqual([tags.slice(0, 16), {}, true]);
    expect(Buffer.byteLength(JSON.stringify(cut))).toBeLessThan(5 * 1024);
    const whole = await shownBy({ tags: tags.slice(0, 3), metadata: { centre: '42' } });
    expect([whole.tags, whole.metadata, whole.labelsCut]).toEqual([tags.slice(0, 3), { centre: '42' }, undefined]);
  });

  test("has one line for a request, at its end, without prompt, key value or the upstream's message", async () => {
    const { chat, lines, clock } = stage({
      script: (_, call) =>
        call === 1
          ? { status: 500, body: '{"error":{"message":"you said: Say hello.","code":"boom"}}' }
          : { body: completion('a reply') },
    });
    const response = chat(CHAT);
    await settleDown();
    await clock.pass(100);
    await response;
    expect(lines).toHaveLength(1);
    expect(lines[0]).toEqual({
      level: 'info',
      message: 'request',
      fields: {
        requestId: 'request-1',
        route: 'chat',
        alias: 'billing',
        key: 'default/billing',
        model: 'gpt',
        stream: false,
        identifier: 'gpt',
        attempts: 2,
        upstreamStatus: 500,
        upstreamCode: 'boom',
        tokens: { input: 10, output: 5, cachedInput: 0, cacheWrite: 0 },
        cost: '0.00002',
        estimated: false,
        status: 200,
        end: 'complete',
        ms: 100,
      },
    });
    expect(JSON.stringify(lines)).not.toMatch(new RegExp(`hello|${KEY}|value-of|a reply`, 'i'));
  });
});

test('a query longer than any provider reads is refused, also on routes that pass no query on', async () => {
  const { app, fake } = stage();
  for (const path of ['/messages', '/v1/messages/count_tokens', '/chat/completions', '/models', '/nothing']) {
    const response = await app.request(`${path}?${'x'.repeat(1_024)}`, { method: 'POST', body: '{}' });
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({
        error: expect.objectContaining({ message: expect.stringContaining('1024 characters') }),
      }),
    ]);
  }
  expect(fake.requests).toEqual([]);
});
