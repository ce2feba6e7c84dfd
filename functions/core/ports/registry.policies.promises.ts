// Promises of policies: what the gateway finds by the hash of a value.
import { beforeEach, describe, expect, test } from 'vitest';
import type { KeyPolicy } from './policy.ts';
import {
  hash,
  holder,
  INSTANCE,
  keyPolicy,
  OTHER,
  openedRegistry,
  type RegistryUnderTest,
  registryScene,
  scopePolicy,
} from './registry.scene.promises.ts';
import type { Claim, Registry } from './registry.ts';

/** `make` as in `describeRegistry`, which runs this too. */
export function describePolicies(make: () => Promise<RegistryUnderTest>): void {
  describe('policies', () => {
    let under: RegistryUnderTest;
    let registry: Registry;
    let policies: RegistryUnderTest['policies'];
    beforeEach(async () => {
      under = await openedRegistry(make);
      ({ registry, policies } = under);
    });
    const { claim, find, write, workingKey } = registryScene(() => under);

    test('a key is found by its hash, with the policy of every scope that pays, the key first', async () => {
      const user = scopePolicy(await claim('ann@example.org', 'user'), { models: ['small'] });
      const team = scopePolicy(await claim('research', 'team'), { blocked: true });
      await write(user, team);
      const { policy } = await workingKey('billing', hash('a'), { charges: [team.scopeId, user.scopeId] });
      expect(await find(hash('a'))).toEqual({ key: policy, scopes: [policy, team, user] });
    });

    test('a policy comes back as it was written: exact limits, instants and any text', async () => {
      const { policy } = await workingKey('billing', hash('a'), {
        budget: { limit: '999999999999999999', duration: '30d', alignment: 'Calendar' },
        models: ['a/b', 'ünï "quoted"', ''],
        expiresAt: 253_402_300_799_999,
      });
      expect((await find(hash('a')))?.key).toEqual(policy);
    });

    test('blocked and expired keys are found: what to say about them is for the gateway', async () => {
      await workingKey('billing', hash('a'), { blocked: true, expiresAt: 1 });
      expect(await find(hash('a'))).toMatchObject({ key: { blocked: true, expiresAt: 1 } });
    });

    test('what is written last holds at once', async () => {
      const { policy } = await workingKey('billing', hash('a'));
      const raised = { ...policy, budget: { limit: '5000000000', duration: '1h', alignment: 'Rolling' as const } };
      await write(raised);
      await write(raised);
      expect((await find(hash('a')))?.key).toEqual(raised);
      await write(policy);
      expect((await find(hash('a')))?.key).toEqual(policy);
    });

    test('an unknown value, a key without a policy and the key of another instance are not found', async () => {
      const { scopeId } = await claim('billing');
      await registry.addValue(scopeId, hash('a'));
      await workingKey('working', hash('b'));
      expect(await find(hash('c'))).toBeUndefined();
      expect(await find('')).toBeUndefined();
      expect(await find(hash('a'))).toBeUndefined();
      expect(await policies(OTHER.uid).find(hash('b'))).toBeUndefined();
      expect(await policies('never opened').find(hash('b'))).toBeUndefined();
    });

    test('a retired key is not found', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await registry.retire([claimed.scopeId]);
      expect(await find(hash('a'))).toBeUndefined();
    });

    test('many policies are written in one call, edited budgets among them', async () => {
      const claims = await Promise.all(Array.from({ length: 700 }, (_, place) => claim(`key-${place}`)));
      const window = { start: 0, end: 3_600_000 };
      const policyOf = (claimed: Claim) => keyPolicy(claimed, { models: [`model of ${claimed.alias}`] });
      const writes = claims.map((claimed, place) =>
        place % 9 === 0
          ? { policy: policyOf(claimed), generation: 1 }
          : { policy: policyOf(claimed), generation: 1, recounts: [{ scopeId: claimed.scopeId, window }] },
      );
      await registry.writePolicies(INSTANCE.uid, writes);
      const listed = await registry.claims(INSTANCE.uid);
      expect(listed).toHaveLength(700);
      for (const claimed of listed) expect(claimed.policy).toEqual(policyOf(claimed));
    });

    test('a policy of an earlier generation never takes the place of a later one; an adopter begins anew', async () => {
      const { claimed, policy } = await workingKey('billing', hash('a'));
      const writeAt = (generation: number, more: Partial<KeyPolicy>) =>
        registry.writePolicies(INSTANCE.uid, [{ policy: { ...policy, ...more }, generation }]);
      await writeAt(5, { blocked: true });
      await writeAt(4, { blocked: false });
      expect((await find(hash('a')))?.key.blocked).toBe(true);
      await writeAt(5, { blocked: true, models: ['small'] });
      expect((await find(hash('a')))?.key.models).toEqual(['small']);
      await registry.claim(INSTANCE.uid, 'key', 'billing', holder('heir'), hash('a'));
      await writeAt(1, { blocked: false });
      expect((await find(hash('a')))?.key.blocked).toBe(false);
      expect((await registry.claims(INSTANCE.uid))[0]?.scopeId).toBe(claimed.scopeId);
    });

    test('a retired key cannot be given a policy, nor can one of another instance', async () => {
      const { claimed, policy } = await workingKey('billing', hash('a'));
      await registry.writePolicies(OTHER.uid, [{ policy: { ...policy, blocked: true }, generation: 1 }]);
      expect((await find(hash('a')))?.key.blocked).toBe(false);
      await registry.retire([claimed.scopeId]);
      await write(policy);
      expect(await find(hash('a'))).toBeUndefined();
    });

    test('a budget whose user was deleted still pays until the key is rewritten: a deletion never frees spend', async () => {
      const user = scopePolicy(await claim('ann@example.org', 'user'));
      await write(user);
      const { policy } = await workingKey('billing', hash('a'), { charges: [user.scopeId] });
      await registry.retire([user.scopeId]);
      expect((await find(hash('a')))?.scopes).toEqual([policy, user]);
      await write({ ...policy, charges: [] });
      expect((await find(hash('a')))?.scopes).toEqual([{ ...policy, charges: [] }]);
    });

    test('a key that pays from a scope without a policy does not work', async () => {
      const user = await claim('ann@example.org', 'user');
      await workingKey('billing', hash('a'), { charges: [user.scopeId] });
      expect(await find(hash('a'))).toBeUndefined();
    });
  });
}
