// Messages translated for providers of OpenAI's dialect: requests, replies, and hostile input of clients and providers.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concat } from '#core/json/bytes.ts';
import { sizeOfJson } from '#core/json/json-limits.ts';
import { runs } from '../../../../../test/support/runs.ts';
import { bytesToTranslate } from '../../../request/memory-budget.ts';
import { openai, toChatBody } from '../../../wire/messages/openai.ts';
import { toMessage } from '../../../wire/messages/openai-reply.ts';
import { createReader } from '../../../wire/messages/openai-stream.ts';
import { hostile } from '../hostile.fixture.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const provider = { outputLimit: 'max_completion_tokens', streamOptions: true } as const;
const bodyOf = (request: object, decided: object = {}) =>
  toChatBody(request, { model: 'real', maxTokens: 9, stream: false, store: false, provider, ...decided });
const written = (request: object, decided: object = {}) => {
  const body = bodyOf(request, decided);
  return body.ok ? JSON.parse(JSON.stringify(body.value)) : body.failure;
};
const messagesOf = (...messages: object[]) => written({ messages }).messages;
const base64 = { type: 'base64', media_type: 'image/png', data: 'AA==' };

/** The bytes of a call beside its translated messages: the model, the limit, what a stream reports. */
const FRAME = 300;
const LETTERS = ['"', '\\', '\n', '\u0001', 'a', 'é', '😀'];
const texts = fc
  .tuple(fc.string({ unit: fc.constantFrom(...LETTERS), maxLength: 10 }), fc.integer({ min: 1, max: 200 }))
  .map(([text, times]) => text.repeat(times));
const inputs = fc.object({ key: texts, values: [texts, fc.integer(), fc.boolean()], maxDepth: 3 });

test('the memory for a translation is never less than the translated body, also if that doubles quotes and backslashes', () => {
  fc.assert(
    fc.property(fc.array(inputs, { minLength: 1, maxLength: 5 }), (all) => {
      const content = all.map((input, index) => ({ type: 'tool_use', id: `call_${index}`, name: 'tool', input }));
      const request = { messages: [{ role: 'assistant', content }] };
      const bytes = encoder.encode(JSON.stringify(request));
      const translated = encoder.encode(JSON.stringify(written(request)));
      expect(translated.length).toBeLessThanOrEqual(bytesToTranslate(bytes, sizeOfJson(bytes)) + FRAME);
    }),
    { numRuns: runs(200) },
  );
});

