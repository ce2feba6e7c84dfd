import { expect, test } from 'vitest';
import type { KubeObject, ObjectMeta } from '../../object.ts';
import { coreResources } from '../../resources/core-resources.ts';
import { metadataCauses } from '../../write/metadata-rules.ts';

const resource = (plural: string) => {
  const found = coreResources.find((one) => one.plural === plural);
  if (found === undefined) throw new Error(plural);
  return found;
};
const object = (metadata: ObjectMeta): KubeObject => ({ apiVersion: 'v1', kind: 'X', metadata });
const causes = (metadata: ObjectMeta, plural = 'configmaps') =>
  metadataCauses(resource(plural), object(metadata)).map(({ field, message }) => `${field}: ${message}`);

test.each([
  ['configmaps', 'a.b-c.1', true],
  ['configmaps', '2gpt', true],
  ['configmaps', 'a'.repeat(253), true],
  ['configmaps', 'a'.repeat(254), false],
  ['configmaps', 'A', false],
  ['configmaps', 'a_b', false],
  ['configmaps', '-a', false],
  ['namespaces', '2gpt', true],
  ['namespaces', 'a'.repeat(64), false],
  ['clusterroles', 'system:admin', true],
  ['clusterroles', 'a/b', false],
  ['clusterroles', '..', false],
])('of %s the name %s is legal: %s', (plural, name, legal) => {
  expect(causes({ name }, plural).length === 0).toBe(legal);
});

test('a name or the beginning of one is needed', () => {
  expect(causes({})).toEqual(['metadata.name: Required value: name or generateName is required']);
  expect(causes({ generateName: 'a-' })).toEqual([]);
});

test.each([
  [{ labels: { 'example.com/a': 'b' } }, []],
  [
    { labels: { 'a b': 'c' } },
    ['metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters'],
  ],
  [
    { labels: { a: 'b c' } },
    ['metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of'],
  ],
  [{ labels: { a: 'x'.repeat(64) } }, ['metadata.labels: Invalid value: "xxx']],
  [{ labels: { '/a': 'b' } }, ['metadata.labels: Invalid value: "/a": prefix part must be non-empty']],
  [{ annotations: { 'a/b/c': 'd' } }, ['metadata.annotations: Invalid value: "a/b/c": name part must consist of']],
  [{ annotations: { a: 'x'.repeat(300_000) } }, ['metadata.annotations: Too long: may not be more than 262144 bytes']],
  [{ finalizers: ['x y'] }, ['metadata.finalizers: Invalid value: "x y"']],
  [{ finalizers: ['short', 'example.com/long'] }, []],
  [
    { ownerReferences: [{ apiVersion: 'v1', kind: 'A', name: '', uid: 'u' }] },
    ['metadata.ownerReferences.name: Invalid value: "": must not be empty'],
  ],
])('%j', (metadata, wanted) => {
  const found = causes({ name: 'a', ...metadata });
  expect(found).toHaveLength(wanted.length);
  for (const [i, words] of wanted.entries()) expect(found[i]).toContain(words);
});

test('only one owner can be the controller', () => {
  const owner = (name: string) => ({ apiVersion: 'v1', kind: 'A', name, uid: name, controller: true });
  expect(causes({ name: 'a', ownerReferences: [owner('x'), owner('y')] })[0]).toContain(
    'Only one reference can have Controller set to true. Found "true" in references for A/x and A/y',
  );
});
