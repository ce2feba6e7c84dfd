// Promises of every registry about scopes as they are written: alias, policy and value, all or none.
import { beforeEach, describe, expect, test } from 'vitest';
import { recordOf } from '../../../../test/doubles/policies.ts';
import type { KeyPolicy } from '../policy.ts';
import { type Holder, MAX_RETAINED, type Registry, SAME_OBJECT, SAME_PLACE, type ScopeWrite } from '../registry.ts';
import {
  hash,
  holder,
  INSTANCE,
  OTHER,
  openRegistry,
  type RegistryUnderTest,
  scopeWrite,
} from './registry.scenario.promises.ts';

const OTHER_SCOPE = '00000000-0000-4000-8000-000000000001';
const ANCHOR = Date.UTC(2026, 10, 21, 12);

/** `make` as in `describeRegistry`, which runs this too. */
export function describeScopes(make: () => Promise<RegistryUnderTest>): void {
  describe('scopes', () => {
    let registry: Registry;
    let policies: RegistryUnderTest['policies'];
    beforeEach(async () => {
      ({ registry, policies } = await openRegistry(make));
    });
    const find = (value: string) => recordOf(policies(INSTANCE.uid), value);
    const claims = () => registry.claims(INSTANCE.uid);

    test('one call makes a key that works: the claim with the scope and anchor of its policy, and the value', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a'), rotation: 'today' } });
      expect(await registry.putScope(write)).toBe('written');
      expect(await claims()).toEqual([
        {
          scopeId: write.policy.scopeId,
          kind: 'key',
          alias: 'billing',
          holder: holder('billing'),
          anchor: ANCHOR,
          values: [{ hash: hash('a'), createdAt: expect.any(Number), rotation: 'today' }],
          policy: write.policy,
        },
      ]);
      expect((await find(hash('a')))?.key).toEqual(write.policy);
      const before = await claims();
      expect(await registry.putScope(write)).toBe('written');
      expect(await claims()).toEqual(before);
    });

    test('who loses the alias writes nothing, and sees who has it', async () => {
      await registry.putScope(scopeWrite('billing', { by: 'first' }));
      const lateWrite = scopeWrite('billing', { by: 'second', value: { hash: hash('b') } });
      expect(await registry.putScope(lateWrite)).toBe('taken');
      expect(await registry.claimsOf(INSTANCE.uid, [{ kind: 'key', alias: 'billing' }])).toMatchObject([
        { holder: holder('first'), values: [] },
      ]);
      expect(await find(hash('b'))).toBeUndefined();
    });

    test('of twenty that want an alias at the same time exactly one has it, whatever else is asked for beside them', async () => {
      const names = Array.from({ length: 20 }, (_, place) => `racer-${place}`);
      const outcomes = await Promise.all(
        names.flatMap((by) => [registry.putScope(scopeWrite('billing', { by })), registry.putScope(scopeWrite(by))]),
      );
      expect(outcomes.filter((outcome) => outcome === 'written')).toHaveLength(21);
      expect(await claims()).toHaveLength(21);
    });

    test('many at the same time, in any order, each end by themselves', async () => {
      const all = Array.from({ length: 60 }, (_, place) => `alias-${place}`);
      const write = (by: string, of: ReadonlyArray<string>) =>
        Promise.all(
          of.map((alias) => registry.putScope(scopeWrite(alias, { by, value: { hash: hash(`${by}-${alias}`) } }))),
        );
      const [one, other] = await Promise.all([write('one', all), write('other', all.toReversed())]);
      expect(one.map((outcome) => outcome === 'taken')).toEqual(
        other.toReversed().map((outcome) => outcome === 'written'),
      );
      for (const { values } of await claims()) expect(values).toHaveLength(1);
    });

    test('one that the database refuses fails alone', async () => {
      const bad = scopeWrite('bad');
      const writes = [scopeWrite('one'), { ...bad, policy: { ...bad.policy, scopeId: 'no uuid' } }, scopeWrite('two')];
      const results = await Promise.allSettled(writes.map((write) => registry.putScope(write)));
      const isStrict = results[1]?.status === 'rejected';
      expect(results.map(({ status }) => status)).toEqual([
        'fulfilled',
        isStrict ? 'rejected' : 'fulfilled',
        'fulfilled',
      ]);
      expect((await claims()).map(({ alias }) => alias)).toEqual(expect.arrayContaining(['one', 'two']));
    });

    test('a retired scope is not written again, and its alias is free for another scope', async () => {
      const write = scopeWrite('billing');
      await registry.putScope(write);
      await registry.retire([write.policy.scopeId]);
      expect(await registry.putScope({ ...write, value: { hash: hash('a') } })).toBe('taken');
      expect(await claims()).toEqual([]);
      expect(await registry.putScope(scopeWrite('billing'))).toBe('written');
      expect(await find(hash('a'))).toBeUndefined();
    });

    test('a value that another live scope has is refused, and the policy is written', async () => {
      await registry.putScope(scopeWrite('one', { value: { hash: hash('a') } }));
      const two = scopeWrite('two', { value: { hash: hash('a') } });
      expect(await registry.putScope(two)).toBe('value taken');
      expect((await registry.claimsOf(INSTANCE.uid, [two]))[0]).toMatchObject({ values: [], policy: two.policy });
    });

    test('nothing is written where the value of `unless` lives: another run has published it', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope(write);
      const lateWrite = {
        ...write,
        policy: { ...write.policy, blocked: true },
        value: { hash: hash('b'), unlessLive: hash('a') },
      };
      expect(await registry.putScope(lateWrite)).toBe('overtaken');
      expect(await claims()).toMatchObject([{ policy: write.policy, values: [{ hash: hash('a') }] }]);
      expect(await registry.putScope({ ...lateWrite, value: { hash: hash('b'), unlessLive: hash('c') } })).toBe(
        'written',
      );
      await registry.endValues(write.policy.scopeId, [hash('a')], 3_600_000);
      expect(await registry.putScope({ ...lateWrite, value: { hash: hash('d'), unlessLive: hash('a') } })).toBe(
        'written',
      );
    });

    test('nothing is written where the value of `unlessEnded` has ended in the claim', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope(write);
      const restored = (letter: string) => ({
        ...write,
        policy: { ...write.policy, blocked: true },
        value: { hash: hash(letter), unlessEnded: hash(letter) },
      });
      await registry.putScope({ ...write, value: { hash: hash('b') } });
      await registry.endValues(write.policy.scopeId, [hash('a')]);
      expect(await registry.putScope(restored('a'))).toBe('overtaken');
      expect(await claims()).toMatchObject([{ policy: write.policy, values: [{ hash: hash('b') }] }]);
      expect(await registry.putScope(restored('c'))).toBe('written');
      expect(await registry.putScope(restored('c'))).toBe('written');
      expect(await claims()).toMatchObject([{ values: [{ hash: hash('b') }, { hash: hash('c') }] }]);
    });

    test('a value that a rotation has ended is no value of `unlessEnded`, also in a claim without others', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a'), unlessEnded: hash('a') } });
      const { scopeId } = write.policy;
      await registry.putScope(write);
      // As if the namespace of the key was not allowed for a while.
      await registry.endValues(scopeId, [hash('a')]);
      expect(await registry.putScope(write)).toBe('written');
      await registry.endValues(scopeId, [hash('a')], 0);
      expect(await registry.putScope(write)).toBe('overtaken');
      await registry.endValues(scopeId, [hash('a')]);
      expect(await registry.putScope(write)).toBe('overtaken');
      expect(await claims()).toMatchObject([{ values: [] }]);
    });

    test('a policy of an earlier generation never takes the place of a later one; an adopter begins anew', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      const at = (generation: number, blocked: boolean, by = 'billing') => ({
        ...write,
        generation,
        holder: holder(by),
        proof: hash('a'),
        policy: { ...write.policy, blocked },
      });
      await registry.putScope(at(5, true));
      expect(await registry.putScope({ ...at(4, false), value: { hash: hash('b') } })).toEqual({ later: 5 });
      expect(await registry.putScope({ ...at(4, false), overwrites: 6 })).toEqual({ later: 5 });
      expect(await claims()).toMatchObject([{ policy: { blocked: true }, values: [{ hash: hash('a') }] }]);
      expect(await registry.putScope({ ...at(3, true), overwrites: 5 })).toBe('written');
      expect(await registry.putScope(at(2, false))).toEqual({ later: 3 });
      expect((await find(hash('a')))?.key.blocked).toBe(true);
      expect(await registry.putScope(at(1, false, 'heir'))).toBe('written');
      expect((await find(hash('a')))?.key.blocked).toBe(false);
    });

    test('who proves a live value takes the claim over with scope, anchor and values; a thief does not', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope(write);
      expect(await registry.putScope({ ...write, holder: holder('thief'), proof: hash('b') })).toBe('taken');
      expect(await registry.putScope({ ...write, holder: holder('heir'), proof: hash('a') })).toBe('written');
      expect(await claims()).toMatchObject([{ holder: holder('heir'), anchor: ANCHOR, values: [{ hash: hash('a') }] }]);
      await registry.endValues(write.policy.scopeId, [hash('a')]);
      expect(await registry.putScope({ ...write, holder: holder('late'), proof: hash('a') })).toBe('taken');
    });

    test('a retained claim moves to whoever proves its value, from another instance and another alias', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope({ ...write, policy: { ...write.policy, retained: 'billing-key' } });
      const movedWrite = { ...scopeWrite('brought', { by: 'heir' }), instanceUid: OTHER.uid, proof: hash('a') };
      expect(await registry.putScope(movedWrite)).toBe('taken');
      expect(await registry.claims(OTHER.uid)).toMatchObject([
        { scopeId: write.policy.scopeId, alias: 'brought', holder: holder('heir'), anchor: ANCHOR },
      ]);
      expect(await claims()).toEqual([]);
      expect(await registry.putScope({ ...movedWrite, policy: { ...write.policy, name: 'brought' } })).toBe('written');
      expect((await recordOf(policies(OTHER.uid), hash('a')))?.key.name).toBe('brought');
    });

    test('who proves a value from another namespace must also know the uid of the holder', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope(write);
      const from = (namespace: string, formerHolders?: ReadonlyArray<string>) =>
        registry.putScope({
          ...write,
          holder: { ...holder(`heir-in-${namespace}`), namespace },
          proof: hash('a'),
          ...(formerHolders && { formerHolders }),
        });
      expect(await from('elsewhere')).toBe('taken');
      expect(await from('elsewhere', [])).toBe('taken');
      expect(await from('elsewhere', ['uid-of-thief', holder('heir-in-elsewhere').uid])).toBe('taken');
      expect(await claims()).toMatchObject([{ holder: write.holder }]);
      const { uid } = write.holder;
      const wrongValue = { ...holder('heir'), namespace: 'elsewhere' };
      expect(await registry.putScope({ ...write, holder: wrongValue, proof: hash('b'), formerHolders: [uid] })).toBe(
        'taken',
      );
      expect(await from('elsewhere', ['uid-of-another', uid])).toBe('written');
      expect(await claims()).toMatchObject([{ holder: { namespace: 'elsewhere' }, values: [{ hash: hash('a') }] }]);
      // The namespace of the holder has changed with it.
      expect(await from('apps')).toBe('taken');
    });

    test('a claim that is not retained goes back to a namespace whose Secret names a previous holder', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope(write);
      const from = (name: string, namespace: string, formerHolders: ReadonlyArray<string>) =>
        registry.putScope({ ...write, holder: { ...holder(name), namespace }, proof: hash('a'), formerHolders });
      const { uid: first } = write.holder;
      expect(await from('second', 'elsewhere', [first])).toBe('written');
      const { uid: second } = holder('second');
      expect(await claims()).toMatchObject([{ previousHolders: [first] }]);
      expect(await from('thief', 'third', ['uid-of-thief'])).toBe('taken');
      // While the claim is retained, a copy that stayed behind is not enough.
      const retained = { ...write.policy, retained: 'billing-key' };
      await registry.putScope({ ...write, holder: { ...holder('second'), namespace: 'elsewhere' }, policy: retained });
      expect(await from('restored', 'apps', [first])).toBe('taken');
      await registry.putScope({ ...write, holder: { ...holder('second'), namespace: 'elsewhere' } });
      expect(await from('restored', 'apps', [first])).toBe('written');
      expect(await claims()).toMatchObject([
        { holder: { namespace: 'apps' }, previousHolders: [second, first], values: [{ hash: hash('a') }] },
      ]);
    });

    test('a retained claim does not move to another namespace, or another cluster, without the uid of its holder', async () => {
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope({ ...write, policy: { ...write.policy, retained: 'billing-key' } });
      const far = { ...OTHER, uid: 'instance-3', cluster: 'another' };
      await registry.openInstance(far);
      const move = (alias: string, namespace: string, more: Partial<ScopeWrite>) => {
        const { policy, ...heir } = scopeWrite(alias, { by: `heir-${alias}` });
        const moved = { ...heir, policy: { ...policy, retained: 'of its own' }, proof: hash('a') };
        return registry.putScope({ ...moved, holder: { ...heir.holder, namespace }, ...more });
      };
      const { uid } = write.holder;
      // Without the proof it is a new claim.
      expect(await move('one', 'elsewhere', {})).toBe('written');
      expect(await move('two', 'elsewhere', { formerHolders: ['uid-of-thief'], instanceUid: OTHER.uid })).toBe(
        'written',
      );
      expect(await move('three', 'apps', { instanceUid: far.uid })).toBe('written');
      expect(await registry.claimsOf(INSTANCE.uid, [write])).toMatchObject([{ holder: write.holder }]);
      expect(await move('four', 'elsewhere', { formerHolders: [uid], instanceUid: far.uid })).toBe('taken');
      expect(await registry.claimsOf(far.uid, [{ kind: 'key', alias: 'four' }])).toMatchObject([
        { scopeId: write.policy.scopeId, holder: { namespace: 'elsewhere' }, values: [{ hash: hash('a') }] },
      ]);
    });

    test('a namespace retains a bounded number of keys of an instance; one more stays as it is until one ends', async () => {
      const writes = Array.from({ length: MAX_RETAINED + 3 }, (_, place) => scopeWrite(`key-${place}`));
      await Promise.all(writes.map((write) => registry.putScope(write)));
      const elsewhere = scopeWrite('elsewhere');
      const inOther = { ...elsewhere, holder: { ...elsewhere.holder, namespace: 'elsewhere' } };
      await registry.putScope(inOther);
      const retain = (write: typeof elsewhere) => {
        const { scopeId, anchor } = write.policy;
        return registry.putScope({ ...write, policy: { scopeId, anchor, blocked: false, retained: 'secret' } });
      };
      const outcomes = await Promise.all(writes.map(retain));
      expect(outcomes.filter((outcome) => outcome === 'too many')).toHaveLength(3);
      const place = outcomes.indexOf('too many');
      const [refused, retained] = [writes[place], writes[outcomes.indexOf('written')]];
      if (refused === undefined || retained === undefined) throw new Error('none is refused');
      const policyOf = async (write: typeof elsewhere) => (await registry.claimsOf(INSTANCE.uid, [write]))[0]?.policy;
      expect(await policyOf(refused)).toEqual(refused.policy);
      expect([await retain(refused), await retain(retained), await retain(inOther)]).toEqual([
        'too many',
        'written',
        'written',
      ]);
      await registry.retire([retained.policy.scopeId]);
      expect(await retain(refused)).toBe('written');
    });

    test('a list of all claims has of a retained key only what ends it; its alias reads the whole digest', async () => {
      const write = scopeWrite('billing');
      const budget = { limit: '1000', duration: '30d', alignment: 'Rolling' } as const;
      const { scopeId, anchor } = write.policy;
      await registry.putScope({ ...write, policy: { ...write.policy, budget } });
      await registry.putScope({ ...write, policy: { scopeId, anchor, blocked: false, retained: 'secret' } });
      expect(await claims()).toMatchObject([{ scopeId, policy: { retained: 'secret', blocked: false } }]);
      expect((await claims())[0]?.policy).not.toHaveProperty('budget');
      expect(await registry.claimsOf(INSTANCE.uid, [write])).toMatchObject([
        { policy: { retained: 'secret', budget } },
      ]);
    });

    test('a retained claim shows that a scope which it is charged to has retired; other claims do not', async () => {
      const owners = [scopeWrite('research', { kind: 'team' }), scopeWrite('ann@example.org', { kind: 'user' })];
      for (const owner of owners) await registry.putScope(owner);
      const chargedScopeIds = owners.map(({ policy }) => policy.scopeId);
      const put = async (alias: string, more: Partial<KeyPolicy>) => {
        const write = scopeWrite(alias);
        await registry.putScope({ ...write, policy: { ...write.policy, ...more } as KeyPolicy });
      };
      await put('kept', { chargedScopeIds, retained: 'kept-key' });
      await put('ordinary', { chargedScopeIds });
      await put('free', { chargedScopeIds: [], retained: 'free-key' });
      const ownerless = async () => (await claims()).flatMap((claim) => (claim.isOwnerGone ? [claim.alias] : []));
      expect(await ownerless()).toEqual([]);
      await registry.retire(chargedScopeIds.slice(1));
      expect(await ownerless()).toEqual(['kept']);
      expect(await registry.claimsOf(INSTANCE.uid, [{ kind: 'key', alias: 'kept' }])).toMatchObject([
        { isOwnerGone: true },
      ]);
    });

    test('a claim that is not retained stays where it is, whoever has a copy of its value', async () => {
      await registry.putScope(scopeWrite('billing', { value: { hash: hash('a') } }));
      const copy = { ...scopeWrite('copy', { by: 'thief' }), instanceUid: OTHER.uid, proof: hash('a') };
      expect(await registry.putScope(copy)).toBe('written');
      expect(await registry.claims(OTHER.uid)).toMatchObject([{ scopeId: copy.policy.scopeId, values: [] }]);
      expect(await claims()).toHaveLength(1);
    });

    test('a user or team is taken over by what is in its place, and by nothing else; a key never so', async () => {
      const user = scopeWrite('ann@example.org', { kind: 'user', by: 'ann' });
      const key = scopeWrite('billing');
      await registry.putScope(user);
      await registry.putScope(key);
      const ask = (write: typeof user, by: Partial<Holder>) =>
        registry.putScope({ ...write, holder: { ...write.holder, uid: 'another', ...by }, proof: SAME_PLACE });
      expect(await ask(user, { name: 'eve' })).toBe('taken');
      expect(await ask(user, { namespace: 'elsewhere' })).toBe('taken');
      expect(await ask(key, {})).toBe('taken');
      expect(await ask(user, {})).toBe('written');
    });

    test('the claim of a user or team gets the new alias of its object, with scope and policy; a key never does', async () => {
      const team = scopeWrite('search', { kind: 'team', by: 'ann' });
      await registry.putScope(team);
      await registry.putScope({ ...team, instanceUid: OTHER.uid, policy: { ...team.policy, scopeId: OTHER_SCOPE } });
      await registry.putScope(scopeWrite('search', { kind: 'user', by: 'ann' }));
      await registry.putScope(scopeWrite('search', { by: 'ann' }));
      const rename = { ...scopeWrite('research', { kind: 'team', by: 'ann' }), proof: SAME_OBJECT };
      // The caller reads the claim again, because the policy names another scope.
      expect(await registry.putScope(rename)).toBe('taken');
      const [renamed] = await registry.claimsOf(INSTANCE.uid, [rename]);
      expect(renamed).toMatchObject({ scopeId: team.policy.scopeId, holder: holder('ann'), policy: team.policy });
      const policy = { ...rename.policy, scopeId: team.policy.scopeId };
      expect(await registry.putScope({ ...rename, policy, generation: 2 })).toBe('written');
      expect(await registry.putScope(scopeWrite('search', { kind: 'team', by: 'eve' }))).toBe('written');
      const own = async (uid: string) => (await registry.claims(uid)).map(({ kind, alias }) => `${kind} ${alias}`);
      expect((await own(INSTANCE.uid)).toSorted()).toEqual([
        'key search',
        'team research',
        'team search',
        'user search',
      ]);
      expect(await own(OTHER.uid)).toEqual(['team search']);
      expect(await registry.putScope({ ...scopeWrite('other', { by: 'ann' }), proof: SAME_OBJECT })).toBe('written');
      expect(await own(INSTANCE.uid)).toContain('key search');
    });

    test('a claim is not renamed while another object has the alias, nor by another object', async () => {
      await registry.putScope(scopeWrite('search', { kind: 'team', by: 'ann' }));
      await registry.putScope(scopeWrite('research', { kind: 'team', by: 'eve' }));
      const rename = { ...scopeWrite('research', { kind: 'team', by: 'ann' }), proof: SAME_OBJECT };
      expect(await registry.putScope(rename)).toBe('taken');
      const strange = { ...scopeWrite('new', { kind: 'team', by: 'bob' }), proof: SAME_OBJECT };
      expect(await registry.putScope(strange)).toBe('written');
      expect(await claims()).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ alias: 'search', holder: holder('ann') }),
          expect.objectContaining({ alias: 'research', holder: holder('eve') }),
        ]),
      );
    });

    test('of many renames at the same time each gets its own alias, and two for one alias have one winner', async () => {
      const names = Array.from({ length: 20 }, (_, place) => `team-${place}`);
      await Promise.all(names.map((by) => registry.putScope(scopeWrite(by, { kind: 'team', by }))));
      const before = new Map((await claims()).map(({ holder: { name }, scopeId }) => [name, scopeId]));
      const renames = names.map((by, place) => scopeWrite(place < 2 ? 'one' : `new-${by}`, { kind: 'team', by }));
      await Promise.all(renames.map((write) => registry.putScope({ ...write, proof: SAME_OBJECT })));
      const after = await claims();
      expect(new Map(after.map(({ holder: { name }, scopeId }) => [name, scopeId]))).toEqual(before);
      const aliases = after.map(({ alias }) => alias);
      expect(aliases.filter((alias) => alias.startsWith('new-'))).toHaveLength(18);
      expect(aliases.filter((alias) => alias === 'one')).toHaveLength(1);
    });

    test('an alias is free text, told apart to the letter, and taken per kind and per instance only', async () => {
      const aliases = ['a', 'A', 'a b', "o'hara", '"; drop table claim; --', 'ключ/🔑', 'a'.repeat(256), '%', 'null'];
      const writes = [...aliases.map((alias) => scopeWrite(alias)), scopeWrite('a', { kind: 'user' })];
      const otherWrite = { ...scopeWrite('a'), instanceUid: OTHER.uid };
      const outcomes = await Promise.all([...writes, otherWrite].map((write) => registry.putScope(write)));
      expect(new Set(outcomes)).toEqual(new Set(['written']));
      expect((await claims()).map(({ alias }) => alias).toSorted()).toEqual([...aliases, 'a'].toSorted());
    });

    test('an anchor is a whole second: windows, which are counted from it, begin and end with one', async () => {
      const write = scopeWrite('billing');
      await registry.putScope({ ...write, policy: { ...write.policy, anchor: ANCHOR + 999 } });
      expect((await claims()).map(({ anchor }) => anchor)).toEqual([ANCHOR]);
    });

    test('the claims of an instance are listed with their values and policies, those of others are not', async () => {
      const key = scopeWrite('billing', { value: { hash: hash('a') } });
      const user = scopeWrite('ann@example.org', { kind: 'user' });
      const otherWrite = { ...scopeWrite('elsewhere'), instanceUid: OTHER.uid };
      for (const write of [key, user, otherWrite]) await registry.putScope(write);
      const sortedClaims = (await claims()).toSorted((one, other) => (one.alias < other.alias ? -1 : 1));
      expect(sortedClaims).toMatchObject([
        { alias: 'ann@example.org', kind: 'user', policy: user.policy, values: [] },
        { alias: 'billing', kind: 'key', policy: key.policy, holder: key.holder, values: [{ hash: hash('a') }] },
      ]);
    });

    test('a policy is written for its own instance only', async () => {
      const write = scopeWrite('billing');
      await registry.putScope(write);
      const otherWrite = { ...write, instanceUid: OTHER.uid, policy: { ...write.policy, blocked: true } };
      expect(await registry.putScope(otherWrite)).toBe('taken');
      expect(await claims()).toMatchObject([{ policy: write.policy }]);
    });

    test('an instance says whether it is open, and scopes whose they are among the aliases that are asked for', async () => {
      expect(await registry.instance(INSTANCE.uid)).toMatchObject({
        isOpen: true,
        place: { namespace: INSTANCE.namespace, name: INSTANCE.name },
      });
      expect((await registry.instance('never was')).place).toBeUndefined();
      expect((await registry.instance('never was')).isOpen).toBe(false);
      expect(await registry.instance(INSTANCE.uid)).toMatchObject({ hasClaims: false });
      await registry.putScope(scopeWrite('billing'));
      expect(await registry.claimsOf(INSTANCE.uid, [{ kind: 'user', alias: 'billing' }])).toEqual([]);
      expect(await registry.instance(INSTANCE.uid)).toMatchObject({ hasClaims: true });
      expect(await registry.instance(OTHER.uid)).toMatchObject({ hasClaims: false });
      await registry.closeInstance(INSTANCE.uid);
      expect(await registry.instance(INSTANCE.uid)).toMatchObject({ isOpen: false, hasClaims: false });
    });

    test('a value that is written while its claim retires does not outlive it', async () => {
      for (let round = 0; round < 20; round += 1) {
        const write = scopeWrite('billing');
        await registry.putScope(write);
        const value = { hash: `${round}`.padStart(64, '0') };
        await Promise.all([registry.putScope({ ...write, value }), registry.retire([write.policy.scopeId])]);
        const heir = scopeWrite(`heir-${round}`, { value });
        expect(await registry.putScope(heir)).toBe('written');
      }
    });
  });
}