describe('a request', () => {
  test.each([
    ['a'.repeat(64), 'a'.repeat(64), {}],
    ['a'.repeat(65), undefined, {}],
    ['a', undefined, { refusesUser: true }],
    ['', undefined, {}],
    [5, undefined, {}],
  ])('has its user if the provider accepts the name: %s', (user_id, user, differences) => {
    const request = { messages: [], metadata: { user_id } };
    expect(written(request, { provider: { ...provider, ...differences } }).user).toBe(user);
  });

  test('keeps members with a counterpart, with the names of its provider', () => {
    const request = {
      model: 'claude',
      max_tokens: 50,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 4,
      stop_sequences: ['END'],
      thinking: { type: 'adaptive' },
      metadata: { user_id: 'a' },
      service_tier: 'auto',
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } },
        { type: 'text', text: 'Be kind.' },
      ],
      messages: [{ role: 'user', content: 'Hi.' }],
      tools: [
        {
          name: 'weather',
          description: 'Now.',
          input_schema: { type: 'object' },
          cache_control: { type: 'ephemeral' },
        },
        { type: 'custom', name: 'later', defer_loading: true },
        { type: 'tool_search_tool_regex_20251119', name: 'search' },
      ],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    };
    expect(written(request, { stream: true })).toEqual({
      model: 'real',
      max_completion_tokens: 9,
      temperature: 0.5,
      top_p: 0.9,
      stop: ['END'],
      user: 'a',
      messages: [
        { role: 'system', content: 'Be brief.\nBe kind.' },
        { role: 'user', content: 'Hi.' },
      ],
      tools: [
        { type: 'function', function: { name: 'weather', description: 'Now.', parameters: { type: 'object' } } },
        { type: 'function', function: { name: 'later', parameters: { type: 'object', properties: {} } } },
      ],
      tool_choice: 'required',
      parallel_tool_calls: false,
      stream: true,
      stream_options: { include_usage: true },
    });
    const older = { outputLimit: 'max_tokens', streamOptions: false };
    const plain = written({ messages: [] }, { stream: true, provider: older });
    expect(plain).toEqual({ model: 'real', messages: [], max_tokens: 9, stream: true });
  });

  test.each([
    [{ type: 'auto' }, 'auto'],
    [{ type: 'none' }, 'none'],
    [
      { type: 'tool', name: 'a' },
      { type: 'function', function: { name: 'a' } },
    ],
    [undefined, undefined],
  ])('has the tool choice %j as %j', (choice, expected) => {
    expect(written({ messages: [], tools: [{ name: 'a' }], tool_choice: choice }).tool_choice).toEqual(expected);
  });

  test('has calls, their results and images of results in the places of this dialect', () => {
    const turns = messagesOf(
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'a', signature: 's' },
          { type: 'redacted_thinking', data: 'x' },
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'é' } },
          { type: 'tool_use', id: 'toolu_2', name: 'look', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [
              { type: 'text', text: 'a' },
              { type: 'image', source: base64 },
            ],
          },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: 'b', is_error: true },
          { type: 'text', text: 'Go on.' },
        ],
      },
      { role: 'system', content: 'Stay calm.' },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'nothing else' }] },
    );
    expect(turns).toEqual([
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [
          { id: 'toolu_1', type: 'function', function: { name: 'look', arguments: '{"at":"é"}' } },
          { id: 'toolu_2', type: 'function', function: { name: 'look', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'a' },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'b' },
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          { type: 'text', text: 'Go on.' },
        ],
      },
      { role: 'system', content: 'Stay calm.' },
    ]);
  });

  test.each([
    [
      { type: 'image', source: { type: 'url', url: 'https://a/b' } },
      { type: 'image_url', image_url: { url: 'https://a/b' } },
    ],
    [
      { type: 'document', title: 'a.pdf', source: { ...base64, media_type: 'application/pdf' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
    ],
    [
      { type: 'document', source: { type: 'text', data: 'words' } },
      { type: 'text', text: 'words' },
    ],
    [
      { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'w' }] } },
      { type: 'text', text: 'w' },
    ],
  ])('has the block %j as a part', (block, part) => {
    const asked = { type: 'text', text: 'this' };
    expect(messagesOf({ role: 'user', content: [asked, block] })).toEqual([{ role: 'user', content: [asked, part] }]);
  });

  test.each([
    ['messages[0].content[0].type', { messages: [{ role: 'user', content: [{ type: 'container_upload' }] }] }],
    ['messages[0].content[0].type', { messages: [{ role: 'assistant', content: [{ type: 'server_tool_use' }] }] }],
    [
      'messages[0].content[0].source.type',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file' } }] }] },
    ],
    [
      'messages[0].content[0].content[0].type',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', content: [{ type: 'hologram' }] }] }] },
    ],
    ['messages[0].role', { messages: [{ role: 'tool', content: 'a' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: 5 }] }],
    ['tools[1].type', { messages: [], tools: [{ name: 'a' }, { type: 'web_search_20250305', name: 'b' }] }],
    ['system[0].type', { messages: [], system: [{ type: 'image', source: base64 }] }],
  ])('is refused at %s, which has no counterpart: %j', (param, request) => {
    expect(written(request)).toMatchObject({ code: 'invalid_request', param });
  });
});

