// Stored responses: only the VirtualKey that stored a response can continue it (decision 0034).
import { describe, expect, test } from 'vitest';
import { message } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, keyValueOf, snapshotOf } from '../../../test/gateway/instance.ts';
import { markedId, response } from '../../../test/gateway/responses.ts';
import { codeOf, stage } from '../../../test/gateway/stage.ts';
import { completion, embedded, MESSAGES, type Script, sentText } from '../../../test/gateway/upstream.ts';
import { WAYS_TO_SPEND } from '../../../test/gateway/ways-to-spend.ts';
import { createRoutes } from '../app.ts';

const OTHER_KEY = keyValueOf('another');
const ROTATED_KEY = keyValueOf('rotated');
const MODELS = ['a', 'b'].map((identifier) => entry('gpt', { identifier, model: identifier }));
const REPLIES: Script = ({ url }) => {
  if (url.includes('/chat/')) return { body: completion('hello') };
  if (url.includes('/messages')) return { body: message('hello') };
  return { body: url.includes('/embeddings') ? embedded(1) : response('hello') };
};

function world(storeResponses: boolean, models = [entry('gpt'), entry('claude', { provider: 'anthropic' })]) {
  const made = stage({
    snapshot: { ...snapshotOf(models), storeResponses },
    script: REPLIES,
    keys: { [KEY]: keyRecord({ limit: '1000' }), [OTHER_KEY]: keyRecord({ limit: '1000', scopeId: 'other-scope' }) },
  });
  return { ...made, ask: (more: object, key = KEY) => made.chat({ ...ASK, ...more }, { path: '/responses', key }) };
}

const ASK = { model: 'gpt', input: 'Say hello.' };
const messageOf = (...content: ReadonlyArray<object>) => ({ messages: [{ role: 'user', content }] });
const item = (...input: ReadonlyArray<object>) => ({ input });
const part = (...content: ReadonlyArray<object>) => item({ role: 'user', content });

/** What continues or reads something that a provider keeps, by the end of the paths where it has a meaning. */
const REFERENCES: Readonly<Record<string, ReadonlyArray<object>>> = {
  '/responses': [
    { previous_response_id: 'resp_1' },
    { previous_response_id: markedId('resp_1') },
    { conversation: 'conv_1' },
    { prompt: { id: 'pmpt_1' } },
    item({ type: 'item_reference', id: 'msg_1' }),
    item({ id: 'msg_1' }),
    item({ type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'a' }] }),
    item({ type: 'image_generation_call', id: 'ig_1' }),
    item({ type: 'message', role: 'assistant', ID: 'msg_1', content: '' }),
    item({ type: 'message', role: 'assistant', ıd: 'msg_1', content: '' }),
    part({ type: 'input_file', file_id: 'file_1' }),
    part({ type: 'input_image', file_id: 'file_1' }),
    part({ type: 'input_image', image_url: 'gs://bucket/picture.png' }),
    item({ type: 'input_file', file_id: 'file_1' }),
    item({ type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'file_1' } }),
    item({ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_id: 'file_1' }] }),
    { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
    { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] },
  ],
  '/chat/completions': [
    messageOf({ type: 'file', file: { file_id: 'file_1' } }),
    messageOf({ type: 'file', file_id: 'file_1' }),
    messageOf({ file: { file_id: 'file_1' } }),
    messageOf({ type: 'image_url', image_url: 'gs://bucket/picture.png' }),
    messageOf({ type: 'image_url', image_url: { url: ' MS://file_1' } }),
    messageOf({ type: 'image_url', image_url: null, uuid: 'picture-1' }),
    messageOf({ type: 'tool_result', content: [{ type: 'file', file: { file_id: 'file_1' } }] }),
    { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] },
    { extra_body: { google: { cached_content: 'cachedContents/1' } } },
    { data_sources: [{ type: 'azure_search' }] },
    { kv_transfer_params: { remote_block_ids: [1] } },
  ],
  '/messages': [
    { container: 'container_1' },
    messageOf({ type: 'document', source: { type: 'file', file_id: 'file_1' } }),
    messageOf({ type: 'image', source: { type: 'file', file_id: 'file_1' } }),
    messageOf({ type: 'container_upload', file_id: 'file_1' }),
    messageOf({ type: 'tool_result', content: [{ type: 'image', source: { type: 'file', file_id: 'file_1' } }] }),
    { system: [{ type: 'document', source: { type: 'file', file_id: 'file_1' } }] },
  ],
  '/embeddings': [{ images: [{ file_id: 'file_1' }] }],
};

/** The marks of those bodies that name a file or speech. */
const FILE = /file_1|gs:|MS:|uuid|audio_1/;

/** Every route that takes a body. A new one without a line above fails here. */
const ROUTES = [...createRoutes(world(false).deps)].flatMap(([path, { method }]) => (method === 'POST' ? [path] : []));
const apiOf = (path: string) =>
  Object.keys(REFERENCES).find((api) => new RegExp(`^(/v1)?${api}(/|$)`).test(path)) ?? '';

