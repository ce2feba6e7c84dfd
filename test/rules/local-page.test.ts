// docs/operate/local-stack.md names every option, every model of the sample upstream and every kind of the embedded cluster.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { coreResources } from '../../infra/apiserver/resources/core-resources.ts';
import { HELP } from '../../infra/platforms/local/options.ts';
import { BEHAVIOURS } from '../../infra/platforms/local/sample-upstream/behaviours.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/operate/local-stack.md'), 'utf8');
const inCode = new Set([...page.matchAll(/`(--[a-z]+|[\w-]+)[^`]*`/g)].map(([, word]) => word));
const words = new Set(page.match(/\w+/g));

test('every option of npm start, and no other', () => {
  const options = [...HELP.matchAll(/^ {2}(--[a-z]+)/gm)].map(([, option]) => option).filter((one) => one !== '--help');
  expect([...inCode].filter((word) => word?.startsWith('--')).sort()).toEqual(options.sort());
});

test('every model of the sample upstream', () => {
  expect([...BEHAVIOURS.keys()].filter((name) => !inCode.has(name))).toEqual([]);
});

test('every kind that the embedded cluster serves without a CRD', () => {
  expect(coreResources.map(({ kind }) => kind).filter((kind) => !words.has(kind))).toEqual([]);
});
