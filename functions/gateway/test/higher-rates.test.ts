// Tokens that a usage does not count separately are charged at the highest rate that the request allows.
import { describe, expect, test } from 'vitest';
import { message } from '../../../test/gateway/anthropic.ts';
import { entry } from '../../../test/gateway/instance.ts';
import { stageOne } from '../../../test/gateway/stage.ts';
import { completion } from '../../../test/gateway/upstream.ts';

const PRICE = {
  input: '1',
  output: '0',
  cachedInput: '0.1',
  cacheWrite: '1.25',
  cacheWriteLong: '2',
  inputAudio: '7',
  cachedAudio: '3',
};

interface TestRequest {
  readonly body: string;
  readonly reply: string;
  readonly provider?: string;
  readonly path?: string;
}

async function charge(
  { body, reply, provider = 'openrouter', path = '/chat/completions' }: TestRequest,
  more: object = {},
) {
  const model = entry('gpt', { provider, price: { ...PRICE, ...more } });
  const { chat, ledger } = stageOne(model, { script: () => ({ body: reply }), limit: '1000' });
  expect((await chat(body, { path })).status).toBe(200);
  return Number((ledger.settled[0]?.cost ?? 0n) / 1000n);
}

const chatOf = (...content: ReadonlyArray<unknown>) =>
  JSON.stringify({ model: 'gpt', max_tokens: 9, messages: [{ role: 'user', content }] });
const cached = (ttl: string | undefined) => ({ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl } });

describe('a cache write', () => {
  /** 1,000 tokens, of which 800 were written. */
  const written = (details: object = {}) =>
    completion('a', {
      prompt_tokens: 1000,
      completion_tokens: 1,
      prompt_tokens_details: { cache_write_tokens: 800 },
      ...details,
    });
  const HOUR = 200 + 1600;
  const MINUTES = 200 + 1000;

  test.each([
    ['an hour', chatOf(cached('1h')), HOUR],
    ['an hour on one part of two', chatOf(cached('5m'), cached('1h')), HOUR],
    [
      'an hour for all of the request',
      chatOf(cached('5m')).replace('"model"', '"cache_control":{"ttl" : "1h"},"model"'),
      HOUR,
    ],
    [
      'an hour in escapes',
      chatOf(cached('1h')).replace('"ttl":"1h"', '"\\u0074t\\u006C":"\\u00311h"'.replace('11h', '1h')),
      HOUR,
    ],
    ['minutes', chatOf(cached('5m')), MINUTES],
    ['no time', chatOf(cached(undefined)), MINUTES],
    ['an hour in a text only', chatOf({ type: 'text', text: '"ttl":"1h"' }, cached('5m')), MINUTES],
  ])('of a request for %s', async (_, body, charged) => {
    expect(await charge({ body, reply: written() })).toBe(charged);
    expect(await charge({ body, reply: written(), path: '/messages' })).toBe(charged);
  });

  test.each([
    [undefined, HOUR],
    [{ ephemeral_5m_input_tokens: 800 }, HOUR],
    [{ ephemeral_1h_input_tokens: 0 }, MINUTES],
    [{ ephemeral_1h_input_tokens: 300, ephemeral_5m_input_tokens: 500 }, 200 + 600 + 625],
  ])('that Anthropic splits like this: %j', async (cache_creation, charged) => {
    const usage = { input_tokens: 200, cache_creation_input_tokens: 800, cache_creation, output_tokens: 1 };
    for (const path of ['/messages', '/chat/completions']) {
      const asked = { body: chatOf(cached('1h')), reply: message('a', { usage }), provider: 'anthropic', path };
      expect(await charge(asked)).toBe(charged);
    }
  });
});

test('a prompt with images is charged as images if the provider does not count them separately', async () => {
  const counted = (details?: object) =>
    completion('a', { prompt_tokens: 100, completion_tokens: 1, prompt_tokens_details: details });
  const cost = (part: object, details?: object) =>
    charge({ body: chatOf(part), reply: counted(details) }, { inputImage: '5', cachedImage: '2' });
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  expect(await cost(image)).toBe(500);
  expect(await cost(image, { cached_tokens: 40 })).toBe(60 * 5 + 40 * 2);
  expect(await cost(image, { image_tokens: 10 })).toBe(90 + 50);
  expect(await cost({ type: 'text', text: 'a' })).toBe(100);
});

describe('a prompt with audio', () => {
  const counted = (details?: object) =>
    completion('a', { prompt_tokens: 100, completion_tokens: 1, prompt_tokens_details: details });
  const DATA = 'data:audio/wav;base64,AAAA';

  test.each([
    ['audio', { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }],
    ['an address', { type: 'audio_url', audio_url: { url: 'https://a.test/b' } }],
    ['a video', { type: 'video_url', video_url: { url: 'https://a.test/b' } }],
    ['a file', { type: 'file', file: { file_data: DATA } }],
    ['an image that is none', { type: 'image_url', image_url: { url: DATA } }],
    ['an image that is none, at an address', { type: 'image_url', image_url: 'https://a.test/b.MP3?c' }],
    ['a part without a type', { input_audio: { data: 'AAAA' } }],
    ['a part as protocol buffers write it', { inputAudio: { data: 'AAAA' } }],
    ['a part of a result', { type: 'tool_result', content: [{ type: 'input_audio', input_audio: { data: 'A' } }] }],
  ])('is charged as audio if the provider does not count it separately: %s', async (_, part) => {
    const body = chatOf({ type: 'text', text: 'a' }, part);
    expect(await charge({ body, reply: counted(), provider: 'gemini' })).toBe(700);
    expect(await charge({ body, reply: counted({ cached_tokens: 40 }), provider: 'gemini' })).toBe(60 * 7 + 40 * 3);
    expect(await charge({ body, reply: counted({ audio_tokens: 10 }), provider: 'gemini' })).toBe(90 + 70);
    expect(await charge({ body, reply: counted({ audio_tokens: 0 }), provider: 'gemini' })).toBe(100);
  });

  test.each([
    ['images', { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    ['images at addresses', { type: 'image_url', image_url: { url: 'https://a.test/b.png?c=.mp3x' } }],
    ['documents', { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } }],
    ['text', { type: 'text', text: 'input_audio' }],
  ])('is not one with %s', async (_, part) => {
    expect(await charge({ body: chatOf(part), reply: counted(), provider: 'gemini' })).toBe(100);
  });
});
