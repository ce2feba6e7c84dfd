import { describe, expect, test } from 'vitest';
import type { KeyPolicySpec } from '#crds/kinds/key-policy.ts';
import { modelsWithin, policyNeedsLabels, policyOfNamespace } from '../rules/key-policies.ts';
import type { NamespaceLabels } from '../rules/label-selector.ts';

const research = { name: 'lab', labels: { tier: 'research', 'kubernetes.io/metadata.name': 'lab' } };
const platform = { name: 'platform', labels: {} };
const policies: ReadonlyArray<KeyPolicySpec> = [
  { name: 'research', namespaceSelector: { matchLabels: { tier: 'research' } } },
  {
    name: 'own',
    namespaceSelector: { matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] },
  },
  { name: 'labs', namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'lab' } } },
];

describe('the policy of a namespace', () => {
  test.each<[string, NamespaceLabels, ReadonlyArray<KeyPolicySpec> | undefined, string | undefined]>([
    ['the first that matches, and no later one', research, policies, 'research'],
    ['the first that matches in another order', research, policies.toReversed(), 'labs'],
    ['that of a label which the namespace does not have', platform, policies, 'own'],
    ['one without a selector', research, [{ name: 'all' }, ...policies], 'all'],
    ['one with an empty selector', research, [{ name: 'all', namespaceSelector: {} }, ...policies], 'all'],
    ['none without a match', platform, policies.slice(0, 1), undefined],
    ['none of an empty list', platform, [], undefined],
    ['none without a list', platform, undefined, undefined],
  ])('is %s', (_, namespace, list, name) => {
    expect(policyOfNamespace(list, namespace)?.name).toBe(name);
  });

  test('needs the labels of the namespace, unless the first policy applies to all', () => {
    expect(policyNeedsLabels(policies)).toBe(true);
    expect(policyNeedsLabels(policies.slice(1))).toBe(true);
    expect(policyNeedsLabels([{}, ...policies])).toBe(false);
    expect(policyNeedsLabels([{ namespaceSelector: { matchLabels: {} } }, ...policies])).toBe(false);
    expect(policyNeedsLabels([])).toBe(false);
    expect(policyNeedsLabels(undefined)).toBe(false);
  });
});

test.each([
  ['all', [], [], []],
  ['those of the policy for a key with all models', [], ['small'], ['small']],
  ['those of the key if the policy has none', ['large'], [], ['large']],
  ['those in both lists', ['large', 'small'], ['small', 'medium'], ['small']],
  ['none, not all, if nothing is in both', ['large'], ['small'], undefined],
])('the models of a key within its policy are %s', (_, own, models, left) => {
  expect(modelsWithin(own, { models })).toEqual(left);
  if (models.length === 0) expect(modelsWithin(own, undefined)).toEqual(left);
});
