import { describe, expect, test } from 'vitest';
import { MAX_COST } from '#core/money/price.ts';
import { entry, KEY, keyValueOf, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { MESSAGES, sentText } from '../../../test/gateway/upstream.ts';
import { MAX_BODY } from '../request/memory-budget.ts';

const encoder = new TextEncoder();
const bodyOf = (members: string) => `{"model":"gpt","messages":[{"role":"user","content":"hi"}]${members}}`;

describe('a body', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', '{"model":"gpt",'],
    ['two objects', '{"model":"gpt","messages":[]}{}'],
    ['an array', '[]'],
    ['a string', '"model"'],
    ['null', 'null'],
    [
      'bytes that are no UTF-8',
      new Uint8Array([...encoder.encode('{"model":"gpt","messages":[],"x":"'), 0xff, 0x22, 0x7d]),
    ],
    ['a byte order mark', '\ufeff{"model":"gpt","messages":[]}'],
    ['no model', '{"messages":[]}'],
    ['an empty model', '{"model":"","messages":[]}'],
    ['a model that is a number', '{"model":1,"messages":[]}'],
    ['no messages', '{"model":"gpt"}'],
    ['messages that are a text', '{"model":"gpt","messages":"hi"}'],
    ['a stream that is a text', bodyOf(',"stream":"true"')],
    ['an n that is a text', bodyOf(',"n":"9"')],
    ['an n of zero', bodyOf(',"n":0')],
    ['more answers than anybody gives', bodyOf(',"n":1025')],
    ['an n beyond counting', bodyOf(',"n":1e300')],
    ['a limit that means no limit to some', bodyOf(',"max_tokens":-1')],
    ['a limit of zero, which is none to some', bodyOf(',"max_tokens":0')],
    ['a limit that is a text', bodyOf(',"max_completion_tokens":"100"')],
    ['stream options that are a list', bodyOf(',"stream_options":[]')],
    ['messages that are texts', '{"model":"gpt","messages":["hi"]}'],
    ['messages that are lists', '{"model":"gpt","messages":[[]]}'],
    ['tools that are numbers', bodyOf(',"tools":[1,1]')],
    ['calls that are numbers', '{"model":"gpt","messages":[{"role":"assistant","tool_calls":[1,1]}]}'],
  ])('of %s is refused with 400 before any provider is called or anything is charged', async (_, body) => {
    const { chat, ledger, fake } = stage();
    const response = await chat(body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', type: 'invalid_request_error' } });
    expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
  });

  test.each(['gzip', 'br', 'zstd', 'gzip, identity'])(
    'in the content-encoding %s is refused as compressed, not as broken JSON',
    async (encoding) => {
      const { app, fake } = stage();
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
      const send = (coding: string) =>
        app.request('/chat/completions', {
          method: 'POST',
          headers: { ...headers, 'content-encoding': coding },
          body: bodyOf(''),
        });
      const response = await send(encoding);
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: object };
      expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('compressed bodies') });
      expect(fake.requests).toEqual([]);
      expect((await send('identity')).status).toBe(200);
    },
  );

  test('is validated after the key', async () => {
    const { chat } = stage();
    expect((await chat('{', { key: keyValueOf('nobody') })).status).toBe(401);
  });

  test('larger than 32 MiB is refused with 413, with or without an announced length', async () => {
    const { app, chat } = stage();
    const large = new Uint8Array(MAX_BODY + 1).fill(0x20);
    expect((await chat(large)).status).toBe(413);
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 1;
        controller.enqueue(new Uint8Array(1024 * 1024));
      },
    });
    const init: RequestInit = {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}` },
      body: endless,
      duplex: 'half',
    };
    expect((await app.request('/chat/completions', init)).status).toBe(413);
    expect(sent).toBeLessThan(40);
    const declared = {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-length': '99999999' },
      body: '{}',
    };
    expect((await app.request('/chat/completions', declared)).status).toBe(413);
  });

  test('may contain anything else: the provider validates it', async () => {
    const { chat, fake } = stage();
    const odd = bodyOf(
      ',"temperature":"hot","tools":null,"stream":null,"n":null,"max_tokens":null,"seed":9007199254740993',
    );
    expect((await chat(odd)).status).toBe(200);
    expect(sentText(fake.requests[0])).toBe(
      `${odd.replace('"gpt"', '"real-gpt"').slice(0, -1)},"store":false,"max_completion_tokens":16384}`,
    );
  });
});

describe('what reaches the provider', () => {
  test('has one model, whatever other spellings the client sends', async () => {
    const { chat, fake } = stage();
    const body =
      '{"model":"other","Model":"dear","mod\\u0065l":"dear","MODEL":"dear","messages":[],"max_to\u212aens":9,"model":"gpt"}';
    expect((await chat(body)).status).toBe(200);
    const sent = sentText(fake.requests[0]);
    expect(sent).toBe('{"messages":[],"model":"real-gpt","store":false,"max_completion_tokens":16384}');
  });

  test('has each deciding member once: the last one, which was validated', async () => {
    const { chat, fake } = stage();
    const body = bodyOf(',"n":50,"max_tokens":100000,"n":1,"max_tokens":7,"logprobs":true,"logprobs":false');
    await chat(body);
    expect(sentText(fake.requests[0])).toBe(
      '{"model":"real-gpt","messages":[{"role":"user","content":"hi"}],"n":1,"max_tokens":7,"logprobs":true,"logprobs":false,"store":false}',
    );
  });

  test('is the body byte for byte, except for members that the gateway sets', async () => {
    const { chat, fake } = stage();
    const body =
      ' {\n "messages" : [ {"role":"user","content":"\\u00e9 é \\ud83d\\ude00"} ] ,"model":"gpt", "max_tokens": 5, "store" :false, "x": [1.0, 1e2, 12345678901234567890] }\r\n';
    await chat(body);
    expect(sentText(fake.requests[0])).toBe(body.replace('"gpt"', '"real-gpt"'));
  });
});

describe('the reservation', () => {
  // 1,000 nano-dollars for a token of input, 2,000 for one of output.
  const reservationOf = async (body: object | string, models = [entry('gpt')]) => {
    const { chat, ledger } = stage({ snapshot: snapshotOf(models) });
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    await chat(text);
    const { amount = 0n, minAmount = 0n } = ledger.asked[0] ?? {};
    return {
      amount,
      minAmount,
      prompt: BigInt(encoder.encode(text).length) * 1_000n,
      identifier: ledger.asked[0]?.identifier,
    };
  };
  const chat = { model: 'gpt', messages: MESSAGES };

  test.each([
    ['the limit of the client', { max_tokens: 100 }, {}, 100n],
    ['the newer name of that limit', { max_completion_tokens: 100 }, {}, 100n],
    ['the larger one of both', { max_completion_tokens: 100, max_tokens: 300 }, {}, 300n],
    ['once for every answer', { max_tokens: 100, n: 3 }, {}, 300n],
    ['what the model can say at most', {}, { maxOutputTokens: 4096 }, 4096n],
    ['16,384 tokens where nobody knows', {}, {}, 16_384n],
    ['a quarter of a small context window', {}, { maxInputTokens: 8192 }, 2048n],
    ['what the model can say at most, whatever the client asks for', { max_tokens: 1e9 }, { maxOutputTokens: 64 }, 64n],
    ['a context window, whatever the client asks for', { max_tokens: 1e9 }, { maxInputTokens: 8192 }, 8192n],
    ['the largest window, whatever the client asks for', { max_tokens: 1e9 }, {}, 1_050_000n],
    ['reasoning, if nobody names a limit', { thinking: { type: 'enabled', budget_tokens: 20_000 } }, {}, 21_025n],
    [
      'a context window, whatever reasoning the client requests',
      { thinking: { type: 'enabled', budget_tokens: 1e12 } },
      { maxInputTokens: 8192 },
      8192n,
    ],
    [
      'the largest window, whatever reasoning the client requests',
      { thinking: { type: 'enabled', budget_tokens: 1e12 } },
      {},
      1_050_000n,
    ],
  ])('covers the prompt at a token a byte, and %s', async (_, body, more, output) => {
    const held = await reservationOf({ ...chat, ...body }, [entry('gpt', more)]);
    expect(held.amount).toBe(held.prompt + output * 2_000n);
    const min = 'thinking' in body ? Math.min(body.thinking.budget_tokens + 1, Number(output)) : 1;
    expect(held.minAmount).toBe(held.prompt + BigInt('n' in body ? body.n : min) * 2_000n);
  });

  test('counts an image as 100,000 tokens, never as the bytes of its base64', async () => {
    const url = `data:image/png;base64,${'A'.repeat(300_000)}`;
    const parts = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url } },
    ];
    const held = await reservationOf({ ...chat, messages: [{ role: 'user', content: parts }], max_tokens: 1 });
    expect(held.amount).toBe(held.prompt - BigInt(url.length) * 1_000n + 100_000n * 1_000n + 2_000n);
  });

  test('counts the text of a part that only has the type of an image', async () => {
    const parts = [{ type: 'image_url', image_url: { url: 'x' }, text: 'long '.repeat(1000) }];
    const held = await reservationOf({ ...chat, messages: [{ role: 'user', content: parts }], max_tokens: 1 });
    expect(held.amount).toBeGreaterThan(held.prompt + 100_000n * 1_000n - 2_000n);
  });

  test.each(['openai', 'anthropic'])('covers letters that a tokenizer of %s splits into many', async (provider) => {
    const letters = { ...chat, messages: [{ role: 'user', content: '\ufdfa'.repeat(1000) }], max_tokens: 1 };
    const { amount } = await reservationOf(letters, [entry('gpt', { provider })]);
    expect(amount).toBeGreaterThan(33_000n * 1_000n);
  });

  test('never counts more input than the model can read', async () => {
    const long = { ...chat, messages: [{ role: 'user', content: 'x'.repeat(10_000) }], max_tokens: 1 };
    expect((await reservationOf(long, [entry('gpt', { maxInputTokens: 500 })])).amount).toBe(502_000n);
  });

  test('with a limit above the window lowers it for the provider, and shows that to the client', async () => {
    const snapshot = snapshotOf([entry('gpt', { maxOutputTokens: 64 })]);
    const world = stage({ snapshot });
    const response = await world.chat({ ...chat, max_tokens: 1e9 });
    expect([response.headers.get('x-gateway-clamped-to'), world.fake.sent()]).toMatchObject(['64', { max_tokens: 64 }]);
  });

  test('is that of the target with the maximum cost', async () => {
    const models = [
      entry('gpt', { identifier: 'cheap', price: { input: '0', output: '0' } }),
      entry('gpt', { identifier: 'dear', price: { input: '1', output: '9', cacheWrite: '2' } }),
    ];
    const held = await reservationOf({ ...chat, max_tokens: 10 }, models);
    expect(held).toMatchObject({ amount: held.prompt * 2n + 90_000n, identifier: 'dear' });
  });

  test('is never more than the maximum of the ledger, whatever the client requests', async () => {
    const { amount, minAmount } = await reservationOf({ ...chat, max_tokens: Number.MAX_SAFE_INTEGER, n: 1024 }, [
      entry('gpt', { price: { input: '1', output: '1000' } }),
    ]);
    expect(amount).toBe(MAX_COST);
    expect(minAmount).toBeLessThan(amount);
  });

  test('of a free model is nothing', async () => {
    const held = await reservationOf(chat, [entry('gpt', { price: { input: '0', output: '0' } })]);
    expect(held).toMatchObject({ amount: 0n, minAmount: 0n });
  });
});

describe('a part that costs more than its bytes', () => {
  const heldFor = async (message: object) => {
    const { chat, ledger } = stage();
    await chat({ model: 'gpt', messages: [message], max_tokens: 1 });
    return ledger.asked[0]?.amount ?? 0n;
  };
  const IMAGE = { type: 'image_url', image_url: { url: 'https://example.com/1.png' } };
  const PART = 100_000n * 1_000n;

  test.each([
    ['an image whose part names no type', { content: [{ image_url: 'https://example.com/1.png' }] }],
    ['an image whose type is no text', { content: [{ type: 1, image_url: { url: 'https://example.com/1.png' } }] }],
  ])('is reserved for: %s', async (_, message) => {
    expect(await heldFor(message)).toBeGreaterThan(PART);
  });

  test('is reserved for once for each image, also inside the result of a tool', async () => {
    const content = [{ type: 'tool_result', content: [IMAGE, IMAGE, IMAGE] }];
    expect(await heldFor({ role: 'user', content })).toBeGreaterThan(4n * PART);
  });

  test('is not the text of a part without a type', async () => {
    expect(await heldFor({ content: [{ text: 'hello' }, { refusal: 'no' }, 'hello', null] })).toBeLessThan(PART);
  });

  test('is not a file of text: that is reserved for byte by byte', async () => {
    const file = (type: string) => ({ file_data: `data:${type};base64,${'QUJD'.repeat(100_000)}` });
    const held = (type: string) => heldFor({ content: [{ type: 'file', file: file(type) }] });
    expect(await held('application/pdf')).toBeLessThan(301_000n * 1_000n);
    for (const type of ['text/plain', 'application/json', 'application/x-yaml', 'application/octet-stream', '']) {
      expect(await held(type)).toBeGreaterThan(400_000n * 1_000n);
    }
  });
});

test('the provider gets the reserved limit of an answer, also if it is the limit of the entry', async () => {
  const { chat, fake } = stage({ snapshot: snapshotOf([entry('gpt', { maxOutputTokens: 64 })]) });
  await chat(bodyOf(''));
  expect(fake.sent()).toMatchObject({ max_completion_tokens: 64 });
});

test('the provider gets the limit of the entry, also if its answers cost nothing', async () => {
  const price = { input: '1', output: '0' };
  const { chat, fake } = stage({ snapshot: snapshotOf([entry('gpt', { maxOutputTokens: 64, price })]) });
  await chat(bodyOf(''));
  expect(fake.sent()).toMatchObject({ max_completion_tokens: 64 });
});

test('the count of a stream cannot be switched off by another spelling', async () => {
  const { chat, fake } = stage();
  await chat(
    bodyOf(
      ',"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false,"includeUsage":false,"other":1}',
    ),
  );
  expect(fake.sent()).toMatchObject({ stream_options: { include_usage: true, other: 1 } });
  expect(Object.keys(fake.sent().stream_options ?? {})).toEqual(['include_usage', 'other']);
});

describe('hostile bodies', () => {
  const deep = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
  test.each([
    ['a hundred thousand brackets', `{"model":"gpt","messages":[{"content":${deep('[', ']', 100_000)}}]}`],
    ['a hundred thousand objects', `{"model":"gpt","messages":[${deep('{"content":[', ']}', 100_000)}]}`],
    [
      'members of Object itself',
      '{"model":"gpt","messages":[],"__proto__":{"n":1000},"constructor":1,"toString":null}',
    ],
    [
      'messages that are no messages',
      '{"model":"gpt","messages":[{},{"content":[null,1,{"type":7},{"type":"image_url","image_url":null}]}]}',
    ],
    ['as many members as may be', `{"model":"gpt","messages":[]${',"a":1'.repeat(998)}}`],
    ['quotes and braces inside strings', '{"x":"\\\\\\"},{\\"model\\":\\"b\\"","messages":[],"model":"gpt"}'],
  ])('are passed on unchanged or refused, and never break the gateway: %s', async (_, body) => {
    const { chat, fake } = stage();
    const response = await chat(body);
    expect([200, 429]).toContain(response.status);
    if (response.status === 200) expect(fake.sent()).toMatchObject({ model: 'real-gpt' });
  });

  test.each([
    ['brackets', deep('[', ']', 600_000)],
    ['objects', `[${'{},'.repeat(600_000)}0]`],
    ['numbers', `[${'0,'.repeat(600_000)}0]`],
    ['values behind a text', `["\\\\\\"",${'0,'.repeat(600_000)}0]`],
  ])('with too many values are refused before any provider is called: %s', async (_, x) => {
    const { chat, fake } = stage();
    const response = await chat(`{"model":"gpt","messages":[],"x":${x}}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request' } });
    expect(fake.requests).toEqual([]);
  });

  test('with one long text are not refused: its commas and braces are no values', async () => {
    const text = ',{[\\"'.repeat(200_000);
    const entries = [entry('gpt', { price: { input: '0', output: '0' } })];
    const { chat, fake } = stage({ snapshot: snapshotOf(entries) });
    const response = await chat(`{"model":"gpt","messages":[{"role":"user","content":"${text}"}]}`);
    expect(response.status).toBe(200);
    expect(fake.requests).toHaveLength(1);
  });
});

test('a request with tools reserves the tokens that providers add for tools', async () => {
  const { chat, ledger } = stage();
  const held = async (tools: string) => {
    await chat(bodyOf(`,"max_tokens":1,"tools":${tools}`));
    return ledger.asked.at(-1)?.amount ?? 0n;
  };
  // A thousand tokens at a dollar a million, and a thousand nano-dollars for each byte more.
  expect((await held('[{}]')) - (await held('[]'))).toBe(1_000_000n + 2n * 1000n);
});
