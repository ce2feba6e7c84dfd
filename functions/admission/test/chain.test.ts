// The order of findings in a message.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { ask, createWorld, depsOf, GOOD, objectOf, requestOf, secretOf } from '../../../test/admission/fixtures.ts';

test('the message for a key with all violations begins with its own fields; instance, models, alias, user, team and Secret follow', async () => {
  const { cluster, put } = await createWorld();
  await put(virtualKeys, objectOf('VirtualKey', GOOD.VirtualKey, { name: 'first' }));
  await put(RESOURCES.secrets, secretOf('billing-key', {}, 'team-a'));
  const spec = {
    ...GOOD.VirtualKey,
    softBudget: '11',
    models: ['llama'],
    userRef: { name: 'nobody' },
    teamRef: { name: 'nobody' },
  };
  const { status } = await ask(depsOf(cluster), '/validate', requestOf(objectOf('VirtualKey', spec)));
  const paths = status?.message.split('\n').map((line) => line.replace(/^- (\S+): .*/, '$1'));
  expect(paths).toEqual([
    'VirtualKey "billing" is invalid:',
    'spec.softBudget',
    'spec.models[0]',
    'spec.keyAlias',
    'spec.userRef.name',
    'spec.teamRef.name',
    'metadata.name',
  ]);
});

test('the message for an object that violates its schema has no finding about other objects', async () => {
  const { cluster } = await createWorld();
  cluster.calls.length = 0;
  const spec = { ...GOOD.VirtualKey, budgetDuration: 'monthly', userRef: { name: 'nobody' } };
  const { status } = await ask(depsOf(cluster), '/validate', requestOf(objectOf('VirtualKey', spec)));
  expect(status?.message).toMatch(/^spec\.budgetDuration: [^\n]+$/);
  expect(cluster.calls).toEqual([]);
});

test('warnings come after all refusals', async () => {
  const { cluster } = await createWorld();
  const spec = { ...GOOD.VirtualKey, models: ['llama'], maxBudget: '0', userRef: { name: 'nobody' } };
  const request = requestOf(objectOf('VirtualKey', spec), { dryRun: true, oldObject: objectOf('VirtualKey', spec) });
  const { warnings = [] } = await ask(depsOf(cluster), '/validate', request);
  expect(warnings.map((line) => line.replace(/^(\S+): .*/, '$1'))).toEqual([
    'spec.models[0]',
    'spec.userRef.name',
    'spec.maxBudget',
  ]);
});
