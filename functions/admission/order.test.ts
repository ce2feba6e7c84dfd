// In which order are findings told?
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { ask, createWorld, depsOf, GOOD, objectOf, requestOf, secretOf } from '../../test/admission/fixtures.ts';
import { ALONE, TOGETHER } from './checks.ts';

test('a key with everything wrong is told what its own file shows first, then the instance, models, alias, user, team, Secret', async () => {
  const { cluster, put } = await createWorld();
  await put(virtualKeys, objectOf('VirtualKey', GOOD.VirtualKey, { name: 'first' }));
  await put(RESOURCES.secrets, secretOf('billing-key', {}, 'team-a'));
  const spec = {
    ...GOOD.VirtualKey,
    budgetDuration: 'monthly',
    models: ['llama'],
    userRef: { name: 'nobody' },
    teamRef: { name: 'nobody' },
  };
  const { status } = await ask(depsOf(cluster), '/validate', requestOf(objectOf('VirtualKey', spec)));
  const paths = status?.message.split('\n').map((line) => line.replace(/^- (\S+): .*/, '$1'));
  expect(paths).toEqual([
    'VirtualKey "billing" has 6 mistakes:',
    'spec.budgetDuration',
    'spec.models[0]',
    'spec.keyAlias',
    'spec.userRef.name',
    'spec.teamRef.name',
    'metadata.name',
  ]);
});

test('on every kind the schema speaks first, and every kind of member is asked for its instance first', () => {
  for (const chain of Object.values(ALONE)) expect(chain[0]?.name).toBe('spec');
  for (const kind of ['VirtualKey', 'User', 'Team'] as const) expect(TOGETHER[kind][0]?.name).toBe('instanceExists');
});

test('rules that only warn stand after all that refuse', () => {
  const warns =
    /^(pausing|instancePaused|databaseMoved|modelsInUse|someModels|prices|providers|credentialNames|zeroBudget|modelBudgets|secretPlaceholders|userKeyNameFree|keyReplaced|membersExist|workloadEnv|calendarWindows|strayAnnotations|followsUser)$/;
  for (const chain of Object.values(TOGETHER)) {
    const first = chain.findIndex(({ name }) => warns.test(name));
    expect(chain.slice(first).every(({ name }) => warns.test(name))).toBe(true);
  }
});
