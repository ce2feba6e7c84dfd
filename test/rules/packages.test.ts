// Packages: each folder's package.json declares what its source imports, no more and no less.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, ROOT } from '../../infra/tools/imports.ts';

interface Manifest {
  readonly workspaces?: ReadonlyArray<string>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const read = (folder: string): Manifest => JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
const root = read('.');
const workspaces = root.workspaces ?? [];
/** Not a workspace: only who builds the site installs it. */
const SITE = 'docs/.vitepress';

const isTest = (file: string) => /\.(test|promises|fixture)\.ts$|\/cases\//.test(file);
const sources = globSync('{crds,functions,infra}/**/*.ts', { cwd: ROOT }).filter((file) => !isTest(file));
const inWorkspace = (file: string) => workspaces.some((folder) => file.startsWith(`${folder}/`));
/** What runs in a cluster or on Workers; the other rooms are programs of this repository. */
const isDeployed = (file: string) => !inWorkspace(file) && !/^infra\/(packaging|tools)\//.test(file);

function packagesOf(files: ReadonlyArray<string>): ReadonlyArray<string> {
  const libraries = files
    .flatMap(importsOf)
    .filter((target) => /^(?!node:|(crds|docs|functions|infra|test)\/)[@a-z]/.test(target));
  return [...new Set(libraries.map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')))].sort();
}

test('dependencies are what functions and adapters import', () => {
  expect(packagesOf(sources.filter(isDeployed))).toEqual(Object.keys(root.dependencies ?? {}).sort());
});

test.each(workspaces)('dependencies of %s are what it imports', (folder) => {
  const { dependencies = {} } = read(folder);
  // A program: what runs the stack, on a machine whose own Node is older.
  const imported = Object.keys(dependencies).filter((name) => name !== 'node');
  expect(packagesOf(sources.filter((file) => file.startsWith(`${folder}/`)))).toEqual(imported.sort());
});

test('everything else that tests and programs import is declared too', () => {
  const manifests = [root, ...workspaces.map(read)];
  const declared = new Set(manifests.flatMap((one) => Object.keys({ ...one.dependencies, ...one.devDependencies })));
  const files = globSync('{crds,functions,infra,test}/**/*.ts', { cwd: ROOT });
  expect(packagesOf(files).filter((name) => !declared.has(name))).toEqual([]);
});

test('dependencies of the site are what it imports', () => {
  const files = globSync(`${SITE}/{*,theme/*,test/*}.ts`, { cwd: ROOT });
  const imported = packagesOf(files).filter((name) => name !== 'vitest');
  expect(imported).toEqual(Object.keys(read(SITE).devDependencies ?? {}).sort());
});

test('every version is exact, and the same wherever it is declared', () => {
  const versions = new Map<string, Set<string>>();
  for (const { dependencies, devDependencies, optionalDependencies } of [root, ...[...workspaces, SITE].map(read)]) {
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
      versions.set(name, (versions.get(name) ?? new Set()).add(version));
    }
  }
  const wrong = [...versions].filter(
    ([, found]) => found.size > 1 || ![...found].every((one) => /^\d[\w.+-]*$/.test(one)),
  );
  expect(wrong).toEqual([]);
});

// A link of the name `node_modules`, once checked out, would take the place of what `npm ci` brings.
test('git keeps no node_modules, neither a folder nor a link', () => {
  const kept = execFileSync('git', ['ls-files', 'node_modules'], { cwd: ROOT });
  expect(kept.toString()).toBe('');
});
