// The release workflow: few rights, actions of fixed commits, and steps that name files of this repository.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { RELEASE_IMAGE, RELEASE_VERSION } from '../../infra/runtime/config/release.ts';
import { run } from '../support/child.ts';
import { testUnless } from '../support/skip-unless.ts';

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Job {
  readonly permissions: Readonly<Record<string, string>>;
  readonly steps: ReadonlyArray<Step>;
}

const root = join(import.meta.dirname, '../..');
const FILE = '.github/workflows/release.yaml';
const text = readFileSync(join(root, FILE), 'utf8');
const workflow = parse(text) as { readonly permissions: object; readonly jobs: Readonly<Record<string, Job>> };
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);

test('no job has a right that it does not name, and only one may sign', () => {
  expect(workflow.permissions).toEqual({});
  const may = Object.entries(workflow.jobs).map(([name, { permissions }]) => [name, permissions]);
  expect(Object.fromEntries(may)).toEqual({
    image: { contents: 'read', packages: 'write' },
    release: { contents: 'write', packages: 'write', 'id-token': 'write' },
  });
});

test('every action is one commit', () => {
  const used = steps.flatMap(({ uses = [] }) => uses);
  expect(used.length).toBeGreaterThan(0);
  for (const action of used) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
});

test('no script holds an expression: what others name cannot become a command', () => {
  const scripts = steps.flatMap(({ run = [] }) => run);
  expect(scripts.filter((script) => script.includes('$' + '{{'))).toEqual([]);
});

test('files and texts that its scripts look for are there', () => {
  const paths = [...text.matchAll(/\b(?:infra|crds)\/[\w./-]+\w/g)].map(([path]) => path);
  expect(paths.length).toBeGreaterThan(5);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect(version).toBe(RELEASE_VERSION);
  expect(readFileSync(join(root, 'infra/platforms/kubernetes/install.yaml'), 'utf8')).toContain(RELEASE_IMAGE);
  expect(RELEASE_IMAGE).toBe(`registry.example.com/gateway-operator:${RELEASE_VERSION}`);
  const values = readFileSync(join(root, 'infra/packaging/helm/gateway-operator/values.yaml'), 'utf8');
  for (const name of ['repository', 'digest']) expect(values.match(new RegExp(`^  ${name}: `, 'gm'))).toHaveLength(1);
  expect(readFileSync(join(root, 'infra/packaging/helm/gateway-operator/Chart.yaml'), 'utf8')).toContain(
    `\nversion: ${version}\n`,
  );
});

const found = await run('actionlint', ['-version']).then(
  () => undefined,
  () => 'no actionlint on the path (go install github.com/rhysd/actionlint/cmd/actionlint@latest)',
);
testUnless(found, 'actionlint finds nothing', async () => {
  const { code, stdout } = await run('actionlint', [join(root, FILE)]);
  expect(`${code} ${stdout}`).toBe('0 ');
});
