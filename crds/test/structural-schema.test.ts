import { expect, test } from 'vitest';
import * as z from 'zod';
import { toManifest } from '../generators/crd.ts';
import { type StructuralSchema, toStructural } from '../generators/structural-schema.ts';
import { kinds } from '../kinds/kinds.ts';
import { listBy, listOf, setOf, withRule } from '../validation/rule.ts';

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

const rule = (cel: string, at?: string) => ({
  id: 'Never',
  cel,
  message: 'never',
  isMet: () => true,
  ...(at === undefined ? {} : { at }),
});

test('a rule, a list type and a default reach the manifest through what makes a field optional', () => {
  const inner = withRule(z.object({ a: setOf(text, 2).default([]).describe('a') }), rule('false'));
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
    'x-kubernetes-validations': [{ rule: 'false', message: 'never' }],
  });
});

const entry = withRule(z.object({ a: text.describe('a'), b: text.describe('b') }), rule('self.a < self.b', 'a'));

test('a rule that points at one of several fields holds where that field was as wrong before', () => {
  expect(of(entry.describe('x')).properties?.field?.['x-kubernetes-validations']).toEqual([
    {
      message: 'never',
      fieldPath: '.a',
      optionalOldSelf: true,
      rule:
        '(self.a < self.b) || (oldSelf.hasValue() && [oldSelf.value()].exists(old, self == old || ' +
        '(has(self.a) == has(old.a) && (!has(self.a) || self.a == old.a) && !(old.a < old.b))))',
    },
  ]);
});

test('rules about one value and about change stay as they are', () => {
  for (const one of [rule('size(self) > 1'), rule('self.a == oldSelf.a', 'a')]) {
    const [written] = of(withRule(z.object({ a: text.describe('a') }), one).describe('x')).properties?.field?.[
      'x-kubernetes-validations'
    ] ?? [undefined];
    expect(written).toMatchObject({ rule: one.cel });
    expect(written).not.toHaveProperty('optionalOldSelf');
  }
});

test('the API server finds the stored value in fields, maps and lists by key, and nowhere else', () => {
  const map = z.record(z.string(), entry).meta({ maxProperties: 3 });
  const isOptional = (schema: StructuralSchema | undefined) =>
    schema?.['x-kubernetes-validations']?.[0]?.optionalOldSelf === true;
  const field = (one: z.ZodType) => of(one.describe('x')).properties?.field;
  expect(isOptional(field(entry))).toBe(true);
  expect(isOptional(field(map)?.additionalProperties)).toBe(true);
  expect(isOptional(field(listBy('a', entry, 2))?.items)).toBe(true);
  expect(isOptional(field(listOf(entry, 2))?.items)).toBe(false);
});

test('no kind has a rule at its root but the one about its name', () => {
  for (const kind of kinds) {
    const [version] = toManifest(kind).spec.versions;
    for (const { rule } of version.schema.openAPIV3Schema['x-kubernetes-validations'] ?? []) {
      expect(rule).toMatch(/^self\.metadata\.name\.matches\('[^']*'\)$/);
    }
  }
});
