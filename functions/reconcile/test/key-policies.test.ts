// VirtualKeys under the key policy of their namespace, and what the instance shows of namespaces.
import { beforeEach, describe, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets());
});

const makeNamespace = (name: string, labels: Readonly<Record<string, string>> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});
const withPolicies = (...keyPolicies: ReadonlyArray<object>) => makeInstance({ keyPolicies });
const setPolicies = (...keyPolicies: ReadonlyArray<object>) =>
  harness.edit(gatewayInstances, 'main', { spec: { keyPolicies } });
const lab = { namespaceSelector: { matchLabels: { tier: 'lab' } } };

/** `True PolicyMet`; undefined: the condition is absent. */
async function policyMet(name: string, namespace?: string): Promise<string | undefined> {
  const { conditions = [] } = await harness.status(virtualKeys, name, namespace);
  const found = conditions.find(({ type }) => type === 'PolicyMet');
  return found && `${found.status} ${found.reason}`;
}
const messageOf = async (name: string) =>
  (await harness.status(virtualKeys, name)).conditions?.find(({ type }) => type === 'PolicyMet')?.message;
const policyOf = async (name: string, namespace?: string) =>
  (await harness.status(virtualKeys, name, namespace)).policy;

describe('a VirtualKey', () => {
  test('shows the policy that applies, and whether it is met; without a policy it shows neither', async () => {
    await harness.apply(withPolicies({ name: 'a', require: ['userRef'] }), makeKey());
    await harness.apply(makeUser({ autoCreateKey: false }), makeKey({ userRef: { name: 'alice' } }, 'good'));
    await harness.resync();
    expect([await policyOf('chat'), await policyMet('chat')]).toEqual(['a', 'False PolicyViolated']);
    expect([await policyOf('good'), await policyMet('good')]).toEqual(['a', 'True PolicyMet']);
    await setPolicies({ name: 'b' });
    await harness.resync();
    expect([await policyOf('chat'), await policyMet('chat')]).toEqual(['b', 'True PolicyMet']);
    await setPolicies();
    await harness.resync();
    expect([await policyOf('chat'), await policyMet('chat')]).toEqual([undefined, undefined]);
  });

  test('that is older than its policy continues to work, with the reason and one event', async () => {
    await harness.apply(makeInstance({ blockedMessage: 'Ask in #ai.' }), makeKey({ models: ['small', 'free'] }));
    await harness.resync();
    await setPolicies({ name: 'a', require: ['teamRef'], models: ['small'] });
    for (let run = 0; run < 3; run += 1) {
      await harness.resync();
      harness.clock.pass(60_000);
    }
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
    expect(await policyMet('chat')).toBe('False PolicyViolated');
    expect(await messageOf('chat')).toBe(
      '- spec.teamRef: Required value: key policy "a" of instance "default/main" requires a Team; add teamRef, or userRef of a User that is in a Team. Ask in #ai.\n' +
        '- spec.models[1]: Unsupported value: "free": key policy "a" of instance "default/main" does not allow this model; choose among "small". Ask in #ai.',
    );
    expect(harness.events('chat').filter((reason) => reason === 'PolicyViolated')).toHaveLength(1);
    await harness.apply(makeTeam());
    await harness.edit(virtualKeys, 'chat', { spec: { teamRef: { name: 'research' }, models: ['small'] } });
    await harness.resync();
    expect(await policyMet('chat')).toBe('True PolicyMet');
  });

  test('is not ready if its policy leaves it no model, with one event; all models are what the policy allows', async () => {
    await harness.apply(withPolicies({ name: 'a', models: ['small'] }));
    await harness.apply(makeKey({ models: ['free'] }), makeKey({ models: [] }, 'any'));
    await harness.resync();
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False PolicyViolated');
    expect(await policyMet('chat')).toBe('False PolicyViolated');
    expect(harness.events('chat').filter((reason) => reason === 'PolicyViolated')).toHaveLength(1);
    expect([await harness.ready(virtualKeys, 'any'), await policyMet('any')]).toEqual(['True Ready', 'True PolicyMet']);
    await setPolicies({ name: 'a', models: ['small', 'free'] });
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('is not ready if the budget of the only model that its policy leaves is spent', async () => {
    const modelMaxBudget = { small: { maxBudget: '1', budgetDuration: '1d' } };
    await harness.apply(withPolicies({ name: 'a', models: ['small'] }), makeKey({ modelMaxBudget }));
    await harness.resync();
    await harness.spend('chat', '1', 'small');
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False BudgetExceeded');
    await setPolicies();
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('is not ready while the budget that its policy gives each key is spent', async () => {
    const perKey = { maxBudget: '2', budgetDuration: '1d' };
    await harness.apply(withPolicies({ name: 'a', perKey }), makeKey(), makeKey({}, 'other'));
    await harness.resync();
    await harness.spend('chat', '1.5');
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    await harness.spend('chat', '0.5');
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False BudgetExceeded');
    expect(await harness.ready(virtualKeys, 'other')).toBe('True Ready');
    const { conditions = [] } = await harness.status(virtualKeys, 'chat');
    expect(conditions.find(({ type }) => type === 'Ready')?.message).toBe(
      'this VirtualKey has spent 2 of 2 dollars that each VirtualKey may spend per 1d (perKey of key policy "a"): wait until 2026-11-22T12:00:00Z, or ask the owner of the instance',
    );
    await harness.trigger('VirtualKey', 'chat');
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False BudgetExceeded');
    harness.clock.pass(86_400_000);
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('has a Team by its User, whichever of the two names the other', async () => {
    await harness.apply(withPolicies({ name: 'a', require: ['teamRef'] }), makeTeam(), makeUser());
    await harness.resync();
    expect(await policyMet('alice')).toBe('False PolicyViolated');
    await harness.edit(users, 'alice', { spec: { teamRefs: [{ name: 'research' }] } });
    await harness.resync();
    expect(await policyMet('alice')).toBe('True PolicyMet');
    await harness.edit(users, 'alice', { spec: { teamRefs: [] } });
    await harness.resync();
    expect(await policyMet('alice')).toBe('False PolicyViolated');
    await harness.edit(teams, 'research', { spec: { members: [{ name: 'alice' }] } });
    await harness.resync();
    expect(await policyMet('alice')).toBe('True PolicyMet');
  });

  test('is not ready while the Team of its policy is missing, blocked or without money', async () => {
    const ready = () => harness.ready(virtualKeys, 'a', 'team-a');
    await harness.apply(withPolicies({ name: 'p', teamRef: { name: 'research' } }), makeKey({}, 'a', 'team-a'));
    await harness.resync();
    expect(await ready()).toBe('False TeamNotFound');
    const { conditions = [] } = await harness.status(virtualKeys, 'a', 'team-a');
    expect(conditions.find(({ type }) => type === 'Ready')?.message).toBe(
      'the Team of key policy "p" of instance "default/main", to which the VirtualKeys of this namespace are charged, does not exist: ask the owner of the instance',
    );
    await harness.apply(makeTeam());
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    await harness.edit(teams, 'research', { spec: { blocked: true } });
    await harness.resync();
    expect(await ready()).toBe('False Blocked');
    await harness.edit(teams, 'research', { spec: { blocked: false } });
    await harness.spend('research', '100');
    await harness.resync();
    expect(await ready()).toBe('False BudgetExceeded');
  });

  test('follows the labels of its namespace, and keeps its policy while they cannot be read', async () => {
    await harness.apply(makeNamespace('team-a', { tier: 'lab' }), makeNamespace('team-b'));
    await harness.apply(withPolicies({ name: 'lab', ...lab, require: ['userRef'] }, { name: 'others' }));
    await harness.apply(makeKey({}, 'one', 'team-a'), makeKey({}, 'two', 'team-b'));
    await harness.resync();
    const shown = async () => [await policyOf('one', 'team-a'), await policyMet('one', 'team-a')];
    expect(await shown()).toEqual(['lab', 'False PolicyViolated']);
    expect(await policyOf('two', 'team-b')).toBe('others');
    let isAway = true;
    harness.cluster.inject(({ verb, resource }) => {
      if (isAway && verb === 'get' && resource === RESOURCES.namespaces) throw new Error('not now');
      return undefined;
    });
    await harness.cluster.patch(RESOURCES.namespaces, undefined, 'team-a', { metadata: { labels: { tier: 'web' } } });
    await harness.resync();
    expect(await shown()).toEqual(['lab', 'False PolicyViolated']);
    // The policy is renamed while the labels are unknown.
    await setPolicies({ name: 'renamed', ...lab, require: ['userRef'] }, { name: 'others' });
    await harness.resync();
    expect(await shown()).toEqual(['lab', 'False PolicyViolated']);
    isAway = false;
    await harness.resync();
    expect(await shown()).toEqual(['others', 'True PolicyMet']);
  });
});

describe('an instance', () => {
  const namespaces = async () => (await harness.status(gatewayInstances, 'main')).namespaces;
  const monthly = { maxBudget: '20', budgetDuration: '30d' };
  const budgetResetDate = '2026-12-21T12:00:00Z';

  test('shows what namespaces with a budget have spent, by name', async () => {
    await harness.apply(makeNamespace('team-a'), makeNamespace('team-b', { tier: 'lab' }));
    await harness.apply(withPolicies({ name: 'lab', ...lab }, { name: 'others', perNamespace: monthly }));
    await harness.apply(makeKey(), makeKey({}, 'a', 'team-a'), makeKey({}, 'b', 'team-b'));
    await harness.resync();
    await harness.spend('team-a', '3.5');
    await harness.resync();
    const of = (name: string, currentSpend: string) => ({
      ...{ name, policy: 'others', maxBudget: '20', currentSpend, budgetResetDate },
    });
    expect(await namespaces()).toEqual([of('default', '0'), of('team-a', '3.5')]);
    const writes = harness.writes();
    await harness.resync();
    expect(harness.writes()).toBe(writes);
    const labels = '{gateway_instance="default/main",key_namespace="team-a"}';
    const text = await harness.metrics.render();
    expect(text).toContain(`gateway_operator_namespace_spend_dollars${labels} 3.5\n`);
    expect(text).toContain(`gateway_operator_namespace_budget_dollars${labels} 20\n`);
    await setPolicies();
    await harness.resync();
    await harness.resync();
    expect(await namespaces()).toBeUndefined();
    expect(await harness.metrics.render()).not.toContain('key_namespace="team-a"');
  });

  test('gets an event at 50, 80 and 95 per cent of the budget of a namespace, each once in a window', async () => {
    await harness.apply(withPolicies({ name: 'a', perNamespace: monthly }), makeKey(), makeKey({}, 'a', 'team-a'));
    await harness.resync();
    const events = () =>
      harness.cluster
        .objects(RESOURCES.events)
        .filter(({ reason }) => reason === 'BudgetUsed')
        .map(({ type, message, involvedObject }) => [type, message, (involvedObject as { kind: string }).kind]);
    const steps: ReadonlyArray<readonly [spend: string, count: number]> = [
      ...([
        ['9.99', 0],
        ['0.01', 1],
        ['5', 1],
        ['1', 2],
        ['3', 3],
        ['1', 3],
      ] as const),
    ];
    for (const [spend, count] of steps) {
      await harness.spend('team-a', spend);
      for (let run = 0; run < 2; run += 1) await harness.resync();
      expect([spend, events().length]).toEqual([spend, count]);
    }
    // A budget that is spent from one resync to the next has an event too.
    await harness.spend('team-a', '5');
    await harness.spend('default', '30');
    for (let run = 0; run < 2; run += 1) await harness.resync();
    const of = (type: string, words: string, share: number) => [
      type,
      `namespace ${words} dollars in the window that ends at ${budgetResetDate}: ${share} per cent of its budget, or more`,
      'GatewayInstance',
    ];
    expect(events()).toEqual(
      expect.arrayContaining([
        of('Normal', '"team-a" has spent 10 of 20', 50),
        of('Warning', '"team-a" has spent 16 of 20', 80),
        of('Warning', '"team-a" has spent 19 of 20', 95),
        of('Warning', '"default" has spent 30 of 20', 95),
      ]),
    );
    expect(events()).toHaveLength(4);
    expect(await harness.ready(virtualKeys, 'a', 'team-a'), 'no VirtualKey shows it').toBe('True Ready');
  });
});
