// Names of our kinds, beside those of the projects that share a cluster with them.
import { expect, test } from 'vitest';
import { toManifest } from '#crds/generators/crd.ts';
import { kinds } from '#crds/kinds/kinds.ts';
import reserved from './reserved-names.json' with { type: 'json' };

interface KnownName {
  readonly names: ReadonlyArray<string>;
  readonly categories: ReadonlyArray<string>;
}

const ours: ReadonlyArray<readonly [string, KnownName]> = kinds.map((kind) => {
  const { metadata, spec } = toManifest(kind);
  const { plural, singular, shortNames, categories } = spec.names;
  return [metadata.name, { names: [plural, singular, ...shortNames], categories }];
});
const theirs: ReadonlyArray<readonly [string, KnownName]> = Object.entries(reserved.resources);

const project = (path: string) => theirs.some(([name]) => name === path || name.endsWith(`.${path}`));

test('the list has every project that it must be compared with', () => {
  const groups = ['pods', 'apps', 'gateway.networking.k8s.io', 'serving.knative.dev', 'eventing.knative.dev'];
  const others = ['networking.istio.io', 'serving.kserve.io', 'cert-manager.io'];
  expect([...groups, ...others].filter((path) => !project(path))).toEqual([]);
  expect(theirs.length).toBeGreaterThan(130);
});

// kubectl expands a category before it looks for a name: one of our categories that is a name of theirs takes their
// resource away.
test('kubectl finds none of our resources by a name or category of Kubernetes, Gateway API, Knative, Istio, KServe or cert-manager', () => {
  const taken = new Map(
    theirs.flatMap(([path, { names, categories }]) => [...names, ...categories].map((name) => [name, path])),
  );
  const shared = ours.flatMap(([path, { names, categories }]) =>
    [...names, ...categories]
      .filter((name) => taken.has(name))
      .map((name) => `${path}: ${name} is of ${taken.get(name)}`),
  );
  expect(shared).toEqual([]);
});

test('each of our names belongs to one kind, and the category to none', () => {
  const names = ours.flatMap(([, known]) => known.names);
  expect(new Set(names).size).toBe(names.length);
  expect(ours.flatMap(([, { categories }]) => categories).filter((category) => names.includes(category))).toEqual([]);
});
