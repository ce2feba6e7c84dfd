// Do the rules that a CRD holds let be what was wrong before, where nothing else does?
import { expect, test } from 'vitest';
import { ratcheting } from './ratchet.ts';
import type { StructuralSchema } from './structural.ts';

const aboutTwo = { rule: 'self.a < self.b', message: 'wrong', fieldPath: '.a' };
const aboutOne = { rule: 'size(self) > 1', message: 'wrong' };
const aboutChange = { rule: 'self.a == oldSelf.a', message: 'immutable', fieldPath: '.a' };
const entry = { type: 'object', properties: {}, 'x-kubernetes-validations': [aboutTwo] } as const;
const rulesOf = (schema: StructuralSchema | undefined) => schema?.['x-kubernetes-validations'];

test('a rule that points at one of several fields holds where that field was as wrong before', () => {
  expect(rulesOf(ratcheting(entry))).toEqual([
    {
      message: 'wrong',
      fieldPath: '.a',
      optionalOldSelf: true,
      rule:
        '(self.a < self.b) || (oldSelf.hasValue() && [oldSelf.value()].exists(old, self == old || ' +
        '(has(self.a) == has(old.a) && (!has(self.a) || self.a == old.a) && !(old.a < old.b))))',
    },
  ]);
});

test('rules about one value and about change stay as they are', () => {
  const schema = { ...entry, 'x-kubernetes-validations': [aboutOne, aboutChange] } as const;
  expect(ratcheting(schema)).toEqual(schema);
});

test('it is done wherever the API server finds the old value: in fields, maps and lists by key, and nowhere else', () => {
  const list = { type: 'array', items: entry } as const;
  const { properties } = ratcheting({
    type: 'object',
    properties: {
      field: entry,
      map: { type: 'object', additionalProperties: entry },
      byKey: { ...list, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
      whole: { ...list, 'x-kubernetes-list-type': 'atomic' },
    },
  });
  const isOptional = (schema: StructuralSchema | undefined) => rulesOf(schema)?.[0]?.optionalOldSelf === true;
  expect(isOptional(properties?.field)).toBe(true);
  expect(isOptional(properties?.map?.additionalProperties)).toBe(true);
  expect(isOptional(properties?.byKey?.items)).toBe(true);
  expect(isOptional(properties?.whole?.items)).toBe(false);
});
