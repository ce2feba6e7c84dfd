// Checks of VirtualKeys and Users against the key policy of their namespace.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users } from '#crds/names/resources.ts';
import { createWorld, GOOD, objectOf, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

const setPolicies = async (keyPolicies: ReadonlyArray<object>, more: object = {}) => {
  const patch = { spec: { keyPolicies, ...more } };
  const written = await world.cluster.patch(gatewayInstances, 'platform', 'main', patch);
  expect(written.ok).toBe(true);
};
const NAMED = 'key policy "lab" of instance "platform/main"';
const ASK = 'For an exception ask the owner of the instance.';
const update = (oldObject: unknown) => ({ operation: 'UPDATE', oldObject });
/** A User whom no Team names, and who names none. */
const putLoner = () =>
  world.put(
    users,
    spare('loner', { userEmail: 'l@example.com', autoCreateKey: false, teamRefs: [] }, 'team-a', 'User'),
  );

describe('a new VirtualKey', () => {
  test('without what its policy requires is refused, with the policy, the field, the rule and whom to ask', async () => {
    await setPolicies([{ name: 'lab', require: ['teamRef', 'userRef'] }], {
      blockedMessage: 'Ask in\n#ai-platform.\n',
    });
    expect((await review('VirtualKey', { teamRef: undefined, userRef: undefined })).refused).toEqual([
      'VirtualKey "billing" is invalid:',
      `- spec.teamRef: Required value: ${NAMED} requires a Team; add teamRef, or userRef of a User that is in a Team. Ask in #ai-platform.`,
      `- spec.userRef: Required value: ${NAMED} requires a User; add userRef. Ask in #ai-platform.`,
    ]);
  });

  test('of a model that its policy does not allow is refused', async () => {
    await setPolicies([{ name: 'lab', models: ['gpt-4o'] }]);
    expect((await review('VirtualKey', { models: ['gpt-4o', 'claude'] })).refused).toEqual([
      `spec.models[1]: Unsupported value: "claude": ${NAMED} does not allow this model; choose among "gpt-4o". ${ASK}`,
    ]);
    expect((await review('VirtualKey', { models: [] })).refused, 'all means what the policy allows').toEqual([]);
    expect((await review('VirtualKey', { models: ['llama'] })).refused, 'a model that nobody serves').toEqual([
      expect.stringContaining('must be exactly a modelName'),
    ]);
  });

  test('is judged by the first policy that selects its namespace, and by none without a match', async () => {
    const strict = { name: 'lab', require: ['teamRef'] };
    const withoutTeam = { teamRef: undefined, userRef: undefined };
    const refusals = async () => (await review('VirtualKey', withoutTeam)).refused.length;
    const selects = (name: string) => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } });
    await setPolicies([{ ...strict, ...selects('team-a') }]);
    expect(await refusals()).toBe(1);
    await setPolicies([{ ...strict, ...selects('team-b') }]);
    expect(await refusals()).toBe(0);
    await setPolicies([{ name: 'exempt', ...selects('team-a') }, strict]);
    expect(await refusals()).toBe(0);
    await setPolicies([]);
    expect(await refusals()).toBe(0);
  });

  test('has a Team by its User, whichever of the two names the other', async () => {
    await setPolicies([{ name: 'lab', require: ['teamRef'] }]);
    const ofUser = (name: string) => review('VirtualKey', { teamRef: undefined, userRef: { name } });
    expect((await ofUser('alice')).refused, 'the User names the Team').toEqual([]);
    await putLoner();
    expect((await ofUser('loner')).refused).toEqual([expect.stringContaining('spec.teamRef: Required value')]);
    const elsewhere = { connectionRef: { instanceRef: { name: 'other', namespace: 'platform' } } };
    const members = [{ name: 'loner' }];
    await world.put(teams, spare('abroad', { teamAlias: 'abroad', members, ...elsewhere }, 'team-a', 'Team'));
    await world.put(teams, spare('neighbour', { teamAlias: 'neighbour', members }, 'team-b', 'Team'));
    expect((await ofUser('loner')).refused, 'Teams of another instance or namespace').toHaveLength(1);
    await world.put(teams, spare('own', { teamAlias: 'own', members }, 'team-a', 'Team'));
    expect((await ofUser('loner')).refused, 'the Team names the User').toEqual([]);
  });

  test('gets only a warning in a dry run if its User has no Team yet, which may be in the same file', async () => {
    await setPolicies([{ name: 'lab', require: ['teamRef'] }]);
    await putLoner();
    const dryRun = async (change: object) =>
      review('VirtualKey', { teamRef: undefined, ...change }, {}, { dryRun: true });
    expect(await dryRun({ userRef: { name: 'loner' } })).toEqual({
      refused: [],
      warnings: [expect.stringContaining('spec.teamRef: Required value')],
    });
    expect((await dryRun({ userRef: undefined })).refused).toHaveLength(1);
    expect((await dryRun({ userRef: { name: 'nobody' } })).warnings).toEqual([
      expect.stringContaining('spec.userRef.name: Not found'),
    ]);
  });

  test('reads no labels and no Teams where no policy needs them', async () => {
    await setPolicies([{ name: 'lab', require: ['userRef'], models: ['gpt-4o'] }]);
    world.cluster.calls.length = 0;
    await review('VirtualKey', { teamRef: undefined });
    const calls = JSON.stringify(world.cluster.calls);
    expect(calls).not.toContain(RESOURCES.namespaces.plural);
    expect(calls).not.toContain(teams.plural);
  });
});

