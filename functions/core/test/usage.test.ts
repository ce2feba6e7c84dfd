import { expect, test } from 'vitest';
import { toUsage } from '../money/usage.ts';

const counted = (input: number, output: number, cachedInput = 0, cacheWrite = 0) => ({
  input,
  output,
  cachedInput,
  cacheWrite,
});

test.each([
  ['OpenAI', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }, counted(10, 5)],
  ['zero is a count', { prompt_tokens: 0, completion_tokens: 0 }, counted(0, 0)],
  [
    'cached input is a part of the input, reasoning of the output',
    {
      prompt_tokens: 10,
      completion_tokens: 50,
      total_tokens: 60,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 40 },
    },
    { ...counted(10, 50, 4), reasoning: 40 },
  ],
  [
    'a provider that adds reasoning on top is read by its total',
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 55, completion_tokens_details: { reasoning_tokens: 40 } },
    { ...counted(10, 45), reasoning: 40 },
  ],
  [
    'tokens of the total beyond prompt and answer are reasoning, also if they are not reported so (Gemini)',
    { prompt_tokens: 20, completion_tokens: 198, total_tokens: 623 },
    { ...counted(20, 603), reasoning: 405 },
  ],
  [
    'reported reasoning that is less than the rest of the total is not all of it',
    {
      prompt_tokens: 10,
      completion_tokens: 50,
      total_tokens: 100,
      completion_tokens_details: { reasoning_tokens: 30 },
    },
    { ...counted(10, 90), reasoning: 40 },
  ],
  [
    'searches are counted as each provider counts them, also none',
    { prompt_tokens: 1, completion_tokens: 2, server_tool_use: { web_search_requests: 0 } },
    { ...counted(1, 2), webSearches: 0 },
  ],
  ['an answer of nothing but reasoning that is left out', { prompt_tokens: 21, total_tokens: 81 }, counted(21, 60)],
  ['a prompt that is left out', { completion_tokens: 5, total_tokens: 15 }, counted(10, 5)],
  [
    'a cache beside the prompt is input',
    { prompt_tokens: 3, completion_tokens: 5, total_tokens: 16, prompt_tokens_details: { cached_tokens: 8 } },
    counted(11, 5, 8),
  ],
  [
    'a total that is too small, or absurd, is ignored',
    { prompt_tokens: 3, completion_tokens: 5, total_tokens: 1.5 },
    counted(3, 5),
  ],
  [
    'audio and images are parts of both sides',
    {
      prompt_tokens: 90,
      completion_tokens: 50,
      prompt_tokens_details: { audio_tokens: 30, image_tokens: 20, text_tokens: 40, cached_tokens: 0 },
      completion_tokens_details: { audio_tokens: 45, image_tokens: 0, reasoning_tokens: 0 },
    },
    { ...counted(90, 50), inputAudio: 30, inputImage: 20, outputAudio: 45 },
  ],
  ['DeepSeek', { prompt_tokens: 10, completion_tokens: 5, prompt_cache_hit_tokens: 8 }, counted(10, 5, 8)],
  [
    'more cached than input is at most the input',
    { prompt_tokens: 3, completion_tokens: 5, cached_tokens: 8 },
    counted(3, 5, 3),
  ],
  [
    'a cache that was written',
    { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 6 } },
    counted(10, 5, 2, 6),
  ],
])('usage is read: %s', (_, usage, tokens) => {
  expect(toUsage(usage)).toEqual(tokens);
});

test.each([
  undefined,
  null,
  'many',
  [],
  {},
  { prompt_tokens: 10 },
  { completion_tokens: 10 },
  { prompt_tokens: -1, completion_tokens: 1 },
  { prompt_tokens: 1.5, completion_tokens: 1 },
  { prompt_tokens: '1', completion_tokens: 1 },
  { prompt_tokens: 1e300, completion_tokens: 1 },
  { total_tokens: 10 },
  { prompt_tokens: 10, total_tokens: 9 },
])('what is no count is not read as one: %j', (usage) => {
  expect(toUsage(usage)).toBeUndefined();
});