describe('a reply', () => {
  const replyOf = (message: object, more: object = {}) => {
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 30, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 20 } };
    return toMessage({ id: 'c-1', object: 'chat.completion', model: 'real', choices, usage, ...more });
  };

  test('is a message with its text, its calls and its counts; reasoning is left out', () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } };
    const reply = replyOf({ content: 'Hi.', reasoning_content: 'hm', tool_calls: [call] });
    expect(JSON.parse(`${reply?.body}`)).toEqual({
      id: 'c-1',
      type: 'message',
      role: 'assistant',
      model: 'real',
      stop_reason: 'tool_use',
      stop_sequence: null,
      content: [
        { type: 'text', text: 'Hi.' },
        { type: 'tool_use', id: 'call_1', name: 'look', input: { at: 1 } },
      ],
      usage: { input_tokens: 10, cache_read_input_tokens: 20, cache_creation_input_tokens: 0, output_tokens: 5 },
    });
    expect(reply?.usage).toMatchObject({ input: 30, cachedInput: 20, output: 5 });
    expect(reply?.size()).toMatchObject({ outputBytes: 'Hi.hmlook{"at":1}'.length });
  });

  test.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['tool_calls', 'tool_use'],
    ['content_filter', 'refusal'],
    ['novelty', 'end_turn'],
    [null, 'end_turn'],
  ])('that ended with %s ends with %s', (finish_reason, stop_reason) => {
    const reply = replyOf({}, { choices: [{ index: 0, message: { content: 'a' }, finish_reason }] });
    expect(JSON.parse(`${reply?.body}`)).toMatchObject({ stop_reason });
  });

  test('that is no completion, or has tool calls of more than 100,000 values, is no reply', () => {
    expect(toMessage({ error: { message: 'No.' } })).toBeUndefined();
    const call = { function: { name: 'f', arguments: `{"a":[${'1,'.repeat(100_000)}1]}` } };
    expect(replyOf({ tool_calls: [call] })).toBeUndefined();
  });
});

const golden = join(import.meta.dirname, '../../golden');
const recorded = globSync('*.upstream.txt', { cwd: golden }).filter((file) => !/^(anthropic|responses)/.test(file));

test.each(recorded)('%s is read the same, cut at every byte', (file) => {
  const bytes = readFileSync(join(golden, file));
  const read = (packets: ReadonlyArray<Uint8Array>) => {
    const reader = createReader();
    const pieces = [...packets.flatMap((packet) => reader.push(packet)), ...reader.end()];
    return decoder.decode(concat(pieces.map((piece) => piece.bytes)));
  };
  const whole = read([bytes]);
  for (let at = 1; at < bytes.length; at += 1) expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toBe(whole);
});

test('no stream throws, ends twice, or leaves a block open', () => {
  fc.assert(
    fc.property(fc.array(hostile, { maxLength: 20 }), fc.integer({ min: 1, max: 40 }), (events, size) => {
      const chunks = events.map(
        (event) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: event }], ...Object(event) })}\n\n`,
      );
      const bytes = encoder.encode(`${chunks.join('')}data: [DONE]\n\n`);
      const reader = createReader();
      const packets = [...Array(Math.ceil(bytes.length / size)).keys()].map((at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      const all = [...packets.flatMap((packet) => reader.push(packet)), ...reader.end()];
      const shown = decoder.decode(concat(all.map((piece) => piece.bytes)));
      const count = (type: string) => shown.split(`event: ${type}\n`).length - 1;
      expect([count('message_start'), count('message_stop')]).toEqual([1, 1]);
      expect(count('content_block_start')).toBe(count('content_block_stop'));
    }),
    { numRuns: runs(300) },
  );
});

test('no request and no reply throws, whatever it contains', () => {
  fc.assert(
    fc.property(fc.array(hostile), hostile, (messages, more) => {
      const body = bodyOf({ ...Object(more), messages });
      if (body.ok)
        expect(JSON.parse(JSON.stringify(body.value))).toMatchObject({ model: 'real', max_completion_tokens: 9 });
      else
        expect(body.failure).toMatchObject({
          code: 'invalid_request',
          param: expect.stringMatching(/^(messages|tools|system)/),
        });
      const reply = openai.readReply(encoder.encode(JSON.stringify(more)), { created: 1, redact: String });
      if (reply !== undefined) expect(JSON.parse(`${reply.body}`)).toMatchObject({ type: 'message' });
    }),
    { numRuns: runs(400) },
  );
});
