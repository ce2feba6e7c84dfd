// Rate limits of keys, users and teams in their policies.
import { beforeEach, expect, test } from 'vitest';
import type { PolicyDigest } from '#core/ports/policy.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const policies = async (): Promise<ReadonlyArray<PolicyDigest>> => {
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  return (await harness.database().claims(uid)).flatMap(({ policy }) => (policy === undefined ? [] : [policy]));
};
const limitsOf = async (kind: string) => (await policies()).find((policy) => policy.kind === kind)?.limits;

test('limits of keys, users and teams are in their policies, follow every edit, and disappear when they are cleared', async () => {
  await harness.apply(
    makeTeam({ maxParallelRequests: 3 }),
    makeUser({ autoCreateKey: false, tpmLimit: 1000 }),
    makeKey({ rpmLimit: 10, tpmLimit: 20, maxParallelRequests: 30 }),
  );
  await harness.resync();
  expect(await limitsOf('key')).toEqual({ rpmLimit: 10, tpmLimit: 20, maxParallelRequests: 30 });
  expect(await limitsOf('user')).toEqual({ tpmLimit: 1000 });
  expect(await limitsOf('team')).toEqual({ maxParallelRequests: 3 });
  await harness.edit(virtualKeys, 'chat', { spec: { rpmLimit: 11, tpmLimit: null, maxParallelRequests: null } });
  await harness.resync();
  expect(await limitsOf('key')).toEqual({ rpmLimit: 11 });
  await harness.edit(virtualKeys, 'chat', { spec: { rpmLimit: null } });
  await harness.resync();
  expect(await limitsOf('key')).toBeUndefined();
});
