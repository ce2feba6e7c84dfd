// In which order are findings told?
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { ask, createWorld, depsOf, GOOD, objectOf, requestOf, secretOf } from '../../../test/admission/fixtures.ts';

test('a key with everything wrong is told what its own file shows first, then the instance, models, alias, user, team, Secret', async () => {
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

test('an object whose form is wrong is told that, and nothing of what it refers to', async () => {
  const { cluster } = await createWorld();
  cluster.calls.length = 0;
  const spec = { ...GOOD.VirtualKey, budgetDuration: 'monthly', userRef: { name: 'nobody' } };
  const { status } = await ask(depsOf(cluster), '/validate', requestOf(objectOf('VirtualKey', spec)));
  expect(status?.message).toMatch(/^spec\.budgetDuration: [^\n]+$/);
  expect(cluster.calls).toEqual([]);
});

test('what only warns is told after all that refuses', async () => {
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
