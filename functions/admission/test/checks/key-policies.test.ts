// Checks of the key policies of an instance.
import { beforeEach, describe, expect, test } from 'vitest';
import { teams } from '#crds/names/resources.ts';
import { createWorld, GOOD, objectOf, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);
const reviewPolicies = (...keyPolicies: ReadonlyArray<object>) => review('GatewayInstance', { keyPolicies });
const budget = { maxBudget: '20', budgetDuration: '1mo' };

describe('a key policy', () => {
  test('of models that the instance serves, with a Team beside the instance, is accepted without a warning', async () => {
    await world.put(teams, spare('shared', { teamAlias: 'shared', members: [] }, 'platform', 'Team'));
    const perNamespace = { ...budget, budgetWindow: 'Calendar', budgetTimeZone: 'Europe/Berlin' };
    const policy = {
      name: 'a',
      namespaceSelector: { matchLabels: { tier: 'a' } },
      models: ['claude'],
      teamRef: { name: 'shared' },
      perNamespace,
      perKey: { rpmLimit: 6 },
    };
    expect(await reviewPolicies(policy, { name: 'b' })).toEqual({ refused: [], warnings: [] });
  });

  test('of a model that the instance does not serve is refused', async () => {
    expect((await reviewPolicies({ name: 'a' }, { name: 'b', models: ['claude', 'gpt-4'] })).refused).toEqual([
      'spec.keyPolicies[1].models[1]: Not found: "gpt-4": must be exactly a modelName of instance "platform/main"; did you mean "gpt-4o"?',
    ]);
  });

  test('keeps its model from being withdrawn, unless the policy had lost the model before', async () => {
    const keyPolicies = [{ name: 'a', models: ['claude'] }];
    const [gpt] = GOOD.GatewayInstance.models;
    const stored = objectOf('GatewayInstance', { ...GOOD.GatewayInstance, keyPolicies });
    const update = { operation: 'UPDATE', oldObject: stored };
    expect((await review('GatewayInstance', { keyPolicies, models: [gpt] }, {}, update)).refused).toEqual([
      expect.stringContaining('spec.keyPolicies[0].models[0]: Not found: "claude"'),
    ]);
    const withdrawn = objectOf('GatewayInstance', { ...GOOD.GatewayInstance, keyPolicies, models: [gpt] });
    const later = await review(
      'GatewayInstance',
      { keyPolicies, models: [gpt], paused: true },
      {},
      { operation: 'UPDATE', oldObject: withdrawn },
    );
    expect(later).toEqual({ refused: [], warnings: [expect.stringContaining('spec.keyPolicies[0].models[0]')] });
  });

  test('of an unknown time zone is refused', async () => {
    const zone = { ...budget, budgetWindow: 'Calendar', budgetTimeZone: 'Europe/Belrin' };
    expect((await reviewPolicies({ name: 'a', perNamespace: zone, perKey: zone })).refused).toEqual([
      'GatewayInstance "main" is invalid:',
      expect.stringContaining('- spec.keyPolicies[0].perNamespace.budgetTimeZone: Not found: "Europe/Belrin": must be'),
      expect.stringContaining('- spec.keyPolicies[0].perKey.budgetTimeZone: Not found: "Europe/Belrin": must be'),
    ]);
  });

  test('after one that selects all namespaces gets a warning: it never applies', async () => {
    const some = { namespaceSelector: { matchLabels: { tier: 'a' } } };
    const all = [{ name: 'b' }, { name: 'b', namespaceSelector: { matchLabels: {}, matchExpressions: [] } }];
    for (const first of all)
      expect((await reviewPolicies({ name: 'a', ...some }, first, { name: 'c', ...some })).warnings).toEqual([
        'spec.keyPolicies[2]: "c": never applies, because "b" selects all namespaces; move it before "b"',
      ]);
    expect((await reviewPolicies({ name: 'a', ...some }, { name: 'b' })).warnings).toEqual([]);
  });

  test('with a budget per VirtualKey above that of the namespace gets a warning', async () => {
    const warningsOf = async (perKey: object) =>
      (await reviewPolicies({ name: 'a', perNamespace: budget, perKey })).warnings;
    expect(await warningsOf({ ...budget, maxBudget: '20.5' })).toEqual([
      'spec.keyPolicies[0].perKey.maxBudget: "20.5": is more than perNamespace.maxBudget, so the smaller budget applies; write at most "20"',
    ]);
    expect(await warningsOf(budget)).toEqual([]);
    expect(await warningsOf({ maxBudget: '21', budgetDuration: '1d' })).toEqual([]);
    expect(await warningsOf({ rpmLimit: 1 })).toEqual([]);
  });

  test('whose require is a text gets one message: that it must be a list', async () => {
    expect((await reviewPolicies({ name: 'a', require: 'teamRef' })).refused).toEqual([
      expect.stringMatching(/^spec\.keyPolicies\[0\]\.require: Invalid value: "teamRef": must be a list/),
    ]);
  });

  test('with half a budget is refused', async () => {
    expect((await reviewPolicies({ name: 'a', perNamespace: { maxBudget: '20' } })).refused).toEqual([
      'spec.keyPolicies[0].perNamespace.maxBudget: Invalid value: "20": needs budgetDuration, and budgetDuration needs maxBudget; write both, or none',
    ]);
    expect((await reviewPolicies({ name: 'a', perKey: { budgetDuration: '1d' } })).refused).toEqual([
      'spec.keyPolicies[0].perKey.maxBudget: Required value: needs budgetDuration, and budgetDuration needs maxBudget; write both, or none',
    ]);
  });

  test('whose Team is missing, or belongs to another instance, gets a warning: its keys are refused', async () => {
    const refused = "Until then all requests of this policy's namespaces fail with 403 key_blocked";
    const elsewhere = { instanceRef: { name: 'other', namespace: 'platform' } };
    await world.put(teams, spare('foreign', { teamAlias: 'x', connectionRef: elsewhere }, 'platform', 'Team'));
    const namespaceSelector = { matchLabels: { tier: 'a' } };
    const policies = ['research', 'foreign'].map((name) => ({ name, namespaceSelector, teamRef: { name } }));
    expect(await reviewPolicies(...policies)).toEqual({
      refused: [],
      warnings: [
        `spec.keyPolicies[0].teamRef.name: Not found: "research": no Team of this name is in namespace "platform"; create it, or correct the name. ${refused}`,
        `spec.keyPolicies[1].teamRef.name: Invalid value: "foreign": must be a Team of the same instance, but is of another one (platform/other); choose one of the same. ${refused}`,
      ],
    });
  });

  test('whose budget is zero, or whose calendar has no effect, gets a warning', async () => {
    const policy = {
      name: 'a',
      perNamespace: { maxBudget: '0', budgetDuration: '1d', budgetTimeZone: 'UTC' },
      perKey: { budgetWindow: 'Calendar' },
    };
    expect((await reviewPolicies(policy)).warnings).toEqual([
      'spec.keyPolicies[0].perNamespace.budgetTimeZone: "UTC": has no effect on Rolling windows; set budgetWindow: Calendar, or remove it',
      expect.stringContaining('spec.keyPolicies[0].perNamespace.maxBudget: "0": a budget of zero'),
      'spec.keyPolicies[0].perKey.budgetWindow: "Calendar": has no effect without maxBudget and budgetDuration; add them, or remove budgetWindow',
    ]);
  });
});
