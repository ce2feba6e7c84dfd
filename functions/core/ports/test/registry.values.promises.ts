// Promises of key values: which of them are live, for how long, and in which scope.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Registry } from '../registry.ts';
import {
  hash,
  INSTANCE,
  openRegistry,
  type RegistryUnderTest,
  registryScenario,
} from './registry.scenario.promises.ts';

/** `make` as in `describeRegistry`, which runs this too. */
export function describeKeyValues(make: () => Promise<RegistryUnderTest>): void {
  describe('key values', () => {
    let under: RegistryUnderTest;
    let registry: Registry;
    beforeEach(async () => {
      under = await openRegistry(make);
      ({ registry } = under);
    });
    const { addValue, claim, claims, find, put, workingKey } = registryScenario(() => under);

    test('a value is added once, however often it is said', async () => {
      const claimed = await claim('billing');
      await addValue(claimed, hash('a'));
      const before = await claims();
      expect(before).toMatchObject([{ values: [{ hash: hash('a') }] }]);
      await addValue(claimed, hash('a'));
      expect(await claims()).toEqual(before);
    });

    test('a value that another live key has is refused, also when both are added at the same time', async () => {
      const both = [await claim('one'), await claim('other')];
      const outcomes = await Promise.all(both.map((one) => put(one, { value: { hash: hash('a') } })));
      expect(outcomes.toSorted()).toEqual(['value taken', 'written']);
      expect((await claims()).flatMap(({ values }) => values)).toHaveLength(1);
    });

    test('of many values that are added at the same time each lives or is refused by itself', async () => {
      const [one, other, over] = [await claim('one'), await claim('other'), await claim('over')];
      await workingKey('theirs', hash('d'));
      await registry.retire([over.scopeId]);
      const addAll = () =>
        Promise.all([
          put(over, { value: { hash: hash('c') } }),
          put(other, { value: { hash: hash('d') } }),
          put(one, { value: { hash: hash('a'), rotation: 'today' } }),
        ]);
      expect(await addAll()).toEqual(['taken', 'value taken', 'written']);
      expect(await addAll()).toEqual(['taken', 'value taken', 'written']);
      expect(await registry.claimsOf(INSTANCE.uid, [one, over])).toMatchObject([
        { alias: 'one', values: [{ hash: hash('a'), rotation: 'today' }] },
      ]);
    });

    test('a value of a retired key may be used by another', async () => {
      const { claimed } = await workingKey('one', hash('a'));
      await registry.retire([claimed.scopeId]);
      const other = await workingKey('other', hash('a'));
      expect((await find(hash('a')))?.key.scopeId).toBe(other.claimed.scopeId);
    });

    test('two values work beside each other during a rotation, until the old one is retired', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await addValue(claimed, hash('b'));
      expect((await find(hash('a')))?.key.name).toBe('billing');
      expect((await find(hash('b')))?.key.name).toBe('billing');
      await registry.endValues(claimed.scopeId, [hash('a')]);
      await registry.endValues(claimed.scopeId, [hash('a'), hash('c')]);
      expect(await find(hash('a'))).toBeUndefined();
      expect((await find(hash('b')))?.key.name).toBe('billing');
    });

    test('a value that is removed was never there', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await addValue(claimed, hash('b'));
      await registry.removeValue(claimed.scopeId, hash('b'));
      await registry.removeValue(claimed.scopeId, hash('b'));
      expect(await find(hash('b'))).toBeUndefined();
      expect((await claims())[0]?.values).toMatchObject([{ hash: hash('a') }]);
      const restored = { hash: hash('b'), unlessEnded: hash('b') };
      expect(await put(claimed, { value: restored })).toBe('written');
      expect(await find(hash('b'))).toBeDefined();
    });

    test("a value with an overlap works so long on the database's clock, is listed with its end, and keeps it", async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await addValue(claimed, hash('b'));
      const { now: before } = await registry.instance(INSTANCE.uid);
      await registry.endValues(claimed.scopeId, [hash('a')], 3_600_000);
      await registry.endValues(claimed.scopeId, [hash('b')], 0);
      expect(await find(hash('a'))).toBeDefined();
      expect(await find(hash('b'))).toBeUndefined();
      const endOf = async () => (await claims())[0]?.values.find((value) => value.hash === hash('a'))?.notAfter;
      const end = (await endOf()) ?? 0;
      expect(end).toBeGreaterThanOrEqual(before + 3_600_000);
      expect(end).toBeLessThanOrEqual((await registry.instance(INSTANCE.uid)).now + 3_600_000);
      await registry.endValues(claimed.scopeId, [hash('a')], 1);
      expect(await endOf()).toBe(end);
      await registry.endValues(claimed.scopeId, [hash('a'), hash('b')]);
      expect((await claims())[0]?.values).toEqual([]);
    });

    test('values are listed by age, the oldest first, and a new one is younger than all that are there', async () => {
      const claimed = await claim('billing');
      const letters = ['f', 'e', 'd', 'c', 'b', 'a'].map(hash);
      for (const value of letters) await addValue(claimed, value);
      const values = (await claims())[0]?.values ?? [];
      expect(values.map((value) => value.hash)).toEqual(letters);
      expect(new Set(values.map(({ createdAt }) => createdAt)).size).toBe(letters.length);
    });

    test('a value says what was asked for when it was made; without that, what the previous one it says', async () => {
      const claimed = await claim('billing');
      await addValue(claimed, hash('a'));
      await addValue(claimed, hash('b'), 'leak of May');
      await addValue(claimed, hash('c'));
      await addValue(claimed, hash('d'), 'the next');
      const [listed] = await claims();
      expect(listed?.values.map(({ rotation }) => rotation)).toEqual([
        undefined,
        'leak of May',
        'leak of May',
        'the next',
      ]);
      // A tenant decides how long these texts are, and how many values end.
      await registry.endValues(claimed.scopeId, [hash('b')], 3_600_000);
      const [after] = await claims();
      expect(after?.values.map(({ rotation }) => rotation)).toEqual([undefined, undefined, 'leak of May', 'the next']);
    });

    test('a claim that has another holder than was observed stays, and so do its values', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      const uid = (await claims())[0]?.holder.uid ?? '';
      const others = [
        { uid: 'another', retained: undefined },
        { uid, retained: 'billing-key' },
      ];
      for (const observed of others) {
        expect(await registry.endValues(claimed.scopeId, [hash('a')], undefined, observed)).toBe(false);
        expect(await registry.retire([claimed.scopeId], observed)).toBe(false);
      }
      expect(await find(hash('a'))).toBeDefined();
      const observed = { uid, retained: undefined };
      expect(await registry.retire([claimed.scopeId], observed)).toBe(true);
      expect(await find(hash('a'))).toBeUndefined();
      // The claim is retired, so nothing is left to do.
      expect(await registry.retire([claimed.scopeId], { uid: 'another', retained: undefined })).toBe(true);
    });

    test('one key cannot retire the values of another', async () => {
      await workingKey('one', hash('a'));
      const other = await claim('other');
      await registry.endValues(other.scopeId, [hash('a')]);
      expect(await find(hash('a'))).toBeDefined();
    });

    test('a retired value works again when its own key gets it back, as old as it is', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      const createdAt = (await registry.claims(INSTANCE.uid))[0]?.values[0]?.createdAt;
      await registry.endValues(claimed.scopeId, [hash('a')]);
      await addValue(claimed, hash('a'));
      expect(await find(hash('a'))).toBeDefined();
      expect((await claims())[0]?.values).toEqual([{ hash: hash('a'), createdAt }]);
    });
  });
}