describe('an update of a VirtualKey', () => {
  const before = objectOf('VirtualKey', {
    ...GOOD.VirtualKey,
    models: ['claude'],
    teamRef: undefined,
    userRef: undefined,
  });

  test('may keep what its policy forbids: it lacked a Team, and lists models outside the policy', async () => {
    await setPolicies([{ name: 'lab', require: ['teamRef'], models: ['gpt-4o'] }]);
    const { refused, warnings } = await review(
      'VirtualKey',
      { ...(before.spec as object), blocked: true },
      {},
      update(before),
    );
    expect(refused).toEqual([]);
    expect(warnings).toEqual([
      expect.stringContaining('spec.teamRef: Required value'),
      expect.stringContaining('spec.models[0]: Unsupported value: "claude"'),
    ]);
  });

  test('may not take away what its policy requires, nor add a model outside the policy', async () => {
    await setPolicies([{ name: 'lab', require: ['teamRef', 'userRef'], models: ['gpt-4o'] }]);
    const good = objectOf('VirtualKey');
    expect((await review('VirtualKey', { userRef: undefined }, {}, update(good))).refused).toEqual([
      expect.stringContaining('spec.userRef: Required value'),
    ]);
    expect((await review('VirtualKey', { models: ['gpt-4o', 'claude'] }, {}, update(good))).refused).toEqual([
      expect.stringContaining('spec.models[1]: Unsupported value: "claude"'),
    ]);
    expect((await review('VirtualKey', { models: [] }, {}, update(good))).refused).toEqual([]);
  });
});

describe('a User', () => {
  const loner = { userEmail: 'l@example.com', keyAlias: 'loner', teamRefs: [] };

  test('is judged for its own VirtualKey with autoCreateKey only', async () => {
    await setPolicies([{ name: 'lab', require: ['teamRef', 'userRef'], models: ['gpt-4o'] }]);
    const reviewLoner = async (change: object) =>
      (await review('User', { ...loner, ...change }, { name: 'loner' })).refused;
    expect(await reviewLoner({ autoCreateKey: false, models: ['claude'] })).toEqual([]);
    expect(await reviewLoner({ models: ['claude'] })).toEqual([
      'User "loner" is invalid:',
      `- spec.teamRefs: Required value: ${NAMED} requires a Team for the VirtualKey of autoCreateKey; add a Team, or name the User in members of a Team. ${ASK}`,
      expect.stringContaining('- spec.models[0]: Unsupported value: "claude"'),
    ]);
    expect(await reviewLoner({ teamRefs: [{ name: 'research' }] })).toEqual([]);
    await world.put(teams, spare('own', { teamAlias: 'own', members: [{ name: 'loner' }] }, 'team-a', 'Team'));
    expect(await reviewLoner({})).toEqual([]);
  });

  test('may not switch autoCreateKey on, or leave its Team, against its policy', async () => {
    await setPolicies([{ name: 'lab', require: ['teamRef'] }]);
    const off = objectOf('User', { ...GOOD.User, ...loner, autoCreateKey: false }, { name: 'loner' });
    expect((await review('User', loner, { name: 'loner' }, update(off))).refused).toHaveLength(1);
    const member = objectOf('User', { ...GOOD.User, ...loner, teamRefs: [{ name: 'research' }] }, { name: 'loner' });
    expect((await review('User', loner, { name: 'loner' }, update(member))).refused).toHaveLength(1);
  });
});

