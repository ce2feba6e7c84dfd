// Is each promise of test/reconcile/promises.md still held by the test that it names?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const rows = readFileSync(join(root, 'test/reconcile/promises.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| promise'))
  .map((line) => line.slice(2, -2).split(' | '));

test('there are promises', () => {
  expect(rows.length).toBeGreaterThan(30);
});

test.each(rows)('%s', (_, file = '', title = '') => {
  expect(readFileSync(join(root, file), 'utf8')).toContain(title);
});
