// Citations in comments: each names a section of docs/internals/design.md or docs/internals/ledger.md, or a decision that is there.
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const sources = ['crds', 'functions', 'infra', 'test']
  .flatMap((folder) => globSync(`${folder}/**/*.{ts,lua,yaml}`, { cwd: root }))
  .filter((path) => !path.includes('node_modules'));
const numbersOf = (page: string) => [...read(page).matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number));
const sections = { DESIGN: numbersOf('docs/internals/design.md'), LEDGER: numbersOf('docs/internals/ledger.md') };
const subjects = [...read('docs/internals/design.md').matchAll(/^\*([A-Z][^*]*)\.\*/gm)].map(
  ([, subject = '']) => subject,
);
const decisions = globSync('docs/internals/decisions/*.md', { cwd: root }).map((path) =>
  Number(basename(path).slice(0, 4)),
);

/** What the files cite, as `path: citation`; `isThere` says of its text whether there is such a thing. */
function broken(pattern: RegExp, isThere: (match: RegExpMatchArray) => boolean): ReadonlyArray<string> {
  return sources.flatMap((path) =>
    [...read(path).matchAll(pattern)].filter((match) => !isThere(match)).map(([text]) => `${path}: ${text}`),
  );
}

test('each section of the design or the ledger that a comment cites is there', () => {
  const cited = /\b(DESIGN|LEDGER) (\d+(?:(?:\.\d)?(?:, | and | to )\d+)*)/g;
  const isThere = ([, page, numbers = '']: RegExpMatchArray) =>
    (numbers.match(/\d+(\.\d)?/g) ?? []).every((one) =>
      sections[page as keyof typeof sections].includes(Math.floor(Number(one))),
    );
  expect(broken(cited, isThere)).toEqual([]);
});

test('each subject of "Smaller answers" that a comment cites is there', () => {
  expect(broken(/\bDESIGN 10, ([A-Z]\w+(?: \w+)*)/g, ([, subject = '']) => subjects.includes(subject))).toEqual([]);
});

test('each decision that a comment cites is there', () => {
  expect(broken(/\bdecision (\d{4})/g, ([, number]) => decisions.includes(Number(number)))).toEqual([]);
});
