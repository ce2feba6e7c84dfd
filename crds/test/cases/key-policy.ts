// Key policies of GatewayInstances: good ones, and the violations of the others.
import { accept, type Case, refuse } from './case.ts';

const policies = (...list: ReadonlyArray<object>) => ({ 'spec.keyPolicies': list });
const budget = { maxBudget: '20', budgetDuration: '1d' };

export const keyPolicies: readonly Case[] = [
  accept('GatewayInstance', 'with no policies', policies()),
  accept('GatewayInstance', 'with a policy of only a name', policies({ name: 'exempt' })),
  accept(
    'GatewayInstance',
    'with everything that keyPolicies takes',
    policies(
      {
        name: 'research',
        namespaceSelector: {
          matchLabels: { tier: 'research' },
          matchExpressions: [{ key: 'off', operator: 'DoesNotExist' }],
        },
        require: ['teamRef', 'userRef'],
        models: ['gpt-4o'],
        teamRef: { name: 'research' },
        perNamespace: {
          ...budget,
          budgetWindow: 'Calendar',
          budgetTimeZone: 'Europe/Berlin',
          rpmLimit: 60,
          tpmLimit: 200_000,
          maxParallelRequests: 50,
        },
        perKey: { ...budget, budgetWindow: 'Rolling', rpmLimit: 6, tpmLimit: 20_000, maxParallelRequests: 5 },
      },
      { name: 'everybody-else', namespaceSelector: {}, models: [], perNamespace: { rpmLimit: 60 }, perKey: {} },
    ),
  ),
  accept(
    'GatewayInstance',
    'with 64 policies',
    policies(...Array.from({ length: 64 }, (_, index) => ({ name: `p${index}`, perNamespace: budget }))),
  ),
  refuse(
    'GatewayInstance',
    'with 65 policies',
    policies(...Array.from({ length: 65 }, (_, index) => ({ name: `p${index}` }))),
    ['TooLarge', 'spec.keyPolicies'],
  ),
  refuse('GatewayInstance', 'with a policy without a name', policies({ perNamespace: budget }), [
    'Required',
    'spec.keyPolicies[0].name',
  ]),
  refuse('GatewayInstance', 'with a policy whose name is no DNS label', policies({ name: 'every.body' }), [
    'Malformed',
    'spec.keyPolicies[0].name',
  ]),
  refuse('GatewayInstance', 'with a policy whose name is too long', policies({ name: 'a'.repeat(64) }), [
    'TooLarge',
    'spec.keyPolicies[0].name',
  ]),
  refuse('GatewayInstance', 'with two policies of one name', policies({ name: 'a' }, { name: 'b' }, { name: 'a' }), [
    'Duplicate',
    'spec.keyPolicies[2].name',
  ]),
  refuse('GatewayInstance', 'with a policy that requires nothing', policies({ name: 'a', require: [] }), [
    'NothingRequired',
    'spec.keyPolicies[0].require',
  ]),
  refuse(
    'GatewayInstance',
    'with a policy that requires a field of no key',
    policies({ name: 'a', require: ['tags'] }),
    ['NotInEnum', 'spec.keyPolicies[0].require[0]'],
  ),
  refuse(
    'GatewayInstance',
    'with a policy that requires a Team twice',
    policies({ name: 'a', require: ['teamRef', 'teamRef'] }),
    ['Duplicate', 'spec.keyPolicies[0].require[1]'],
  ),
  refuse(
    'GatewayInstance',
    'with a budget of namespaces without its duration',
    policies({ name: 'a', perNamespace: { maxBudget: '20' } }),
    ['HalfBudget', 'spec.keyPolicies[0].perNamespace.maxBudget'],
  ),
  refuse(
    'GatewayInstance',
    'with a duration of keys without its budget',
    policies({ name: 'a', perKey: { budgetDuration: '1d', rpmLimit: 6 } }),
    ['HalfBudget', 'spec.keyPolicies[0].perKey.maxBudget'],
  ),
  refuse(
    'GatewayInstance',
    'with a budget of namespaces without quotes',
    policies({ name: 'a', perNamespace: { ...budget, maxBudget: 20 } }),
    ['WrongType', 'spec.keyPolicies[0].perNamespace.maxBudget'],
  ),
  refuse(
    'GatewayInstance',
    'with a budget of a thousand years',
    policies({ name: 'a', perKey: { ...budget, budgetDuration: '365250d' } }),
    ['DurationTooLong', 'spec.keyPolicies[0].perKey.budgetDuration'],
  ),
  refuse(
    'GatewayInstance',
    'with a policy of weekly windows by another word',
    policies({ name: 'a', perKey: { ...budget, budgetWindow: 'Weekly' } }),
    ['NotInEnum', 'spec.keyPolicies[0].perKey.budgetWindow'],
  ),
  refuse(
    'GatewayInstance',
    'with a policy whose time zone has a blank',
    policies({ name: 'a', perKey: { ...budget, budgetWindow: 'Calendar', budgetTimeZone: 'Central Europe' } }),
    ['Malformed', 'spec.keyPolicies[0].perKey.budgetTimeZone'],
  ),
  refuse(
    'GatewayInstance',
    'with a limit of no requests for each key',
    policies({ name: 'a', perKey: { rpmLimit: 0 } }),
    ['TooSmall', 'spec.keyPolicies[0].perKey.rpmLimit'],
  ),
  refuse(
    'GatewayInstance',
    'with a policy that names models of 40,000 characters',
    policies({ name: 'a', models: Array.from({ length: 200 }, (_, index) => `${index}`.padEnd(200, 'm')) }),
    ['TooLarge', 'spec.keyPolicies[0].models'],
  ),
  refuse(
    'GatewayInstance',
    'with a policy of a bad label',
    policies({ name: 'a', namespaceSelector: { matchLabels: { 'two words': 'x' } } }),
    ['EntryName', 'spec.keyPolicies[0].namespaceSelector.matchLabels'],
  ),
  refuse(
    'GatewayInstance',
    'with a policy for a label in no list',
    policies({ name: 'a', namespaceSelector: { matchExpressions: [{ key: 'tier', operator: 'NotIn' }] } }),
    ['ValuesOfRequirement', 'spec.keyPolicies[0].namespaceSelector.matchExpressions[0].values'],
  ),
  refuse('GatewayInstance', 'with a policy whose Team has no name', policies({ name: 'a', teamRef: {} }), [
    'Required',
    'spec.keyPolicies[0].teamRef.name',
  ]),
  {
    ...refuse('GatewayInstance', 'whose second policy loses its duration', {}, [
      'HalfBudget',
      'spec.keyPolicies[1].perNamespace.maxBudget',
    ]),
    edit: policies({ name: 'a', perNamespace: budget }, { name: 'b', perNamespace: { maxBudget: '20' } }),
    stored: policies({ name: 'a', perNamespace: budget }, { name: 'b', perNamespace: budget }),
  },
];
