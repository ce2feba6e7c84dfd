import { expect, test } from 'vitest';
import { createDidYouMean } from '../rules/nearest-name.ts';

const models = ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet', 'llama-3', 'a'];

test.each([
  ['gpt-4', 'gpt-4o'],
  ['GPT-4O', 'gpt-4o'],
  ['gpt4o-mini', 'gpt-4o-mini'],
  ['claude-sonet', 'claude-sonnet'],
  ['llama3', 'llama-3'],
  ['tlaude-sonnet', 'claude-sonnet'],
  ['mistral', undefined],
  ['b', undefined],
  ['A', 'a'],
  ['', undefined],
])('%j → %j', (name, meant) =>
  expect(createDidYouMean()(name, models)).toBe(meant === undefined ? '' : `; did you mean "${meant}"?`),
);

test('the nearest is meant, and of equally near ones the first', () => {
  expect(createDidYouMean()('gpt-4o-mimi', ['gpt-4o-mixi', 'gpt-4o-mini', 'gpt-4o-mimix'])).toContain('"gpt-4o-mixi"');
  expect(createDidYouMean()('gpt-4o-mimi', ['gpt-4o-xxxi', 'gpt-4o-mini'])).toContain('"gpt-4o-mini"');
});

test('suggestions share their limit of work: beyond it there are none, and known answers stay', () => {
  const alike = Array.from({ length: 512 }, (_, index) => `${'m'.repeat(60)}${index}`);
  const didYouMean = createDidYouMean(100_000);
  const asked = Array.from({ length: 20 }, (_, index) => `${'m'.repeat(59)}x${index}`);
  const answers = asked.map((name) => didYouMean(name, alike));
  expect(answers[0]).toContain('did you mean');
  expect(answers.at(-1)).toBe('');
  expect(asked.map((name) => didYouMean(name, alike))).toEqual(answers);
  expect(didYouMean('gpt-4', models)).toBe('');
});

test('a name that is too long to be read is not compared', () => {
  const long = 'm'.repeat(65);
  expect(createDidYouMean()(long, [`${long.slice(1)}n`, long])).toBe('');
});
