// Pages and the READMEs of packages: every link leads somewhere, every file that is named is there.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { toAnchor } from '../../docs/.vitepress/anchor.ts';

const root = join(import.meta.dirname, '../..');
const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root })];
/** A README for each package of DESIGN 4. `infra/apiserver` is for users of its own. */
const readmes = [
  'crds',
  ...['core', 'core/ledger', 'admission', 'reconcile', 'gateway', 'gateway/wire'].map((name) => `functions/${name}`),
  ...['adapters', 'runtime', 'platforms', 'packaging', 'tools'].map((name) => `infra/${name}`),
  'test',
].map((folder) => `${folder}/README.md`);
const read = (page: string) => readFileSync(join(root, page), 'utf8');

const anchorsOf = (page: string) =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => toAnchor(heading));

test.each([...pages, ...readmes])('every link of %s leads somewhere', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
  const broken = links.filter(([, file = '', anchor]) => {
    const target = file === '' ? page : normalize(join(dirname(page), file));
    return !existsSync(join(root, target)) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

test.each(pages)('every picture of %s is there', (page) => {
  const pictures = [...read(page).matchAll(/ (?:src|srcset)="([^"]*)"/g)].map(([, file = '']) => file);
  expect(pictures.filter((file) => !existsSync(join(root, dirname(page), file)))).toEqual([]);
});

test.each(pages)('each of our files that %s names is there', (page) => {
  const named = [...read(page).matchAll(/`((?:crds|docs|functions|infra|test)\/[\w./-]+\.\w+)`/g)];
  expect(named.map(([, file = '']) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test.each(readmes)('%s has at most thirty lines, and every file that it names is there', (page) => {
  const text = read(page);
  expect(text.split('\n').length - 1).toBeLessThanOrEqual(30);
  for (const part of ['**Begin with**', '**May import**', '**Tests**']) expect(text).toContain(part);
  const named = [...text.matchAll(/`([\w./-]+(?:\/|\.(?:ts|lua|md|yaml)))`/g)].map(([, file = '']) => file);
  const isThere = (file: string) => [dirname(page), '.'].some((folder) => existsSync(join(root, folder, file)));
  expect(named.filter((file) => !isThere(file))).toEqual([]);
});

test.each(pages)('%s has no trace of a merge', (page) => {
  expect(read(page)).not.toMatch(/^(<{7}|={7,8}$|>{7})/m);
});

/** Objects in the YAML of a page: fenced blocks, and documents that its commands apply from a here-document. */
function objectsIn(text: string): ReadonlyArray<Readonly<Record<string, unknown>>> {
  const fenced = [...text.matchAll(/^```yaml\n(.*?)^```$/gms)];
  const here = [...text.matchAll(/<<'END'\n(.*?)^END$/gms)];
  return [...fenced, ...here].flatMap(([, yaml = '']) => parseAllDocuments(yaml).map((one) => one.toJS()));
}

test('instances that pages, samples and the chart show are closed: no key value in the status, no namespace that nobody chose', () => {
  const quickstart = read('infra/packaging/quickstart/quickstart.yaml');
  const [, list = '[]'] = /value: ("\[\{.*\}\]")$/m.exec(quickstart) ?? [];
  const samples = globSync('docs/samples/*.yaml', { cwd: root }).map((sample) => `\`\`\`yaml\n${read(sample)}\`\`\``);
  const texts = [...pages.map(read), ...samples];
  const objects = [...texts.flatMap(objectsIn), ...JSON.parse(JSON.parse(list))];
  const instances = objects.filter((object) => object?.kind === 'GatewayInstance');
  expect(instances.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(['llm', 'quickstart']));
  for (const { spec } of instances) {
    expect(spec.keyValueInStatus).toBe('Redacted');
    expect(['Same', 'Selector']).toContain(spec.allowedNamespaces?.from);
  }
});

test('each decision has a number of its own, which its title begins with', () => {
  const decisions = globSync('docs/internals/decisions/*.md', { cwd: root });
  const numbers = decisions.map((page) => Number(basename(page).slice(0, 4)));
  expect(new Set(numbers).size).toBe(decisions.length);
  const titles = decisions.map((page) => Number(/^# (\d+)\. \S/.exec(read(page))?.[1]));
  expect(titles).toEqual(numbers);
});
