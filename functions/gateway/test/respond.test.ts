import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { RATE_KINDS } from '#core/ports/rates.ts';
import { rateHeaders, toDuration } from '../reply/respond.ts';

test.each([
  [0, '0s'],
  [1, '1ms'],
  [349.5, '350ms'],
  [999, '999ms'],
  [1000, '1s'],
  [1001, '2s'],
  [58_999, '59s'],
  [59_001, '1m0s'],
  [60_000, '1m0s'],
  [61_000, '1m1s'],
])('%d milliseconds are written %s, never shorter than they are', (millis, text) => {
  expect(toDuration(millis)).toBe(text);
});

test('only limited rates have headers', () => {
  expect(rateHeaders(undefined)).toEqual({});
  expect(rateHeaders({})).toEqual({});
  const tokens = { limit: 1_000_000_000_000, remaining: 0, resetIn: 60_000 };
  expect(rateHeaders({ tokens })).toEqual({
    'x-ratelimit-limit-tokens': '1000000000000',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '1m0s',
  });
});

test.each(Object.values(RATE_KINDS))(
  'the page of errors has the field $specField, and its headers if there are any',
  async ({ specField, header }) => {
    const page = await readFile(new URL('../../../docs/use/errors.md', import.meta.url), 'utf8');
    const figures = header === undefined ? [] : ['limit', 'remaining', 'reset'];
    const names = [specField, ...figures.map((figure) => `x-ratelimit-${figure}-${header}`)];
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  },
);
