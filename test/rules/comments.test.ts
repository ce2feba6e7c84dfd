// Comments of the source: each begins with its subject, a noun of the domain (docs/internals/contributing.md).
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const sources = ['crds', 'functions', 'infra']
  .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))
  .filter((path) => !/node_modules|\.test\.ts$/.test(path));

test('no comment begins with a word that hides its subject', () => {
  const hidden = /^\s*(?:\/\/|\/\*\*) (?:What|Who|Whoever|It|Somebody) .*/gm;
  const found = sources.flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(hidden)].map(([comment]) => `${path}: ${comment.trim()}`),
  );
  expect(sources.length).toBeGreaterThan(300);
  expect(found).toEqual([]);
});
