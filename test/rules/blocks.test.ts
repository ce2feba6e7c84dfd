// Commands and YAML of pages: each block is run by a test, is a sample, or says why neither is the case.
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SAMPLES } from '../../infra/tools/samples.ts';
import { documented } from '../platforms/documented.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root })];
const tests = globSync('{functions,infra,test}/**/*.ts', { cwd: root, exclude: (path) => path === 'node_modules' })
  .filter((path) => path.startsWith('test/') || path.includes('/test/'))
  .map(read);
const samples = globSync(`${SAMPLES}/*.yaml`, { cwd: root }).map((path) => withoutParts(read(path)));

/** Pictures and output. */
const NOT_TYPED = new Set(['', 'text', 'mermaid']);
/** The beginning of a block that has no language, though somebody shall type it. */
const COMMAND = /^(?:curl|docker|git|helm|kubectl|node|npm|npx|psql)\s/;

interface Block {
  readonly page: string;
  readonly language: string;
  readonly text: string;
  /** The comment on the line before. */
  readonly marker: string;
}

function blocksOf(page: string, text: string): ReadonlyArray<Block> {
  const fences =
    /^(?: *<!-- (?<marker>.*) -->\n)?(?<indent> *)```(?<language>\w*).*\n(?<text>(?:(?!^ *```).*\n)*)^\k<indent>```$/gm;
  return [...text.matchAll(fences)].map(({ groups: { marker = '', language = '', text: inside = '' } = {} }) => ({
    page,
    language,
    text: inside,
    marker,
  }));
}

/** Undefined: the block follows the rule. */
function violationOf({ page, language, text, marker }: Block): string | undefined {
  if (NOT_TYPED.has(language))
    return language === '' && COMMAND.test(text) ? 'a command needs a language, such as sh' : undefined;
  const [, kind, rest = ''] = /^(tested|sample|not run): (.+)$/.exec(marker) ?? [];
  if (kind === 'sample') return undefined;
  if (kind === 'not run') return rest.split(' ').length < 2 ? 'a reason has at least two words' : undefined;
  if (kind === undefined) return 'no test runs it: see "Blocks of pages" in docs/internals/contributing.md';
  if (rest === 'samples') return samples.some((sample) => sample.includes(text)) ? undefined : 'it is in no sample';
  const name = basename(page, '.md');
  const isUsed = tests.some(
    (source) => source.includes(`'${rest}'`) && new RegExp(`['"/]${name}(?:\\.md)?['"]`).test(source),
  );
  return isUsed ? undefined : `no test has '${rest}' and '${name}'`;
}

/** A sample as pages show it. */
function withoutParts(sample: string): string {
  return sample.replaceAll(/^ *# (?:part: .*|end of part)\n/gm, '');
}

test.each(pages)('each block of %s is run by a test, is a sample, or has the reason why it is not run', (page) => {
  const blocks = blocksOf(page, read(page));
  expect(blocks.length * 2).toBe(read(page).match(/^ *```/gm)?.length ?? 0);
  const violations = blocks.flatMap((block) => {
    const violation = violationOf(block);
    return violation === undefined ? [] : [`${block.text.split('\n', 1)[0]}: ${violation}`];
  });
  expect(violations).toEqual([]);
});

test.each(pages)('%s has no two tested blocks of one name', (page) => {
  const names = [...read(page).matchAll(/^ *<!-- tested: (.+) -->$/gm)].map(([, name]) => name);
  expect(names.filter((name, index) => name !== 'samples' && names.indexOf(name) !== index)).toEqual([]);
});

describe('a block is refused', () => {
  test.each([
    ['without a marker', '```sh\nkubectl get pods\n```'],
    ['if a line is between it and its marker', '<!-- not run: needs Pods -->\n\n```sh\nkubectl get pods\n```'],
    ['if it is not run and has no reason', '<!-- not run: Pods -->\n```sh\nkubectl get pods\n```'],
    ['if no test uses its name', '<!-- tested: nowhere used -->\n```sh\nkubectl get pods\n```'],
    ['if it has a command and no language', '```\nkubectl get pods\n```'],
    ['if it is no sample', '<!-- tested: samples -->\n```yaml\nkind: Nothing\n```'],
  ])('%s', (_, text) => {
    const [block] = blocksOf('docs/operate/redis.md', text);
    expect(block && violationOf(block)).toBeTypeOf('string');
  });
});

test('the row of a provider that contributors see is the one in the source', () => {
  expect(read('functions/core/models/providers.ts')).toContain(
    documented('docs/internals/contributing.md', 'provider row', 'ts'),
  );
});

test.each(pages)('each npm script that %s names exists', (page) => {
  const { scripts } = JSON.parse(read('package.json'));
  const named = [...read(page).matchAll(/\bnpm run (?:-s )?([a-z][\w:-]*)/g)].map(([, name = '']) => name);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});
