// Changes of a CRD: which of them stored objects and manifests survive.
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { findBreaks } from '../crd-changes.ts';

const crd = (spec: object, version = 'v1alpha1', more: object = {}) =>
  stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'virtualkeys' },
    spec: {
      names: { kind: 'VirtualKey' },
      versions: [
        {
          name: version,
          served: true,
          ...more,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', ...spec } } } },
        },
      ],
    },
  });

const text = { type: 'string', maxLength: 20 };
const before = {
  required: ['alias'],
  properties: {
    alias: text,
    policy: { type: 'string', enum: ['Delete', 'Retain'] },
    models: { type: 'array', items: text },
  },
};
const changed = (properties: object, more: object = {}) =>
  crd({ ...before, ...more, properties: { ...before.properties, ...properties } });

test.each([
  [
    'a field that is gone',
    crd({ ...before, properties: { alias: text, policy: before.properties.policy } }),
    ['.spec.models is gone'],
  ],
  [
    'another type',
    changed({ alias: { type: 'integer', maxLength: 20 } }),
    ['.spec.alias was of type string, is of type integer'],
  ],
  [
    'a value that is gone',
    changed({ policy: { type: 'string', enum: ['Delete'] } }),
    ['.spec.policy must not be Retain any more'],
  ],
  [
    'a list of values, where all were allowed',
    changed({ alias: { ...text, enum: ['a'] } }),
    ['.spec.alias must not be outside a any more'],
  ],
  [
    'a field that is newly required',
    changed({}, { required: ['alias', 'policy'] }),
    ['.spec.policy is newly required'],
  ],
  [
    'a tighter bound inside a list',
    changed({ models: { type: 'array', items: { ...text, maxLength: 10 } } }),
    ['.spec.models[] has maxLength 10, had 20'],
  ],
  [
    'a bound where there was none',
    changed({ models: { type: 'array', items: text, maxItems: 3 } }),
    ['.spec.models has maxItems 3, had none'],
  ],
])('%s is a break', (_, after, lines) => {
  expect(findBreaks(crd(before), after)).toEqual(lines.map((line) => `VirtualKey v1alpha1:${line}`));
});

test('a version that is gone, or no longer served, is a break', () => {
  const removed = ['VirtualKey v1alpha1: is not served any more'];
  expect(findBreaks(crd(before), crd(before, 'v1'))).toEqual(removed);
  expect(findBreaks(crd(before), crd(before, 'v1alpha1', { served: false }))).toEqual(removed);
  expect(findBreaks(crd(before), '')).toEqual(removed);
});

test('new optional fields, further values and wider bounds are no break', () => {
  const wider = {
    alias: { type: 'string' },
    policy: { type: 'string', enum: ['Delete', 'Retain', 'Ask'] },
    more: text,
  };
  expect(findBreaks(crd(before), changed(wider, { required: [] }))).toEqual([]);
});
