// Names by which kubectl finds the resources of Kubernetes and of projects that share a cluster with the operator.
//   node infra/tools/generate-reserved-names.ts KUBECONFIG GO_MODULE_CACHE
// KUBECONFIG: a kube-apiserver without CRDs, whose discovery has the built-in resources. GO_MODULE_CACHE: where `go mod
// download` put the modules below, whose CRDs have the rest.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

const FILE = join(import.meta.dirname, '../../test/rules/reserved-names.json');

/** Modules, and the files in each that define its CRDs. */
const MODULES: Readonly<Record<string, string>> = {
  'sigs.k8s.io/gateway-api@v1.7.0': 'config/crd/*/*.yaml',
  'knative.dev/serving@v0.50.0': 'config/core/300-resources/*.yaml',
  'knative.dev/networking@v0.0.0-20260727162500-c7a7b772cac9': 'config/*.yaml',
  'knative.dev/caching@v0.0.0-20260727161800-0edbf88bc267': 'config/*.yaml',
  'knative.dev/eventing@v0.50.0': 'config/{core,channels/in-memory-channel}/resources/*.yaml',
  'istio.io/api@v1.32.0': 'kubernetes/customresourcedefinitions.gen.yaml',
  'github.com/kserve/kserve@v0.19.0': 'config/crd/full/**/*_*s.yaml',
  'github.com/cert-manager/cert-manager@v1.21.2': 'deploy/crds/*.yaml',
};

/** The names of one resource, as discovery and CRDs have them. */
interface Names {
  readonly plural: string;
  readonly singular?: string;
  readonly kind: string;
  readonly shortNames?: ReadonlyArray<string>;
  readonly categories?: ReadonlyArray<string>;
}
type Resource = Names & { readonly group: string };

function main(kubeconfig: string, modules: string): void {
  const { gitVersion } = read<{ gitVersion: string }>(kubeconfig, '/version');
  const found = [
    ...builtIn(kubeconfig),
    ...Object.entries(MODULES).flatMap(([name, files]) => defined(modules, name, files)),
  ];
  const lines = [...new Map(found.map((one) => [pathOf(one), toLine(one)]))].sort(([a], [b]) => (a < b ? -1 : 1));
  const source = [`Kubernetes ${gitVersion}`, ...Object.keys(MODULES)];
  const date = new Date().toISOString().slice(0, 10);
  const resources = lines.map(([, line]) => line).join(',\n');
  writeFileSync(FILE, `{"date":"${date}","source":${JSON.stringify(source)},"resources":{\n${resources}\n}}\n`);
}

const pathOf = ({ plural, group }: Resource) => `${plural}.${group}`.replace(/\.$/, '');

/** kubectl finds a resource by its lower-case kind too, where it has no singular name. */
function toLine(resource: Resource): string {
  const { plural, singular, kind, shortNames = [], categories = [] } = resource;
  const names = [...new Set([plural, singular || kind.toLowerCase(), ...shortNames])];
  return `${JSON.stringify(pathOf(resource))}:${JSON.stringify({ names, categories })}`;
}

function read<T>(kubeconfig: string, path: string): T {
  const args = ['--kubeconfig', kubeconfig, 'get', '--raw', path];
  return JSON.parse(execFileSync('kubectl', args, { encoding: 'utf8' })) as T;
}

function builtIn(kubeconfig: string): ReadonlyArray<Resource> {
  type Group = { readonly name: string; readonly preferredVersion: { readonly groupVersion: string } };
  type ListedResource = Omit<Names, 'plural' | 'singular'> & { readonly name: string; readonly singularName: string };
  const { groups } = read<{ groups: ReadonlyArray<Group> }>(kubeconfig, '/apis');
  const paths = groups.map(({ name, preferredVersion }) => [name, `/apis/${preferredVersion.groupVersion}`] as const);
  return [['', '/api/v1'] as const, ...paths].flatMap(([group, path]) =>
    read<{ resources: ReadonlyArray<ListedResource> }>(kubeconfig, path)
      .resources.filter(({ name }) => !name.includes('/'))
      .map(({ name, singularName, ...names }) => ({ ...names, group, plural: name, singular: singularName })),
  );
}

function defined(modules: string, name: string, files: string): ReadonlyArray<Resource> {
  type Definition = { readonly kind: string; readonly spec: { readonly group: string; readonly names: Names } };
  const definitions = globSync(files, { cwd: join(modules, name) })
    .flatMap((file) => parseAllDocuments(readFileSync(join(modules, name, file), 'utf8'), { logLevel: 'silent' }))
    .map((document) => document.toJS() as Definition | null)
    .filter((object) => object?.kind === 'CustomResourceDefinition');
  if (definitions.length === 0) throw new Error(`${name} has no CRD in ${files}: run go mod download ${name}`);
  return definitions.flatMap((one) => (one === null ? [] : [{ ...one.spec.names, group: one.spec.group }]));
}

const [kubeconfig, modules] = process.argv.slice(2);
if (kubeconfig === undefined || modules === undefined) {
  process.stderr.write('usage: generate-reserved-names.ts KUBECONFIG GO_MODULE_CACHE\n');
  process.exitCode = 2;
} else main(kubeconfig, modules);
