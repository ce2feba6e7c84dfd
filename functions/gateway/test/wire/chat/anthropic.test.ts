// Translation of a chat completion request for Anthropic.
import { describe, expect, test } from 'vitest';
import { toMessagesBody } from '../../../wire/chat/anthropic.ts';

const DECIDED = { model: 'claude', maxTokens: 100, stream: false };
const translated = (request: object) => {
  const body = toMessagesBody({ messages: [{ role: 'user', content: 'Hi' }], ...request }, DECIDED);
  if (!body.ok) throw new Error(`refused: ${JSON.stringify(body.failure)}`);
  return body.value;
};
const HI = { role: 'user', content: [{ type: 'text', text: 'Hi' }] };
const parts = (...content: object[]) => translated({ messages: [{ role: 'user', content }] });
const weather = {
  type: 'function',
  function: { name: 'weather', description: 'The weather', parameters: { type: 'object' } },
};

test('a request is a model, a limit and turns; nothing else is sent unless the client sent it', () => {
  expect(translated({})).toEqual({ model: 'claude', max_tokens: 100, messages: [HI] });
  expect(toMessagesBody({ messages: [] }, { ...DECIDED, stream: true })).toMatchObject({ value: { stream: true } });
});

describe('turns', () => {
  test('messages of the system and the developer become the system prompt, in their order', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      { role: 'developer', content: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }] },
    ];
    expect(translated({ messages })).toMatchObject({
      system: [
        { type: 'text', text: 'Be brief.' },
        { type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } },
      ],
      messages: [HI],
    });
  });

  test('calls of tools are in the turn of the assistant, their results together in one turn of the user', () => {
    const call = (id: string, given: string) => ({
      id,
      type: 'function',
      function: { name: 'weather', arguments: given },
    });
    const messages = [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: null, tool_calls: [call('a', '{"city":"Ulm"}'), call('b', '')] },
      { role: 'tool', tool_call_id: 'a', content: 'rain' },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'sun' }] },
      { role: 'user', content: 'And?' },
    ];
    expect(translated({ messages, tools: [weather] })).toEqual({
      model: 'claude',
      max_tokens: 100,
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Ulm' } },
            { type: 'tool_use', id: 'b', name: 'weather', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'rain' }] },
            { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'sun' }] },
            { type: 'text', text: 'And?' },
          ],
        },
      ],
      tools: [{ name: 'weather', description: 'The weather', input_schema: { type: 'object' } }],
    });
  });

  test('a refusal of an earlier answer becomes text', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, refusal: 'No.' },
    ];
    expect(translated({ messages })).toMatchObject({
      messages: [HI, { role: 'assistant', content: [{ type: 'text', text: 'No.' }] }],
    });
  });

  test('texts, images and files are blocks; empty texts are left out', () => {
    expect(
      parts(
        { type: 'text', text: '' },
        { type: 'text', text: 'Look:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO', detail: 'high' } },
        { type: 'image_url', image_url: { url: 'https://host/cat.jpg' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' } },
      ),
    ).toMatchObject({
      messages: [
        {
          content: [
            { type: 'text', text: 'Look:' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
            { type: 'image', source: { type: 'url', url: 'https://host/cat.jpg' } },
            { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' } },
          ],
        },
      ],
    });
  });
});

describe('fields', () => {
  test.each([
    ['one stop sequence', { stop: 'END' }, { stop_sequences: ['END'] }],
    ['several, without the blank ones', { stop: ['a', ' ', 'b'] }, { stop_sequences: ['a', 'b'] }],
    ['a temperature', { temperature: 0.3 }, { temperature: 0.3 }],
    ['a temperature beyond their scale', { temperature: 1.7 }, { temperature: 1 }],
    ['top_p', { top_p: 0.9 }, { top_p: 0.9 }],
    ['the user', { user: 'u-17' }, { metadata: { user_id: 'u-17' } }],
    [
      'reasoning, in their own member',
      { thinking: { type: 'enabled', budget_tokens: 50 } },
      { thinking: { type: 'enabled', budget_tokens: 50 } },
    ],
  ])('%s has a counterpart', (_, request, expected) => {
    expect(translated(request)).toMatchObject(expected);
  });

  test.each([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [
      { type: 'function', function: { name: 'weather' } },
      { type: 'tool', name: 'weather' },
    ],
  ])('the tool choice %j has a counterpart', (tool_choice, expected) => {
    expect(translated({ tools: [weather], tool_choice })).toMatchObject({ tool_choice: expected });
  });

  test('a limit of one tool call at a time becomes part of the tool choice', () => {
    expect(translated({ tools: [weather], parallel_tool_calls: false })).toMatchObject({
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    });
  });

  test('a member without a counterpart is left out', () => {
    const without = {
      n: 1,
      seed: 1,
      logprobs: true,
      response_format: { type: 'json_object' },
      frequency_penalty: 1,
      tool_choice: 'auto',
      stop: null,
      user: '',
    };
    expect(translated(without)).toEqual(translated({}));
  });
});

describe('a part without a counterpart is refused with its member, never left out silently', () => {
  test.each([
    ['messages[0].role', { messages: [{ role: 'function', content: 'x' }] }],
    ['messages[0].role', { messages: ['hello'] }],
    ['messages[0].function_call', { messages: [{ role: 'assistant', function_call: { name: 'f', arguments: '{}' } }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: 7 }] }],
    [
      'messages[0].content[0].type',
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] },
    ],
    [
      'messages[0].content[0].image_url.url',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }] }] },
    ],
    [
      'messages[0].content[1].file.file_data',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'x' },
              { type: 'file', file: { file_id: 'f' } },
            ],
          },
        ],
      },
    ],
    [
      'messages[0].tool_calls[0].function.arguments',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{"half' } }] }] },
    ],
  ])('%s', (param, request) => {
    expect(toMessagesBody(request, DECIDED)).toMatchObject({ ok: false, failure: { code: 'invalid_request', param } });
  });

  test.each([
    ['one tool call', 1],
    ['many tool calls', 1000],
  ])('the arguments of %s have at most 100,000 values together', (_, calls) => {
    const bodyWith = (values: number) => {
      // An object, its list, and a comma for each further element.
      const given = `{"a":[${'1,'.repeat(values / calls - 2)}1]}`;
      const tool_calls = Array.from({ length: calls }, () => ({ id: 'a', function: { name: 'f', arguments: given } }));
      return toMessagesBody({ messages: [{ role: 'assistant', tool_calls }] }, DECIDED);
    };
    expect(bodyWith(100_000)).toMatchObject({ ok: true });
    expect(bodyWith(101_000)).toMatchObject({ ok: false, failure: { code: 'invalid_request', param: 'messages' } });
  });
});
