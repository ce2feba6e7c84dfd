import { expect, test } from 'vitest';
import { allowsNamespace } from '../rules/allowed-namespaces.ts';

const team = { name: 'team-a', labels: { tier: 'gold', region: 'eu' } };

test.each([
  ['nothing said', undefined, true],
  ['All', { from: 'All' as const }, true],
  ['Same', { from: 'Same' as const }, false],
  ['a label it has', { from: 'Selector' as const, selector: { matchLabels: { tier: 'gold' } } }, true],
  ['a label with another value', { from: 'Selector' as const, selector: { matchLabels: { tier: 'tin' } } }, false],
  [
    'an inherited member is no label',
    { from: 'Selector' as const, selector: { matchLabels: { constructor: 'x' } } },
    false,
  ],
  ['no selector', { from: 'Selector' as const }, false],
  ['an empty selector', { from: 'Selector' as const, selector: {} }, true],
  ['In', select('tier', 'In', ['tin', 'gold']), true],
  ['In, not there', select('zone', 'In', ['a']), false],
  ['NotIn', select('tier', 'NotIn', ['gold']), false],
  ['NotIn, not there', select('zone', 'NotIn', ['a']), true],
  ['Exists', select('tier', 'Exists'), true],
  ['DoesNotExist', select('tier', 'DoesNotExist'), false],
])('an instance allows a namespace: %s', (_, allowed, isAllowed) => {
  expect(allowsNamespace(allowed, 'platform', team)).toBe(isAllowed);
});

test('`Same` allows the namespace of the instance', () => {
  expect(allowsNamespace({ from: 'Same' }, 'team-a', team)).toBe(true);
});

function select(key: string, operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', values?: string[]) {
  const requirement = { key, operator, ...(values === undefined ? {} : { values }) };
  return { from: 'Selector' as const, selector: { matchExpressions: [requirement] } };
}
