// Promises of claims: the first wins, and a proof takes one over.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  hash,
  holder,
  INSTANCE,
  keyPolicy,
  OTHER,
  openedRegistry,
  type RegistryUnderTest,
  registryScene,
} from './registry.scene.promises.ts';
import { type ClaimOutcome, type Holder, type Registry, SAME_PLACE } from './registry.ts';

/** `make` as in `describeRegistry`, which runs this too. */
export function describeClaims(make: () => Promise<RegistryUnderTest>): void {
  describe('claims', () => {
    let under: RegistryUnderTest;
    let registry: Registry;
    let policies: RegistryUnderTest['policies'];
    beforeEach(async () => {
      under = await openedRegistry(make);
      ({ registry, policies } = under);
    });
    const { claim, find, write, workingKey } = registryScene(() => under);

    test('the first claim of an alias wins, and the loser is told who holds it', async () => {
      await claim('billing', 'key', 'first');
      expect(await registry.claim(INSTANCE.uid, 'key', 'billing', holder('second'))).toEqual({
        won: false,
        by: holder('first'),
      });
    });

    test('a claim is made at a whole second: windows, which are counted from it, begin and end with one', async () => {
      for (const alias of ['one', 'two', 'three']) expect((await claim(alias)).anchor % 1000).toBe(0);
    });

    test('the holder of a claim wins it again: the same scope, anchor, values and policy', async () => {
      const { claimed, policy } = await workingKey('billing', hash('a'));
      const again = await claim('billing');
      expect(again).toMatchObject({ scopeId: claimed.scopeId, anchor: claimed.anchor, policy });
      expect(again.values.map((value) => value.hash)).toEqual([hash('a')]);
    });

    test('of twenty that claim an alias at the same time exactly one wins, and all others name it', async () => {
      const names = Array.from({ length: 20 }, (_, place) => `racer-${place}`);
      const outcomes = await Promise.all(
        names.map((racer) => registry.claim(INSTANCE.uid, 'key', 'billing', holder(racer))),
      );
      const [winner, ...more] = outcomes.flatMap((outcome) => (outcome.won ? [outcome.claim.holder] : []));
      expect(more).toEqual([]);
      for (const outcome of outcomes) if (!outcome.won) expect(outcome.by).toEqual(winner);
    });

    test('of many aliases that are asked for at once each is won or lost by itself, and answered in its place', async () => {
      const theirs = await claim('b', 'key', 'first');
      const wishes = ['c', 'b', 'a'].map((alias) => ({ kind: 'key' as const, alias, holder: holder('second') }));
      const outcomes = await registry.claimAll(INSTANCE.uid, wishes);
      expect(outcomes).toMatchObject([
        { won: true, claim: { alias: 'c', kind: 'key', holder: holder('second'), values: [] } },
        { won: false, by: holder('first') },
        { won: true, claim: { alias: 'a' } },
      ]);
      expect(await registry.claimAll(INSTANCE.uid, wishes)).toEqual(outcomes);
      expect(await registry.claimAll(INSTANCE.uid, [])).toEqual([]);
      const again = { kind: 'key' as const, alias: 'b', holder: holder('first') };
      expect(await registry.claimAll(INSTANCE.uid, [again])).toEqual([{ won: true, claim: theirs }]);
    });

    test('of many that ask for the same aliases at the same time, in any order, each alias has one winner, whom all name', async () => {
      const aliases = Array.from({ length: 50 }, (_, place) => `alias-${place}`);
      const ask = (by: string, of: ReadonlyArray<string>) =>
        registry.claimAll(
          INSTANCE.uid,
          of.map((alias) => ({ kind: 'key' as const, alias, holder: holder(by) })),
        );
      const back = aliases.toReversed();
      const [one, other, third] = await Promise.all([ask('one', aliases), ask('other', back), ask('third', aliases)]);
      const winnerOf = (outcome: ClaimOutcome | undefined) =>
        outcome?.won === true ? outcome.claim.holder : outcome?.by;
      expect(other.toReversed().map(winnerOf)).toEqual(one.map(winnerOf));
      expect(third.map(winnerOf)).toEqual(one.map(winnerOf));
      expect(await registry.claims(INSTANCE.uid)).toHaveLength(aliases.length);
    });

    test('what is kept of each claim is what who asks for them makes of it', async () => {
      await claim('billing');
      const listed = await registry.claims(INSTANCE.uid, (claimed) => ({ ...claimed, alias: 'kept' }));
      expect(listed.map(({ alias }) => alias)).toEqual(['kept']);
    });

    test('an alias is taken per kind and per instance only', async () => {
      await claim('billing', 'key', 'first');
      expect(await claim('billing', 'user', 'second')).toMatchObject({ kind: 'user' });
      expect(await claim('billing', 'team', 'third')).toMatchObject({ kind: 'team' });
      expect(await registry.claim(OTHER.uid, 'key', 'billing', holder('fourth'))).toMatchObject({ won: true });
    });

    test('an alias is free text, told apart to the letter', async () => {
      const aliases = ['a', 'A', 'a b', "o'hara", '"; drop table claim; --', 'ключ/🔑', 'a'.repeat(256), '%', 'null'];
      const scopes = await Promise.all(aliases.map((alias) => claim(alias)));
      expect(new Set(scopes.map(({ scopeId }) => scopeId)).size).toBe(aliases.length);
      const listed = await registry.claims(INSTANCE.uid);
      expect(new Set(listed.map(({ alias }) => alias))).toEqual(new Set(aliases));
    });

    test('the claims of an instance are listed with their values and policies, those of others are not', async () => {
      const { claimed, policy } = await workingKey('billing', hash('a'));
      const user = await claim('ann@example.org', 'user');
      await registry.claim(OTHER.uid, 'key', 'elsewhere', holder('elsewhere'));
      const listed = await registry.claims(INSTANCE.uid);
      expect(listed.map(({ scopeId }) => scopeId).sort()).toEqual([claimed.scopeId, user.scopeId].sort());
      const key = listed.find(({ kind }) => kind === 'key');
      expect(key).toMatchObject({ alias: 'billing', holder: holder('billing'), policy });
      expect(key?.values).toEqual([{ hash: hash('a'), createdAt: expect.any(Number) }]);
      expect(listed.find(({ kind }) => kind === 'user')).not.toHaveProperty('policy');
    });

    test('who proves a live value of a claim takes it over: the same scope, anchor, values and policy', async () => {
      const { claimed, policy } = await workingKey('billing', hash('a'));
      const adopt = (by: string, proof: string) => registry.claim(INSTANCE.uid, 'key', 'billing', holder(by), proof);
      expect(await adopt('thief', hash('b'))).toEqual({ won: false, by: holder('billing') });
      const adopted = await adopt('heir', hash('a'));
      expect(adopted).toMatchObject({
        won: true,
        claim: { scopeId: claimed.scopeId, anchor: claimed.anchor, policy },
      });
      expect((await registry.claims(INSTANCE.uid)).map(({ holder: by }) => by)).toEqual([holder('heir')]);
      await registry.retireValues(claimed.scopeId, [hash('a')]);
      expect(await adopt('late', hash('a'))).toEqual({ won: false, by: holder('heir') });
    });

    test('who proves the value of a retained claim takes it over from another instance, and from another alias', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      const ask = (instance: string, alias: string) =>
        registry.claim(instance, 'key', alias, holder('heir'), hash('a'));
      const before = await ask(OTHER.uid, 'elsewhere');
      expect(before).toMatchObject({ won: true });
      expect(before.won && before.claim.scopeId).not.toBe(claimed.scopeId);
      await write(keyPolicy(claimed, { retained: 'billing-key' }));
      const after = await ask(OTHER.uid, 'brought');
      expect(after).toMatchObject({ won: true, claim: { scopeId: claimed.scopeId, anchor: claimed.anchor } });
      expect((await registry.claims(OTHER.uid)).map(({ alias }) => alias).toSorted()).toEqual(['brought', 'elsewhere']);
      expect(await registry.claims(INSTANCE.uid)).toEqual([]);
      expect(await find(hash('a'))).toBeUndefined();
      expect((await policies(OTHER.uid).find(hash('a')))?.key.scopeId).toBe(claimed.scopeId);
    });

    test('a user or team is taken over by what stands in its place, and by nothing else; a key never so', async () => {
      const { scopeId } = await claim('ann@example.org', 'user', 'ann');
      await claim('billing', 'key', 'billing');
      const ask = (kind: 'key' | 'user', alias: string, by: Partial<Holder>) =>
        registry.claim(INSTANCE.uid, kind, alias, { ...holder('ann'), uid: 'another', ...by }, SAME_PLACE);
      expect(await ask('user', 'ann@example.org', { name: 'eve' })).toMatchObject({ won: false });
      expect(await ask('user', 'ann@example.org', { namespace: 'elsewhere' })).toMatchObject({ won: false });
      expect(await ask('key', 'billing', { name: 'billing' })).toMatchObject({ won: false });
      expect(await ask('user', 'ann@example.org', {})).toMatchObject({ won: true, claim: { scopeId } });
    });

    test('a retired alias is free again, and who claims it next gets a new scope', async () => {
      const before = await claim('billing', 'key', 'first');
      await registry.retire([before.scopeId]);
      await registry.retire([before.scopeId]);
      const after = await claim('billing', 'key', 'second');
      expect(after.scopeId).not.toBe(before.scopeId);
      expect(after.values).toEqual([]);
      expect((await registry.claims(INSTANCE.uid)).map(({ scopeId }) => scopeId)).toEqual([after.scopeId]);
    });
  });
}