describe('if nothing is stored', () => {
  test.each(ROUTES)('%s refuses every reference to stored state of a provider', async (path) => {
    const references = REFERENCES[apiOf(path)] ?? [];
    expect(references).not.toEqual([]);
    for (const reference of references) {
      for (const model of ['gpt', 'claude']) {
        const { chat, fake, ledger } = world(false);
        const body = { input: 'hi', messages: MESSAGES, max_tokens: undefined, ...reference, model };
        const refused = await chat(body, { path });
        const { error } = (await refused.json()) as { error: { code: string } };
        expect([reference, refused.status, error.code]).toEqual([reference, 400, 'invalid_request']);
        expect([fake.requests.length, ledger.asked.length]).toEqual([0, 0]);
      }
    }
  });

  test.each([
    ...['responses/resp_1', 'responses/resp_1/input_items', 'responses/resp_1/cancel', 'responses/compact'],
    ...['chat/completions/chatcmpl-1', 'chat/completions/chatcmpl-1/messages', 'conversations', 'conversations/conv_1'],
    ...[
      'files',
      'files/file_1/content',
      'batches',
      'messages/batches',
      'vector_stores',
      'containers/c/files/f/content',
    ],
    ...['assistants', 'threads/t/messages', 'uploads', 'evals', 'fine_tuning/jobs', 'realtime', 'skills'],
  ])('no route reads, lists or changes stored state of a provider: %s', async (path) => {
    const { app, fake } = world(true);
    for (const prefix of ['/', '/v1/'])
      for (const method of ['GET', 'POST', 'DELETE']) {
        const headers = { authorization: `Bearer ${KEY}` };
        expect((await app.request(prefix + path, { method, headers })).status).toBe(404);
      }
    expect(fake.requests).toEqual([]);
  });

  test.each(WAYS_TO_SPEND.filter(({ path }) => !path.includes('embeddings')))(
    'providers get that, whatever the client sends: $path to $provider',
    async ({ path, provider, body }) => {
      const isOpenai = provider === 'openai';
      for (const more of [
        {},
        { store: null },
        { Store: true },
        ...(path.includes('responses') ? [] : [{ store: true }]),
      ]) {
        const { chat, fake } = world(false, [entry('gpt', { provider })]);
        expect((await chat({ ...body, ...more }, { path })).status).toBe(200);
        const sent = fake.sent();
        if (isOpenai) expect(sent.store).toBe(false);
        expect(
          Object.entries(sent).filter(([name, value]) => name.toLowerCase() === 'store' && value !== false),
        ).toEqual(isOpenai || !path.includes('/messages') ? [] : Object.entries(more));
      }
    },
  );

  test('a request to store is refused, and names the field that allows it', async () => {
    const refused = await world(false).ask({ store: true });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { param: 'store', message: expect.stringContaining('storeResponses') } },
    ]);
  });

  test('providers that may not have `store` do not get it if the client has not sent it', async () => {
    const { chat, fake } = world(false, [entry('gpt', { provider: 'mistral' })]);
    await chat({ model: 'gpt', messages: MESSAGES });
    expect(fake.sent()).not.toHaveProperty('store');
    await chat({ model: 'gpt', messages: MESSAGES, store: true });
    expect(fake.sent(1)).toMatchObject({ store: false });
  });

  test('a count of tokens has no `store`, because providers refuse it there', async () => {
    const { chat, fake } = world(false);
    await chat(ASK, { path: '/responses/input_tokens' });
    expect(fake.sent()).not.toHaveProperty('store');
  });

  test('whole items pass unchanged with their ids, and so do addresses on the web', async () => {
    const input = [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'a', annotations: [{ file_id: 'f' }] }],
      },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' },
      { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'now', arguments: '' },
      { type: 'function_call_output', call_id: 'c', output: '{"file_id":"file_1"}' },
      { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: 'q' } },
      { role: 'user', content: [{ type: 'input_image', image_url: 'https://example.com/1.png' }] },
    ];
    const { ask, fake } = world(false);
    expect((await ask({ input })).status).toBe(200);
    expect(fake.sent().input).toEqual(input);
    const { chat, fake: anthropic } = world(false);
    const messages = [
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'n', input: { file_id: 'f' } }] },
    ];
    expect((await chat({ model: 'claude', max_tokens: 9, messages }, { path: '/messages' })).status).toBe(200);
    expect(anthropic.sent().messages).toEqual(messages);
  });
});

