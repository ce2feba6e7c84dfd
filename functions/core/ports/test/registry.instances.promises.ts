// Promises of instances: they are closed, opened again, and continue the ledger of another instance.
import { beforeEach, describe, expect, test } from 'vitest';
import { recordOf } from '../../../../test/doubles/policies.ts';
import type { Registry } from '../registry.ts';
import {
  hash,
  INSTANCE,
  OTHER,
  openRegistry,
  type RegistryUnderTest,
  registryScenario,
  scopeWrite,
  toWrite,
} from './registry.scenario.promises.ts';

/** `make` as in `describeRegistry`, which runs this too. */
export function describeInstances(make: () => Promise<RegistryUnderTest>): void {
  describe('instances', () => {
    let under: RegistryUnderTest;
    let registry: Registry;
    let policies: RegistryUnderTest['policies'];
    beforeEach(async () => {
      under = await openRegistry(make);
      ({ registry, policies } = under);
    });
    const { addValue, claim, find, workingKey } = registryScenario(() => under);

    test('the keys of a closed instance stop working and its aliases are free; other instances do not notice', async () => {
      await workingKey('billing', hash('a'));
      await registry.putScope({ ...scopeWrite('elsewhere'), instanceUid: OTHER.uid });
      await registry.closeInstance(INSTANCE.uid);
      await registry.closeInstance(INSTANCE.uid);
      expect(await find(hash('a'))).toBeUndefined();
      expect(await registry.claims(INSTANCE.uid)).toEqual([]);
      expect(await registry.claims(OTHER.uid)).toHaveLength(1);
    });

    describe('an instance that names a closed ledger', () => {
      const HEIR = { uid: 'instance-3', namespace: 'apps', name: 'gateway' };
      const findAsHeir = (value: string) => recordOf(policies(HEIR.uid), value);

      test('continues with its claims, anchors and values; keys work when their policies are written', async () => {
        const { claimed, policy } = await workingKey('billing', hash('a'));
        await addValue(claimed, hash('b'));
        await registry.endValues(claimed.scopeId, [hash('b')]);
        await claim('ann@example.org', 'user');
        const before = await registry.claims(INSTANCE.uid);
        await registry.closeInstance(INSTANCE.uid);
        expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, isMissing: false })).toEqual({ ok: true });
        expect(await registry.claims(INSTANCE.uid)).toEqual([]);
        const after = await registry.claims(HEIR.uid);
        expect(after.map(({ policy: _, ...rest }) => rest)).toEqual(before.map(({ policy: _, ...rest }) => rest));
        expect((await findAsHeir(hash('a')))?.key.blocked).toBe(true);
        expect(after.map(({ policy: adopted }) => adopted?.blocked)).toEqual([true, true]);
        await registry.putScope(toWrite(claimed, HEIR.uid));
        expect((await findAsHeir(hash('a')))?.key).toEqual(policy);
        expect(await findAsHeir(hash('b'))).toBeUndefined();
        expect(await find(hash('a'))).toBeUndefined();
        const { predecessor } = await registry.instance(HEIR.uid);
        expect(predecessor).toEqual({ uid: INSTANCE.uid, since: expect.any(Number) });
      });

      test('has a retained key work immediately: there is no object that would be seen', async () => {
        await workingKey('billing', hash('a'), { retained: 'billing-key' });
        await registry.closeInstance(INSTANCE.uid);
        await registry.openInstance(HEIR, { uid: INSTANCE.uid, isMissing: false });
        expect((await findAsHeir(hash('a')))?.key.blocked).toBe(false);
      });

      test('gets it once, however often it asks, and leaves what was retired before', async () => {
        const retired = await claim('gone');
        await registry.retire([retired.scopeId]);
        await workingKey('billing', hash('a'));
        await registry.closeInstance(INSTANCE.uid);
        await registry.openInstance(HEIR, { uid: INSTANCE.uid, isMissing: false });
        const before = await registry.claims(HEIR.uid);
        expect(before.map(({ alias }) => alias)).toEqual(['billing']);
        await registry.retire([before[0]?.scopeId ?? '']);
        expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, isMissing: false })).toEqual({ ok: true });
        expect(await registry.claims(HEIR.uid)).toEqual([]);
      });

      test('is refused where there is none of that name, it is its own, still open, or continues elsewhere', async () => {
        const adopt = (uid: string, by = HEIR) => registry.openInstance(by, { uid, isMissing: false });
        expect(await adopt('nobody')).toEqual({ ok: false, why: 'absent' });
        expect(await adopt(HEIR.uid)).toEqual({ ok: false, why: 'same' });
        expect(await adopt(OTHER.uid)).toEqual({ ok: false, why: 'open' });
        await registry.closeInstance(OTHER.uid);
        await adopt(OTHER.uid);
        const second = { ...HEIR, uid: 'instance-4' };
        expect(await adopt(OTHER.uid, second)).toEqual({ ok: false, why: 'adopted', successor: HEIR.uid });
        expect((await registry.instance(second.uid)).predecessor).toBeUndefined();
      });

      test('that is lost, for nobody can close it any more, continues with it as if it were closed', async () => {
        const { claimed, policy } = await workingKey('billing', hash('a'));
        expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, isMissing: true })).toEqual({ ok: true });
        expect(await registry.claims(INSTANCE.uid)).toEqual([]);
        await registry.putScope(toWrite(claimed, HEIR.uid));
        expect((await findAsHeir(hash('a')))?.key).toEqual(policy);
        expect(await find(hash('a'))).toBeUndefined();
      });

      test('and has claims of its own keeps those', async () => {
        await workingKey('billing', hash('a'));
        await registry.closeInstance(INSTANCE.uid);
        await registry.openInstance(HEIR);
        await registry.putScope({ ...scopeWrite('billing'), instanceUid: HEIR.uid });
        const before = await registry.claims(HEIR.uid);
        expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, isMissing: false })).toEqual({ ok: true });
        expect(await registry.claims(HEIR.uid)).toEqual(before);
      });

      test('races another for it: one gets it all, the other gets the name of the first', async () => {
        await workingKey('billing', hash('a'));
        await registry.closeInstance(INSTANCE.uid);
        const rivals = [HEIR, { ...HEIR, uid: 'instance-4' }];
        const adoptions = await Promise.all(
          rivals.map((rival) => registry.openInstance(rival, { uid: INSTANCE.uid, isMissing: false })),
        );
        expect(adoptions.filter(({ ok }) => ok)).toHaveLength(1);
        const claims = await Promise.all(rivals.map(({ uid }) => registry.claims(uid)));
        expect(claims.map(({ length }) => length).toSorted()).toEqual([0, 1]);
      });
    });

    test('the open instances of a cluster are listed, those of other clusters and closed ones are not', async () => {
      const here = { uid: 'here', namespace: 'apps', name: 'here', cluster: 'one' };
      await registry.openInstance(here);
      await registry.openInstance({ ...here, uid: 'over' });
      await registry.openInstance({ ...here, uid: 'there', cluster: 'two' });
      await registry.closeInstance('over');
      expect(await registry.openInstances('one')).toEqual([here]);
    });

    test('an instance that is opened again serves new claims, not the old ones', async () => {
      const before = await workingKey('billing', hash('a'));
      await registry.closeInstance(INSTANCE.uid);
      await registry.openInstance(INSTANCE);
      expect(await find(hash('a'))).toBeUndefined();
      const after = await workingKey('billing', hash('a'));
      expect(after.claimed.scopeId).not.toBe(before.claimed.scopeId);
      expect(await find(hash('a'))).toBeDefined();
    });

    test('opening an open instance again changes nothing', async () => {
      await workingKey('billing', hash('a'));
      await registry.openInstance(INSTANCE);
      expect(await find(hash('a'))).toBeDefined();
    });

    test('an unknown instance has no claims and can be closed', async () => {
      await registry.closeInstance('never opened');
      expect(await registry.claims('never opened')).toEqual([]);
    });
  });
}
