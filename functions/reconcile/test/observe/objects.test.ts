// The parts of an object that a run keeps, whatever its author writes.
import { serialize } from 'node:v8';
import { expect, test } from 'vitest';
import { ROTATE_ANNOTATION } from '#crds/names/group.ts';
import { makeKey } from '../../../../test/reconcile/objects.ts';
import { toOwnObjectView } from '../../observe/objects.ts';

const fill = (length: number) =>
  Object.fromEntries(Array.from({ length }, (_, index) => [`example.com/${index}`, 'x'.repeat(60)]));
const user = { apiVersion: 'v1', kind: 'User', name: 'ada', uid: 'u' };
const { metadata, ...key } = makeKey();
const full = {
  ...metadata,
  uid: 'u',
  labels: fill(1000),
  annotations: { ...fill(4000), [ROTATE_ANNOTATION]: 'now', 'auth.gateway-operator.dev/more': 'x'.repeat(200_000) },
  ownerReferences: [...Array.from({ length: 1000 }, (_, index) => ({ ...user, kind: 'Pod', uid: `${index}` })), user],
  managedFields: [{ fieldsV1: fill(1000) }],
};

test('a run keeps the metadata that planning reads', () => {
  const own = toOwnObjectView({ ...key, metadata: full });
  expect(own?.object?.metadata).toMatchObject({
    annotations: { [ROTATE_ANNOTATION]: 'now' },
    ownerReferences: [user],
  });
  expect(serialize(own).byteLength).toBeLessThan(2000);
});

test('a run keeps the violations of a spec that is too large, with their sizes', () => {
  const spec = { ...(key.spec as object), metadata: fill(1000), secretTemplate: { data: { a: 'x'.repeat(500_000) } } };
  const own = toOwnObjectView({ ...key, metadata, spec });
  expect(own?.object).toBeUndefined();
  expect(own?.violations).toMatchObject([
    { path: 'spec.metadata', type: 'Too many' },
    { path: 'spec.metadata', message: 'may have at most 2048 characters in all and has 74890; shorten or remove some' },
    { path: 'spec.secretTemplate.data.a', type: 'Too long' },
  ]);
  expect(serialize(own).byteLength).toBeLessThan(4000);
});
