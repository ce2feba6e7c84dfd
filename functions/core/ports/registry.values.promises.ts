// Promises of key values: which live, for how long, and whose they are.
import { beforeEach, describe, expect, test } from 'vitest';
import { hash, INSTANCE, openedRegistry, type RegistryUnderTest, registryScene } from './registry.scene.promises.ts';
import type { Registry } from './registry.ts';

/** `make` as in `describeRegistry`, which runs this too. */
export function describeKeyValues(make: () => Promise<RegistryUnderTest>): void {
  describe('key values', () => {
    let under: RegistryUnderTest;
    let registry: Registry;
    beforeEach(async () => {
      under = await openedRegistry(make);
      ({ registry } = under);
    });
    const { claim, find, workingKey } = registryScene(() => under);

    test('a value is added once, however often it is said', async () => {
      const { scopeId } = await claim('billing');
      const added = await registry.addValue(scopeId, hash('a'));
      const [before] = await registry.claims(INSTANCE.uid);
      expect(added).toEqual(before?.values);
      expect(await registry.addValue(scopeId, hash('a'))).toEqual(added);
      expect(await registry.claims(INSTANCE.uid)).toEqual([before]);
    });

    test('a value that another live key has is refused, also when both are added at the same time', async () => {
      const [one, other] = [await claim('one'), await claim('other')];
      const added = await Promise.all([
        registry.addValue(one.scopeId, hash('a')),
        registry.addValue(other.scopeId, hash('a')),
      ]);
      expect(added.filter((values) => values === undefined)).toHaveLength(1);
      expect((await registry.claims(INSTANCE.uid)).flatMap(({ values }) => values)).toHaveLength(1);
    });

    test('of many values that are added at once each lives or is refused by itself, and is answered in its place', async () => {
      const [one, other, over] = [await claim('one'), await claim('other'), await claim('over')];
      await workingKey('theirs', hash('d'));
      await registry.retire([over.scopeId]);
      const values = [
        { scopeId: over.scopeId, hash: hash('c') },
        { scopeId: other.scopeId, hash: hash('d') },
        { scopeId: one.scopeId, hash: hash('a'), asked: 'today' },
      ];
      const added = await registry.addValues(values);
      const live = [{ hash: hash('a'), createdAt: expect.any(Number), asked: 'today' }];
      expect(added).toEqual(['retired', 'another scope has it', live]);
      expect(await registry.addValues(values)).toEqual(added);
      await registry.retireValues(one.scopeId, [hash('a')]);
      expect(await registry.addValues(values.slice(2))).toEqual(added.slice(2));
      expect(await registry.addValues([])).toEqual([]);
    });

    test('a value of a retired key may be used by another', async () => {
      const { claimed } = await workingKey('one', hash('a'));
      await registry.retire([claimed.scopeId]);
      const other = await workingKey('other', hash('a'));
      expect((await find(hash('a')))?.key.scopeId).toBe(other.claimed.scopeId);
    });

    test('two values work beside each other during a rotation, until the old one is retired', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await registry.addValue(claimed.scopeId, hash('b'));
      expect((await find(hash('a')))?.key.name).toBe('billing');
      expect((await find(hash('b')))?.key.name).toBe('billing');
      await registry.retireValues(claimed.scopeId, [hash('a')]);
      await registry.retireValues(claimed.scopeId, [hash('a'), hash('c')]);
      expect(await find(hash('a'))).toBeUndefined();
      expect((await find(hash('b')))?.key.name).toBe('billing');
    });

    test("a value with an overlap works so long on the database's clock, is listed with its end, and keeps it", async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await registry.addValue(claimed.scopeId, hash('b'));
      const { now: before } = await registry.instance(INSTANCE.uid);
      const left = await registry.retireValues(claimed.scopeId, [hash('a')], 3_600_000);
      await registry.retireValues(claimed.scopeId, [hash('b')], 0);
      expect(await find(hash('a'))).toBeDefined();
      expect(await find(hash('b'))).toBeUndefined();
      const end = left.find((value) => value.hash === hash('a'))?.notAfter ?? 0;
      expect(end).toBeGreaterThanOrEqual(before + 3_600_000);
      expect(end).toBeLessThanOrEqual((await registry.instance(INSTANCE.uid)).now + 3_600_000);
      await registry.retireValues(claimed.scopeId, [hash('a')], 1);
      const [listed] = await registry.claims(INSTANCE.uid);
      expect(listed?.values.find((value) => value.hash === hash('a'))?.notAfter).toBe(end);
      expect(await registry.retireValues(claimed.scopeId, [hash('a'), hash('b')])).toEqual([]);
    });

    test('values are listed by age, the oldest first, and a new one is younger than all that are there', async () => {
      const { scopeId } = await claim('billing');
      const letters = ['f', 'e', 'd', 'c', 'b', 'a'].map(hash);
      for (const value of letters) await registry.addValue(scopeId, value);
      const values = (await registry.claims(INSTANCE.uid))[0]?.values ?? [];
      expect(values.map((value) => value.hash)).toEqual(letters);
      expect(new Set(values.map(({ createdAt }) => createdAt)).size).toBe(letters.length);
    });

    test('a value says what was asked for when it was made; without that, what the one before it says', async () => {
      const { scopeId } = await claim('billing');
      await registry.addValue(scopeId, hash('a'));
      await registry.addValue(scopeId, hash('b'), 'leak of May');
      await registry.addValue(scopeId, hash('c'));
      const values = await registry.addValue(scopeId, hash('d'), 'the next');
      expect(values?.map(({ asked }) => asked)).toEqual([undefined, 'leak of May', 'leak of May', 'the next']);
    });

    test('one key cannot retire the values of another', async () => {
      await workingKey('one', hash('a'));
      const other = await claim('other');
      await registry.retireValues(other.scopeId, [hash('a')]);
      expect(await find(hash('a'))).toBeDefined();
    });

    test('a retired value works again when its own key gets it back, as old as it is', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      const made = (await registry.claims(INSTANCE.uid))[0]?.values[0]?.createdAt;
      await registry.retireValues(claimed.scopeId, [hash('a')]);
      const values = await registry.addValue(claimed.scopeId, hash('a'));
      expect(await find(hash('a'))).toBeDefined();
      expect(values).toEqual([{ hash: hash('a'), createdAt: made }]);
    });

    test('a value that is added while its claim retires does not outlive it', async () => {
      const heir = await claim('heir');
      for (let round = 0; round < 20; round += 1) {
        const { scopeId } = await claim('billing');
        const value = `${round}`.padStart(64, '0');
        await Promise.allSettled([registry.addValue(scopeId, value), registry.retire([scopeId])]);
        expect(await registry.addValue(heir.scopeId, value)).toBeDefined();
      }
    });

    test('no value is added to a retired claim', async () => {
      const { scopeId } = await claim('billing');
      await registry.retire([scopeId]);
      await expect(registry.addValue(scopeId, hash('a'))).rejects.toThrow(/retired/);
    });
  });
}
