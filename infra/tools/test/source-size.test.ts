// Source size: when the table of a page is out of date.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isCurrent, withSourceSize } from '../source-size.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/bench.md'), 'utf8');

test.each([
  ['a count within 2 per cent', '| crds | 1,020 | 20 | 4 |', true],
  ['a count that differs by more', '| crds | 1,021 | 20 | 4 |', false],
  ['another number of layers', '| crds | 1,000 | 20 | 5 |', false],
  ['another package', '| cards | 1,000 | 20 | 4 |', false],
])('a table with %s: current is %s', (_, shown, current) => {
  expect(isCurrent(shown, '| crds | 1,000 | 20 | 4 |')).toBe(current);
});

test('an outdated page is written anew once; its other text stays', () => {
  const outdated = page.replace(/\| crds \| [\d,]+/, '| crds | 1');
  const written = withSourceSize(outdated);
  expect(written).toMatch(/\| crds \| \d,\d{3} \| \d+ \| \d+ \|/);
  expect(withSourceSize(written)).toBe(written);
  expect(written.split('<!--')[0]).toBe(outdated.split('<!--')[0]);
});

test('a page without the place for the table is an error', () => {
  expect(() => withSourceSize('# Measurements\n')).toThrow('docs/bench.md: must contain');
});
