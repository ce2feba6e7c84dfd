// Identities of findings: the same after a list is reordered, and different otherwise.
import { expect, test } from 'vitest';
import type { Finding } from '#core/rules/finding.ts';
import { identityOf } from '../decide.ts';

const at = (path: string, value: unknown = 1, rule = 'Rule'): Finding => ({
  rule,
  path,
  value,
  message: '',
  effect: 'refuse',
});
const one = {
  models: [{ identifier: 'a' }, { identifier: 'b' }],
  members: [{ name: 'x' }],
  tags: ['t', 'u'],
  'odd"key': 1,
};
const other = {
  models: [{ identifier: 'b' }, { identifier: 'a' }],
  members: [{ name: 'y' }, { name: 'x' }],
  tags: ['u'],
};

test.each([
  ['spec.models[0].nameRef', 'spec.models[1].nameRef'],
  ['spec.members[0].name', 'spec.members[1].name'],
  ['spec.tags[1]', 'spec.tags[0]'],
  ['spec.maxBudget', 'spec.maxBudget'],
])('%s of one object is %s of the other', (left, right) => {
  expect(identityOf(at(left), one)).toBe(identityOf(at(right), other));
});

test.each([
  ['another place', at('spec.models[0].a'), at('spec.models[0].a')],
  ['another value', at('spec.x', 1), at('spec.x', 2)],
  ['another rule', at('spec.x', 1, 'A'), at('spec.x', 1, 'B')],
  ['an added value', at('spec.x', undefined), at('spec.x', 'y')],
])('%s is another finding', (_, left, right) => {
  expect(identityOf(left, one)).not.toBe(identityOf(right, other));
});

test('a path to a missing value, or through unusual names, has its own identity', () => {
  expect(() => identityOf(at('spec.none[3]["a\\"b"].c[0]'), one)).not.toThrow();
  expect(identityOf(at('spec.models[0]'), undefined)).not.toBe(identityOf(at('spec.models[1]'), undefined));
});
