// What does every registry promise, in memory or in PostgreSQL?
import { beforeEach, describe, expect, test } from 'vitest';
import type { KeyPolicy, Policies, ScopePolicy } from './policy.ts';
import { type Claim, type ClaimOutcome, type Holder, type Registry, SAME_PLACE } from './registry.ts';

export interface RegistryUnderTest {
  readonly registry: Registry;
  policies(instanceUid: string): Policies;
}

const INSTANCE = { uid: 'instance-1', namespace: 'apps', name: 'gateway' };
const OTHER = { uid: 'instance-2', namespace: 'apps', name: 'other' };

const holder = (name: string): Holder => ({ uid: `uid-of-${name}`, namespace: 'apps', name });
const hash = (letter: string) => letter.repeat(64);

/** `make` answers an empty, migrated registry; it is called once per test. */
export function describeRegistry(name: string, make: () => Promise<RegistryUnderTest>): void {
  describe(`the registry in ${name}`, () => {
    let registry: Registry;
    let policies: (instanceUid: string) => Policies;

    beforeEach(async () => {
      const made = await make();
      registry = made.registry;
      policies = made.policies;
      await registry.openInstance(INSTANCE);
      await registry.openInstance(OTHER);
    });

    const claim = async (alias: string, kind: 'key' | 'user' | 'team' = 'key', by = alias): Promise<Claim> => {
      const outcome = await registry.claim(INSTANCE.uid, kind, alias, holder(by));
      if (!outcome.won) throw new Error(`${alias} is ${outcome.by.name}'s`);
      return outcome.claim;
    };
    const find = (value: string) => policies(INSTANCE.uid).find(value);
    const write = (...written: ReadonlyArray<ScopePolicy | KeyPolicy>) =>
      registry.writePolicies(
        INSTANCE.uid,
        written.map((policy) => ({ policy })),
      );
    /** A key that works: claimed, with a value and a policy. */
    const workingKey = async (alias: string, value: string, more: Partial<KeyPolicy> = {}) => {
      const claimed = await claim(alias);
      const policy = keyPolicy(claimed, more);
      await registry.addValue(claimed.scopeId, value);
      await write(policy);
      return { claimed, policy };
    };

    describe('claims', () => {
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
        expect((await registry.claims(OTHER.uid)).map(({ alias }) => alias).toSorted()).toEqual([
          'brought',
          'elsewhere',
        ]);
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

    describe('key values', () => {
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

    describe('policies', () => {
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
            ? { policy: policyOf(claimed) }
            : { policy: policyOf(claimed), recounts: [{ scopeId: claimed.scopeId, window }] },
        );
        await registry.writePolicies(INSTANCE.uid, writes);
        const listed = await registry.claims(INSTANCE.uid);
        expect(listed).toHaveLength(700);
        for (const claimed of listed) expect(claimed.policy).toEqual(policyOf(claimed));
      });

      test('a retired key cannot be given a policy, nor can one of another instance', async () => {
        const { claimed, policy } = await workingKey('billing', hash('a'));
        await registry.writePolicies(OTHER.uid, [{ policy: { ...policy, blocked: true } }]);
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

    describe('instances', () => {
      test('the keys of a closed instance stop working and its aliases are free; other instances do not notice', async () => {
        await workingKey('billing', hash('a'));
        await registry.claim(OTHER.uid, 'key', 'elsewhere', holder('elsewhere'));
        await registry.closeInstance(INSTANCE.uid);
        await registry.closeInstance(INSTANCE.uid);
        expect(await find(hash('a'))).toBeUndefined();
        expect(await registry.claims(INSTANCE.uid)).toEqual([]);
        expect(await registry.claims(OTHER.uid)).toHaveLength(1);
      });

      describe('an instance that names a closed ledger', () => {
        const HEIR = { uid: 'instance-3', namespace: 'apps', name: 'gateway' };
        const findAsHeir = (value: string) => policies(HEIR.uid).find(value);

        test('goes on with its claims, anchors and values; keys work when their policies are written', async () => {
          const { claimed, policy } = await workingKey('billing', hash('a'));
          await registry.addValue(claimed.scopeId, hash('b'));
          await registry.retireValues(claimed.scopeId, [hash('b')]);
          await claim('ann@example.org', 'user');
          const before = await registry.claims(INSTANCE.uid);
          await registry.closeInstance(INSTANCE.uid);
          expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, lost: false })).toEqual({ ok: true });
          expect(await registry.claims(INSTANCE.uid)).toEqual([]);
          const after = await registry.claims(HEIR.uid);
          expect(after.map(({ policy: _, ...rest }) => rest)).toEqual(before.map(({ policy: _, ...rest }) => rest));
          expect((await findAsHeir(hash('a')))?.key.blocked).toBe(true);
          await registry.writePolicies(HEIR.uid, [{ policy }]);
          expect((await findAsHeir(hash('a')))?.key).toEqual(policy);
          expect(await findAsHeir(hash('b'))).toBeUndefined();
          expect(await find(hash('a'))).toBeUndefined();
          const { adopted } = await registry.instance(HEIR.uid);
          expect(adopted).toEqual({ from: INSTANCE.uid, at: expect.any(Number) });
        });

        test('has a retained key work at once: there is no object that would be seen', async () => {
          await workingKey('billing', hash('a'), { retained: 'billing-key' });
          await registry.closeInstance(INSTANCE.uid);
          await registry.openInstance(HEIR, { uid: INSTANCE.uid, lost: false });
          expect((await findAsHeir(hash('a')))?.key.blocked).toBe(false);
        });

        test('gets it once, however often it asks, and leaves what was retired before', async () => {
          const gone = await claim('gone');
          await registry.retire([gone.scopeId]);
          await workingKey('billing', hash('a'));
          await registry.closeInstance(INSTANCE.uid);
          await registry.openInstance(HEIR, { uid: INSTANCE.uid, lost: false });
          const before = await registry.claims(HEIR.uid);
          expect(before.map(({ alias }) => alias)).toEqual(['billing']);
          await registry.retire([before[0]?.scopeId ?? '']);
          expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, lost: false })).toEqual({ ok: true });
          expect(await registry.claims(HEIR.uid)).toEqual([]);
        });

        test('is refused where there is none of that name, it is its own, still open, or goes on elsewhere', async () => {
          const ask = (uid: string, by = HEIR) => registry.openInstance(by, { uid, lost: false });
          expect(await ask('nobody')).toEqual({ ok: false, why: 'absent' });
          expect(await ask(HEIR.uid)).toEqual({ ok: false, why: 'same' });
          expect(await ask(OTHER.uid)).toEqual({ ok: false, why: 'open' });
          await registry.closeInstance(OTHER.uid);
          await ask(OTHER.uid);
          const second = { ...HEIR, uid: 'instance-4' };
          expect(await ask(OTHER.uid, second)).toEqual({ ok: false, why: 'adopted', by: HEIR.uid });
          expect((await registry.instance(second.uid)).adopted).toBeUndefined();
        });

        test('that is lost, for nobody can close it any more, goes on with it as if it were closed', async () => {
          const { policy } = await workingKey('billing', hash('a'));
          expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, lost: true })).toEqual({ ok: true });
          expect(await registry.claims(INSTANCE.uid)).toEqual([]);
          await registry.writePolicies(HEIR.uid, [{ policy }]);
          expect((await findAsHeir(hash('a')))?.key).toEqual(policy);
          expect(await find(hash('a'))).toBeUndefined();
        });

        test('and has claims of its own keeps those', async () => {
          await workingKey('billing', hash('a'));
          await registry.closeInstance(INSTANCE.uid);
          await registry.openInstance(HEIR);
          await registry.claim(HEIR.uid, 'key', 'billing', holder('billing'));
          const before = await registry.claims(HEIR.uid);
          expect(await registry.openInstance(HEIR, { uid: INSTANCE.uid, lost: false })).toEqual({ ok: true });
          expect(await registry.claims(HEIR.uid)).toEqual(before);
        });

        test('races another for it: one gets it all, the other is told who', async () => {
          await workingKey('billing', hash('a'));
          await registry.closeInstance(INSTANCE.uid);
          const rivals = [HEIR, { ...HEIR, uid: 'instance-4' }];
          const asked = await Promise.all(
            rivals.map((rival) => registry.openInstance(rival, { uid: INSTANCE.uid, lost: false })),
          );
          expect(asked.filter(({ ok }) => ok)).toHaveLength(1);
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

    test('the schema may be migrated again and again', async () => {
      const { to } = await registry.migrate();
      expect(await registry.migrate()).toEqual({ from: to, to });
    });

    describe('released removals', () => {
      const released = async () => (await registry.instance(INSTANCE.uid)).released;

      test('are remembered by the name of their plan, each instance its own, until they are done', async () => {
        expect(await released()).toBeUndefined();
        await registry.release(INSTANCE.uid, 'first', ['a', 'b']);
        await registry.release(INSTANCE.uid, 'second', ['c']);
        await registry.release(INSTANCE.uid, 'first', ['a', 'd']);
        expect(await released()).toEqual(
          new Map([
            ['first', new Set(['a', 'd'])],
            ['second', new Set(['c'])],
          ]),
        );
        expect((await registry.instance(OTHER.uid)).released).toBeUndefined();
        await registry.release(INSTANCE.uid, 'first', []);
        await registry.release(INSTANCE.uid, 'first', []);
        expect(await released()).toEqual(new Map([['second', new Set(['c'])]]));
        await registry.release(INSTANCE.uid, 'second', []);
        expect(await released()).toBeUndefined();
      });

      test('are forgotten with their instance', async () => {
        await registry.release(INSTANCE.uid, 'first', ['a']);
        await registry.closeInstance(INSTANCE.uid);
        await registry.openInstance(INSTANCE);
        expect(await released()).toBeUndefined();
      });
    });
  });
}

function scopePolicy({ scopeId, kind, alias, anchor }: Claim, more: Partial<ScopePolicy> = {}): ScopePolicy {
  return { scopeId, kind, name: alias, blocked: false, models: [], anchor, ...more };
}

function keyPolicy(claim: Claim, more: Partial<KeyPolicy> = {}): KeyPolicy {
  const { namespace, name } = claim.holder;
  return { ...scopePolicy(claim), kind: 'key', object: { namespace, name }, charges: [], ...more };
}
