// Does docs/local.md name every option, every model of the sample upstream and every kind of the embedded cluster?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { coreResources } from '../../infra/apiserver/resources/core-resources.ts';
import { HELP } from '../../infra/local/options.ts';
import { BEHAVIOURS } from '../../infra/local/upstream/behaviours.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/local.md'), 'utf8');
const firstCells = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, cell = '']) => cell);

test('every option of npm start, and no other', () => {
  const options = [...HELP.matchAll(/^ {2}(--[a-z]+)/gm)].map(([, option]) => option).filter((one) => one !== '--help');
  expect(firstCells.filter((cell) => cell.startsWith('--')).map((cell) => cell.split(' ')[0])).toEqual(options);
});

test('every model of the sample upstream, with what it does', () => {
  for (const [name, { about }] of BEHAVIOURS) {
    expect(page.replaceAll('`retry-after: 7`', 'retry-after: 7')).toContain(`| \`${name}\` | ${about} |`);
  }
});

test('every kind that the embedded cluster serves without a CRD', () => {
  const list = /and these kinds: ([^.]*)\./.exec(page)?.[1] ?? '';
  const named = [...list.matchAll(/[A-Z][A-Za-z]+/g)].map(([kind]) => kind);
  expect(named.sort()).toEqual([...new Set(coreResources.map(({ kind }) => kind))].sort());
});