describe('a budget', () => {
  test('above that of the policy for windows of the same length gets a warning', async () => {
    const perKey = { maxBudget: '5', budgetDuration: '720h' };
    await setPolicies([{ name: 'lab', perKey, perNamespace: { maxBudget: '9.50', budgetDuration: '30d' } }]);
    const warnings = [
      `spec.maxBudget: "10": ${NAMED} allows each VirtualKey 5 dollars per 720h (perKey.maxBudget), so the smaller budget applies; write at most "5"`,
    ];
    expect((await review('VirtualKey', {})).warnings).toEqual(warnings);
    expect((await review('User', { maxBudget: '10' })).warnings).toEqual(warnings);
    expect((await review('User', { maxBudget: '10', autoCreateKey: false })).warnings).toEqual([]);
    expect((await review('VirtualKey', { maxBudget: '5' })).warnings).toEqual([]);
    await setPolicies([{ name: 'lab', perKey, perNamespace: { maxBudget: '4.50', budgetDuration: '30d' } }]);
    expect((await review('VirtualKey', {})).warnings).toEqual([
      `spec.maxBudget: "10": ${NAMED} allows all VirtualKeys of this namespace together 4.5 dollars per 30d (perNamespace.maxBudget), so the smaller budget applies; write at most "4.5"`,
    ]);
    await setPolicies([{ name: 'lab', perKey, perNamespace: { maxBudget: '9.50', budgetDuration: '30d' } }]);
    expect((await review('VirtualKey', { budgetDuration: '1d' })).warnings).toEqual([]);
  });

  test.each(['VirtualKey', 'User', 'Team'] as const)(
    'of a %s below what its window has spent gets a warning',
    async (kind) => {
      const budget = { maxBudget: '100', budgetDuration: '30d' };
      const stored = {
        ...objectOf(kind, { ...GOOD[kind], ...budget }),
        status: { currentSpend: '7.5', budgetResetDate: '2026-12-01T00:00:00Z' },
      };
      const warningsOf = async (change: object, old: object = stored) =>
        (await review(kind, { ...budget, ...change }, {}, update(old))).warnings;
      expect(await warningsOf({ maxBudget: '7' })).toEqual([
        'spec.maxBudget: "7": is less than the 7.5 dollars of status.currentSpend, so every request is refused until 2026-12-01T00:00:00Z; raise it to continue',
      ]);
      expect(await warningsOf({ maxBudget: '7.5' })).toEqual([]);
      expect(await warningsOf({ maxBudget: '7', budgetDuration: '1d' }), 'another window').toEqual([]);
      const low = { ...stored, spec: { ...GOOD[kind], ...budget, maxBudget: '7' } };
      expect(await warningsOf({ maxBudget: '7', blocked: true }, low), 'an edit of something else').toEqual([]);
      expect(await warningsOf({ maxBudget: '7' }, { ...stored, status: { currentSpend: 'much' } })).toEqual([]);
    },
  );

  test('of namespaces below what some of them have spent gets a warning', async () => {
    const policyOf = (maxBudget: string) => ({ name: 'lab', perNamespace: { maxBudget, budgetDuration: '30d' } });
    const spent = (name: string, currentSpend: string, policy = 'lab') => ({ name, policy, currentSpend });
    const namespaces = [
      ...[spent('a', '7'), spent('b', '3'), spent('c', '9', 'other')],
      ...['d', 'e', 'f', 'g', 'h'].map((name) => spent(name, '8')),
    ];
    const stored = {
      ...objectOf('GatewayInstance', { ...GOOD.GatewayInstance, keyPolicies: [policyOf('20')] }),
      status: { namespaces },
    };
    const warningsOf = async (maxBudget: string) =>
      (await review('GatewayInstance', { keyPolicies: [policyOf(maxBudget)] }, {}, update(stored))).warnings;
    expect(await warningsOf('5')).toEqual([
      'spec.keyPolicies[0].perNamespace.maxBudget: "5": is less than the dollars that namespaces have spent in the current window: a (7), d (8), e (8), f (8), g (8), and 1 more. Their requests are refused until the window ends; raise the budget',
    ]);
    expect(await warningsOf('8')).toEqual([]);
    expect(await warningsOf('20')).toEqual([]);
  });
});
