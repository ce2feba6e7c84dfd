import { expect, test } from 'vitest';
import { didYouMean, nearest } from './nearest.ts';

const models = ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet', 'llama-3', 'a'];

test.each([
  ['gpt-4', 'gpt-4o'],
  ['GPT-4O', 'gpt-4o'],
  ['gpt4o-mini', 'gpt-4o-mini'],
  ['claude-sonet', 'claude-sonnet'],
  ['llama3', 'llama-3'],
  ['mistral', undefined],
  ['b', undefined],
  ['A', 'a'],
  ['', undefined],
])('%j → %j', (name, meant) => expect(nearest(name, models)).toBe(meant));

test('it is asked, not claimed', () => {
  expect(didYouMean('gpt-4', models)).toBe('; did you mean "gpt-4o"?');
  expect(didYouMean('mistral', models)).toBe('');
});
