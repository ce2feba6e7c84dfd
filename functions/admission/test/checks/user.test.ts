// Checks of a user, and of the key that autoCreateKey creates.
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createWorld, GOOD, objectOf, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

describe('a user', () => {
  const user = (change: object, metadata = {}, more = {}) => review('User', change, metadata, more);

  test('whose address another user of the instance has is refused', async () => {
    expect((await user({ keyAlias: 'x' }, { name: 'alice-2' })).refused).toEqual([
      'spec.userEmail: Duplicate value: "alice@example.com": is already used by User "alice" on instance "platform/main"; choose another, or delete the other one first',
    ]);
  });

  test('whose keyAlias a key of others has is refused; without autoCreateKey the alias does not matter', async () => {
    await world.put(virtualKeys, spare('service', { keyAlias: 'alice' }));
    expect((await user({})).refused).toEqual([
      expect.stringContaining('spec.keyAlias: Duplicate value: "alice": is already used by VirtualKey "service"'),
    ]);
    expect((await user({ autoCreateKey: false })).refused).toEqual([]);
  });

  test('whose team is missing, or whose model is not served, is refused', async () => {
    expect((await user({ teamRefs: [{ name: 'research' }, { name: 'nobody' }], models: ['gpt'] })).refused).toEqual([
      'User "alice" is invalid:',
      expect.stringContaining('- spec.models[0]: Not found: "gpt"'),
      expect.stringContaining('- spec.teamRefs[1].name: Not found: "nobody": no Team of this name'),
    ]);
  });

  test('gets a warning if a VirtualKey of others has its name, and none about its own', async () => {
    const stored = await world.cluster.get(users, 'team-a', 'alice');
    const uid = stored?.metadata.uid ?? '';
    await world.put(virtualKeys, spare('alice', { keyAlias: 'alice' }));
    expect(await user({}, { uid })).toEqual({
      refused: [],
      warnings: [expect.stringContaining('spec.autoCreateKey: VirtualKey "alice" already exists')],
    });
    await world.drop(virtualKeys, 'team-a', 'alice');
    const ownerReferences = [{ apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'User', name: 'alice', uid }];
    await world.put(
      virtualKeys,
      objectOf('VirtualKey', { ...GOOD.VirtualKey, keyAlias: 'alice' }, { name: 'alice', ownerReferences }),
    );
    expect(await user({}, { uid })).toEqual({ refused: [], warnings: [] });
  });

  test('whose edit replaces its key gets a warning', async () => {
    const oldObject = objectOf('User');
    expect((await user({ keyAlias: 'new' }, {}, { oldObject })).warnings).toEqual([
      'spec.keyAlias: "new": the User\'s VirtualKey is replaced by a new one; give clients the new value from its Secret',
    ]);
    await world.put(gatewayInstances, objectOf('GatewayInstance', GOOD.GatewayInstance, { name: 'other' }));
    const connectionRef = { instanceRef: { name: 'other', namespace: 'platform' } };
    expect((await user({ connectionRef, teamRefs: [] }, {}, { oldObject })).warnings).toEqual([
      "spec.connectionRef: the User's VirtualKey is replaced by a new one; give clients the new value from its Secret",
    ]);
    expect((await user({ maxBudget: '26' }, {}, { oldObject })).warnings).toEqual([]);
  });

  test('with autoCreateKey needs what the key needs', async () => {
    const { refused } = await user({ keyAlias: undefined, budgetDuration: undefined });
    expect(refused).toEqual([
      'User "alice" is invalid:',
      expect.stringContaining('- spec.keyAlias: '),
      expect.stringContaining('- spec.budgetDuration: '),
    ]);
  });
});
