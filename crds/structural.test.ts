import { expect, test } from 'vitest';
import * as z from 'zod';
import { kinds } from './kinds.ts';
import { asSet } from './list-type.ts';
import { toManifest } from './manifest.ts';
import { ruled } from './ruled.ts';
import { toStructural } from './structural.ts';

const text = z.string().max(10);
const of = (field: z.ZodType) => toStructural(z.object({ field }).describe('a spec'), 'spec');

test.each([
  ['a union', z.union([text, z.int()]).describe('x'), 'spec.field: anyOf is not structural'],
  [
    'a free-form object',
    z.looseObject({ a: text.describe('x') }).describe('x'),
    'spec.field{}: undefined is not a structural type',
  ],
  ['anything', z.unknown().describe('x'), 'spec.field: undefined is not a structural type'],
  ['a number that is no integer', z.number().describe('x'), 'spec.field: number is not a structural type'],
  ['a field without a description', text, 'spec.field: no description'],
  ['a string without a bound', z.string().describe('x'), 'spec.field: no maxLength'],
  ['a list without a bound', z.array(text).describe('x'), 'spec.field: no maxItems'],
  ['a map without a bound', z.record(z.string(), text).describe('x'), 'spec.field: no maxProperties'],
  [
    'a default inside a list item',
    z
      .array(z.object({ a: text.default('x').describe('x') }))
      .max(3)
      .describe('x'),
    'spec.field[].a: a default inside a list item',
  ],
])('%s is refused when the manifest is made', (_, field, message) => {
  expect(() => of(field)).toThrow(message);
});

test('a rule, a list type and a default reach the manifest through what makes a field optional', () => {
  const rule = { id: 'Never', cel: 'false', message: 'never', at: 'a', holds: () => false };
  const inner = ruled(z.object({ a: z.array(text).max(2).meta(asSet).default([]).describe('a') }), [rule]);
  expect(of(inner.prefault({}).describe('x')).properties?.field).toEqual({
    type: 'object',
    description: 'x',
    default: { a: [] },
    properties: {
      a: {
        type: 'array',
        description: 'a',
        maxItems: 2,
        default: [],
        items: { type: 'string', maxLength: 10 },
        'x-kubernetes-list-type': 'set',
      },
    },
    'x-kubernetes-validations': [{ rule: 'false', message: 'never', fieldPath: '.a' }],
  });
});

test('no kind has a rule at its root but the one about its name', () => {
  for (const kind of kinds) {
    const [version] = toManifest(kind).spec.versions;
    for (const { rule } of version.schema.openAPIV3Schema['x-kubernetes-validations'] ?? []) {
      expect(rule).toMatch(/^self\.metadata\.name\.matches\('[^']*'\)$/);
    }
  }
});
