// Imports: the table of DESIGN section 4, held against every import in the tree.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, ROOT as root } from '../../infra/tools/imports.ts';

/** A package, or a part of one. */
const LIBRARY = /^(?!(?:crds|functions|infra|test|node:)(?:\/|$))[@a-z]/;
const NODE = /^node:/;

/** Folder → what its files may import; the first folder that matches a file decides. */
const rules: ReadonlyArray<{ folder: string; may: ReadonlyArray<RegExp> }> = [
  { folder: 'crds/', may: [/^crds\//, /^zod$/] },
  { folder: 'functions/core/', may: [/^functions\/core\//, /^crds\//, /^zod$/, /^(lru-cache|p-limit)$/] },
  ...['admission', 'reconcile', 'gateway'].map((name) => ({
    folder: `functions/${name}/`,
    may: [new RegExp(`^functions/${name}/`), /^functions\/core\//, /^crds\//, /^zod$/],
  })),
  {
    folder: 'infra/adapters/',
    may: [
      /^infra\/adapters\//,
      /^functions\/core\/(ports\/|failure\/error-text\.ts$|(caches|concurrency|json)\/)/,
      /^crds\//,
      NODE,
      LIBRARY,
    ],
  },
  {
    folder: 'infra/apiserver/',
    may: [/^infra\/apiserver\//, NODE, LIBRARY],
  },
  { folder: 'infra/', may: [/^(?!test\/)/] },
  { folder: 'test/bench/', may: [/./] },
  { folder: 'test/', may: [/^(?!test\/bench\/)/] },
];

/** What tests may import beside what their folder may. */
const OF_TESTS = /^(vitest|fast-check|node:.*|test\/(?!bench\/).*|infra\/adapters\/memory\/.*)$/;

function allowed(file: string, target: string): boolean {
  const isTest = /\.(test|promises|fixture)\.ts$|\/cases\//.test(file);
  if (isTest && (OF_TESTS.test(target) || /^infra\/(?!adapters\/)/.test(file))) return true;
  if (/^functions\/[^/]+\/app\.ts$/.test(file) && /^hono(\/|$)/.test(target)) return true;
  const rule = rules.find(({ folder }) => file.startsWith(folder));
  return rule?.may.some((pattern) => pattern.test(target)) === true;
}

/** Each circle once, at the import that closes it. */
function circlesIn(imports: ReadonlyMap<string, ReadonlyArray<string>>): ReadonlyArray<string> {
  const circles: string[] = [];
  const done = new Set<string>();
  const walk = (file: string, way: ReadonlyArray<string>): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' → '));
    if (way.includes(file) || done.has(file)) return;
    for (const target of imports.get(file) ?? []) walk(target, [...way, file]);
    done.add(file);
  };
  for (const file of imports.keys()) walk(file, []);
  return circles;
}

const files = globSync('{crds,functions,infra,test}/**/*.ts', { cwd: root });

test('every import obeys the table of DESIGN section 4', () => {
  const broken = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => !allowed(file, target))
      .map((target) => `'${file}' → '${target}'`),
  );
  expect(files.length).toBeGreaterThan(3);
  expect(broken).toEqual([]);
});

test('no file imports itself by way of others, not even for a type', () => {
  expect(circlesIn(new Map(files.map((file) => [file, importsOf(file)])))).toEqual([]);
  expect(
    circlesIn(
      new Map([
        ['a', ['b', 'c']],
        ['b', []],
        ['c', ['d']],
        ['d', ['c', 'b']],
      ]),
    ),
  ).toEqual(['c → d → c']);
});

test('the folders of the API server import downwards only', () => {
  const folderOf = (file: string) => /^infra\/apiserver\/(?:[^/]+\/)?/.exec(file)?.[0] ?? '';
  const own = files.filter((file) => file.startsWith('infra/apiserver/') && !file.endsWith('.test.ts'));
  const folders = new Map<string, string[]>();
  for (const file of own.filter((one) => folderOf(one) !== 'infra/apiserver/')) {
    const below = importsOf(file).map(folderOf);
    const targets = below.filter(
      (folder) => folder !== '' && folder !== folderOf(file) && folder !== 'infra/apiserver/',
    );
    folders.set(folderOf(file), [...(folders.get(folderOf(file)) ?? []), ...targets]);
  }
  expect(folders.size).toBeGreaterThan(5);
  expect(circlesIn(folders)).toEqual([]);
});

test('the rule can fail: functions never import infra, node: or each other, the API server nothing of the product, and source no test', () => {
  expect(allowed('functions/gateway/handle.ts', 'infra/adapters/memory/store.ts')).toBe(false);
  expect(allowed('functions/gateway/handle.ts', 'functions/reconcile/plan.ts')).toBe(false);
  expect(allowed('functions/core/money/money.ts', 'node:crypto')).toBe(false);
  expect(allowed('functions/gateway/handle.ts', 'hono')).toBe(false);
  expect(allowed('functions/gateway/app.ts', 'hono')).toBe(true);
  expect(allowed('infra/adapters/postgres/ledger-reader.ts', 'functions/core/ledger/ledger.ts')).toBe(false);
  expect(allowed('infra/adapters/postgres/ledger-reader.ts', 'infra/platforms/local/stack.ts')).toBe(false);
  expect(allowed('infra/adapters/postgres/ledger-reader.ts', 'pg')).toBe(true);
  expect(allowed('infra/apiserver/api-server.ts', 'functions/core/ports/cluster.ts')).toBe(false);
  expect(allowed('infra/platforms/local/stack.ts', 'test/support/postgres.ts')).toBe(false);
});

test('zod is imported as a namespace, so a Worker carries 25 KB of it and not 93', () => {
  const wrong = files.filter((file) =>
    /import\s*(type\s*)?\{[^}]*\}\s*from 'zod'/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(wrong).toEqual([]);
});

test('every folder of functions/ but core is deployable: it has an app.ts', () => {
  const folders = (pattern: string) => globSync(pattern, { cwd: root }).map((path) => path.split('/')[1]);
  const deployable = folders('functions/*/app.ts').sort();
  expect(deployable).toEqual([...new Set(folders('functions/*/*.ts'))].filter((folder) => folder !== 'core').sort());
});
