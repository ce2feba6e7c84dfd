// The libraries' table of docs/use/clients.md: each expression is one that the suite of the real programs runs.
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const [, table = ''] = /^## Libraries\n(.*?)^## /ms.exec(readFileSync('docs/use/clients.md', 'utf8')) ?? [];
const expressions = [...table.matchAll(/`([^`]+\([^`]*\))`/g)].map(([, expression = '']) => expression);
const programs = globSync('test/clients/programs/*').map((file) => readFileSync(file, 'utf8'));

test.each(expressions)('%s is run', (expression) => {
  expect(programs.filter((text) => text.includes(expression))).not.toEqual([]);
});

test('the table has a row for each library', () => {
  expect(expressions).toHaveLength(11);
});