describe('if providers may store responses', () => {
  const idOf = async (reply: Response) => (await reply.json()) as { id: string; output: Array<{ id: string }> };

  test.each([
    ['one entry', [entry('gpt')]],
    ['several entries', MODELS],
  ])('only the VirtualKey of a response can continue it: a model with %s', async (_, models) => {
    const { ask, fake } = world(true, models);
    const { id, output } = await idOf(await ask({ store: true }));
    expect(fake.sent()).toMatchObject({ store: true });
    const item = output[0]?.id;
    const asked = [
      { previous_response_id: id },
      { input: [{ type: 'item_reference', id: item }] },
      { input: [{ type: 'reasoning', id: item }] },
    ];
    for (const more of asked) {
      expect((await ask(more)).status).toBe(200);
      expect(sentText(fake.requests.at(-1))).not.toContain('.gw');
      expect(fake.sent(fake.requests.length - 1).model).toBe(fake.sent().model);
      const before = fake.requests.length;
      expect(await codeOf(await ask(more, OTHER_KEY))).toEqual([400, 'invalid_request']);
      expect(fake.requests).toHaveLength(before);
    }
  });

  test('a new key value continues them; the `store` of the client passes', async () => {
    const made = world(true);
    const { id } = await idOf(await made.ask({}));
    expect(made.fake.sent()).not.toHaveProperty('store');
    Object.assign(made.keys, { [ROTATED_KEY]: made.keys[KEY] });
    expect((await made.ask({ previous_response_id: id, store: false }, ROTATED_KEY)).status).toBe(200);
    expect(made.fake.sent(1)).toMatchObject({ previous_response_id: 'resp_1', store: false });
  });

  const own = markedId('resp_1');
  const mac = own.slice(-32);
  test.each<[string, string]>([
    ['none', 'resp_1'],
    ['a mark of before', 'resp_1.gw0123abcd'],
    ["another VirtualKey's", markedId('resp_1', 'gpt', 'other-scope')],
    ["another response's", `resp_2${own.slice('resp_1'.length)}`],
    ["another entry's", `resp_1.gw00000000${mac}`],
    ['part of it', own.slice(0, -1)],
    ['another last digit', own.slice(0, -1) + (own.endsWith('0') ? '1' : '0')],
    ['one in capitals', own.toUpperCase().replace('RESP', 'resp').replace('GW', 'gw')],
    ['two', own + own.slice('resp_1'.length)],
  ])('an id whose mark is %s is refused, in each member', async (_, id) => {
    const ways = [
      { previous_response_id: id },
      item({ type: 'item_reference', id }),
      item({ id, type: 'reasoning', summary: [] }),
    ];
    for (const path of ['/responses', '/v1/responses/input_tokens']) {
      for (const way of ways) {
        const { chat, fake } = world(true);
        const refused = await chat({ ...ASK, ...way }, { path });
        expect([refused.status, fake.requests.length]).toEqual([400, 0]);
        expect(JSON.stringify(await refused.json())).not.toContain(mac);
      }
    }
  });

  test.each([
    '{"type":"item_reference","id":"msg_2","id":"OWN"}',
    '{"type":"item_reference","\\u0069d":"msg_2","id":"OWN"}',
    '{"type":"item_reference","id":"OWN","ID":"msg_2"}',
    '{"type":"item_reference","id":"OWN","\\u0049D":"msg_2"}',
    '{"type":"message","id":"msg_2","content":"a","type":"item_reference"}',
  ])('an item that some parsers read differently is refused: %s', async (text) => {
    const { chat, fake } = world(true);
    const body = `{"model":"gpt","input":[${text.replace('OWN', markedId('msg_1'))}]}`;
    expect(await codeOf(await chat(body, { path: '/responses' }))).toEqual([400, 'invalid_request']);
    expect(fake.requests).toEqual([]);
  });

  test('an own id does not admit a foreign id beside it, or an item that a provider completes', async () => {
    const theirs = markedId('msg_2', 'gpt', 'other-scope');
    for (const more of [
      { previous_response_id: own, input: [{ type: 'item_reference', id: theirs }] },
      item({ type: 'item_reference', id: markedId('msg_1') }, { type: 'item_reference', id: 'msg_2' }),
      item({ type: 'message', role: 'assistant', id: theirs, content: 'mine' }),
      item({ type: 'web_search_call', id: 'ws_1', action: { type: 'search' } }),
      { previous_response_id: own, conversation: 'conv_1' },
    ]) {
      const { ask, fake } = world(true);
      expect([more, await codeOf(await ask(more))]).toEqual([more, [400, 'invalid_request']]);
      expect(fake.requests).toEqual([]);
    }
  });

  test.each(ROUTES)(
    '%s refuses files of the account and speech of earlier answers: they have no mark',
    async (path) => {
      const references = (REFERENCES[apiOf(path)] ?? []).filter((reference) => FILE.test(JSON.stringify(reference)));
      expect(references).not.toEqual([]);
      for (const reference of references) {
        const { chat, fake, ledger } = world(true);
        const refused = await chat({ input: 'hi', messages: MESSAGES, ...reference, model: 'gpt' }, { path });
        const { error } = (await refused.json()) as { error: { code: string } };
        expect([reference, refused.status, error.code]).toEqual([reference, 400, 'invalid_request']);
        expect([fake.requests.length, ledger.asked.length]).toEqual([0, 0]);
      }
    },
  );

  test('secrets of VirtualKeys stay out of replies and log lines', async () => {
    const { ask, lines } = world(true);
    expect(await (await ask({})).text()).not.toContain('secret of');
    expect(JSON.stringify(lines)).not.toContain('secret of');
  });
});
