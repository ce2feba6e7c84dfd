// The samples of docs/samples, applied with the stock kubectl and the admission webhook in force.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeObject } from '#core/ports/cluster.ts';
import { readDocuments } from '../../infra/packaging/manifests/apply.ts';
import { SAMPLES } from '../../infra/tools/samples.ts';
import { CLUSTERS } from '../support/clusters.ts';
import { describeSideBySide } from '../support/side-by-side.ts';
import { type Harness, openHarness } from './harness.ts';

const FOLDER = join(import.meta.dirname, '../..', SAMPLES);
const names = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));
const textOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

/** The samples that must be there first, as a line `# Needs NAME.yaml` says, and the sample itself. */
const withNeeds = (name: string): ReadonlyArray<string> => [
  ...[...textOf(name).matchAll(/^# Needs (\S+\.yaml)/gm)].flatMap(([, needed = '']) => withNeeds(needed)),
  name,
];

/** Kinds that neither Kubernetes nor the operator defines: no cluster of a test has them. */
const FOREIGN =
  /^(argoproj\.io|[a-z-]+\.toolkit\.fluxcd\.io|external-secrets\.io|keda\.sh|gateway\.networking\.k8s\.io|cert-manager\.io)\//;

/** Those that objects name and no sample declares. */
function namespacesOf(objects: ReadonlyArray<KubeObject>): ReadonlyArray<KubeObject> {
  const declared = objects.filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata.name);
  const named = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []));
  return [...named]
    .filter((name) => name !== 'default' && !declared.includes(name))
    .map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as KubeObject);
}

/** Namespaces stay: without a controller of namespaces a real API server never ends their deletion. */
const isDeleted = ({ kind }: KubeObject) => kind !== 'Namespace';

describeSideBySide(CLUSTERS, 'samples', (cluster) => {
  let harness: Harness;
  let served: ReadonlySet<string>;
  beforeAll(async () => {
    harness = await openHarness(cluster.name);
    const { stdout } = await harness.kubectl(['api-resources', '--no-headers']);
    // The last three columns: APIVERSION NAMESPACED KIND.
    served = new Set(
      stdout
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .map((row) => `${row.at(-3)} ${row.at(-1)}`),
    );
  });
  afterAll(() => harness?.stop());

  const isServed = ({ apiVersion, kind }: KubeObject) => served.has(`${apiVersion} ${kind}`);
  const file = (objects: ReadonlyArray<KubeObject>) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });

  test.each(names)('%s is applied without a warning, and is unchanged when applied again', async (name) => {
    const objects = withNeeds(name).flatMap((each) => readDocuments(textOf(each)));
    const left = objects.filter((object) => !isServed(object));
    // The embedded cluster also lacks some kinds of Kubernetes.
    if (cluster.name === 'real') expect(left.filter(({ apiVersion }) => !FOREIGN.test(apiVersion ?? ''))).toEqual([]);
    const applied = [...namespacesOf(objects), ...objects.filter(isServed)];
    expect(await harness.kubectl(['apply', '-f', '-'], file(applied))).toMatchObject({ code: 0, stderr: '' });
    const again = await harness.kubectl(['apply', '-f', '-'], file(applied));
    expect(again).toMatchObject({ code: 0, stderr: '' });
    // A Secret with `stringData` is configured at each apply, on any cluster.
    expect(again.stdout.split('\n').filter((line) => !/ unchanged$|^secret\/|^$/.test(line))).toEqual([]);
    const deletion = await harness.kubectl(
      ['delete', '--ignore-not-found', '-f', '-'],
      file(applied.filter(isDeleted).toReversed()),
    );
    expect(deletion).toMatchObject({ code: 0, stderr: '' });
  });
});
