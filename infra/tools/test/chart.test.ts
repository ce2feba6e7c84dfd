// The chart, without Helm: its values, its version, and rendered manifests that are stale.
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { documented } from '../../../test/platforms/documented.ts';
import { Values } from '../../packaging/helm/values.ts';
import { RELEASE_IMAGE, RELEASE_VERSION } from '../../runtime/config/release.ts';
import { CHART, RENDERED_FILES, renderManifest, staleManifests } from '../chart.ts';

const root = join(import.meta.dirname, '../../..');
const read = (file: string): unknown => parse(readFileSync(join(root, CHART, file), 'utf8'));

const copies: string[] = [];
function copyOf(...paths: ReadonlyArray<string>): string {
  const copy = mkdtempSync(join(tmpdir(), 'chart-'));
  copies.push(copy);
  for (const path of paths) cpSync(join(root, path), join(copy, path), { recursive: true });
  return copy;
}
afterEach(() => {
  vi.unstubAllEnvs();
  for (const copy of copies.splice(0)) rmSync(copy, { recursive: true });
});

test('values.yaml has the defaults, which the schema takes, and none of another name', () => {
  expect(read('values.yaml')).toEqual(Values.parse({}));
  expect(Values.safeParse({ admission: { replica: 2 } }).success).toBe(false);
});

test.each([
  ['registry.example.com/gateway-operator', true],
  ['localhost:5000/team/gateway-operator', true],
  ['gateway-operator', true],
  ['registry.example.com/gateway-operator:0.1.0', false],
  ['localhost:5000/gateway-operator:0.1.0', false],
  ['gateway-operator:0.1.0', false],
  [`registry.example.com/gateway-operator@sha256:${'0'.repeat(64)}`, false],
])('image.repository %s, which may hold neither tag nor digest: accepted %s', (repository, isAccepted) => {
  expect(Values.safeParse({ image: { repository } }).success).toBe(isAccepted);
});

test('the documented command names the image in every manifest, as often as it is run', () => {
  const files = [
    'infra/platforms/kubernetes/install.yaml',
    'infra/platforms/kubernetes/uninstall.yaml',
    'infra/platforms/knative/operator.yaml',
  ];
  const copy = copyOf(...files);
  for (const IMAGE of ['localhost:5000/own:1', `ghcr.io/example/op@sha256:${'0'.repeat(64)}`]) {
    execFileSync('sh', ['-ec', documented('docs/install/image.md', 'image')], {
      cwd: copy,
      env: { ...process.env, IMAGE },
    });
    for (const file of files) {
      const text = readFileSync(join(copy, file), 'utf8');
      expect(text, file).not.toMatch(/registry\.example\.com/);
      const before = readFileSync(join(root, file), 'utf8');
      expect(text, file).toBe(before.replaceAll(RELEASE_IMAGE, IMAGE));
    }
  }
  expect(globSync('infra/platforms/*/*.before', { cwd: copy })).toEqual([]);
});

test('the chart has no links, of each of which Helm would print a line', () => {
  const paths = globSync('**/*', { cwd: join(root, CHART), withFileTypes: true });
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter((path) => path.isSymbolicLink()).map(({ name }) => name)).toEqual([]);
});

test('chart and app have the version of the release', () => {
  expect(read('Chart.yaml')).toMatchObject({ version: RELEASE_VERSION, appVersion: RELEASE_VERSION });
});

test('a changed template makes each manifest stale that is rendered from the chart, and no Helm is needed to know it', () => {
  vi.stubEnv('HELM', '/nowhere/helm');
  const copy = copyOf(CHART, ...RENDERED_FILES);
  expect(staleManifests(copy)).toEqual([]);
  appendFileSync(join(copy, CHART, 'templates/admission.yaml'), '# edited\n');
  expect(staleManifests(copy)).toEqual(RENDERED_FILES);
  expect(() => renderManifest(copy, 'infra/platforms/kubernetes/install.yaml')).toThrow(
    'Helm is needed here: go install',
  );
});

test('no manifest holds a secret, nor a path that only API servers may know', () => {
  for (const file of RENDERED_FILES) {
    const text = readFileSync(join(root, file), 'utf8');
    expect(text, file).not.toMatch(/admission-path: |reconcile-token: |caBundle/);
  }
});
