// Source size: when a row of the table is out of date.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isCurrent, withSourceSize } from '../source-size.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/internals/bench.md'), 'utf8');

test.each([
  ['lines within 2 per cent', '| crds | 10,200 | 20 | 4 |', true],
  ['lines that differ by more', '| crds | 10,201 | 20 | 4 |', false],
  ['3 more files', '| crds | 10,000 | 23 | 4 |', true],
  ['4 more files', '| crds | 10,000 | 24 | 4 |', false],
  ['another number of layers', '| crds | 10,000 | 20 | 5 |', false],
  ['another package', '| cards | 10,000 | 20 | 4 |', false],
])('a row with %s: current is %s', (_, shown, current) => {
  expect(isCurrent(shown, '| crds | 10,000 | 20 | 4 |')).toBe(current);
});

test('of a small package 50 lines may differ', () => {
  expect(isCurrent('| crds | 150 | 2 | |', '| crds | 100 | 2 | |')).toBe(true);
  expect(isCurrent('| crds | 151 | 2 | |', '| crds | 100 | 2 | |')).toBe(false);
});

test('an outdated page is written anew once; its other text stays', () => {
  const outdated = page.replace(/\| crds \| [\d,]+/, '| crds | 1');
  const written = withSourceSize(outdated);
  expect(written).toMatch(/\| crds \| \d,\d{3} \| \d+ \| \d+ \|/);
  expect(withSourceSize(written)).toBe(written);
  expect(written.split('<!--')[0]).toBe(outdated.split('<!--')[0]);
});

test('a page without the place for the table is an error', () => {
  expect(() => withSourceSize('# Measurements\n')).toThrow('docs/internals/bench.md: must contain');
});
