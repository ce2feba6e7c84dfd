// Promises of policies, which the gateway finds by the hash of a value.
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Hash } from '../platform.ts';
import { digestOf } from '../policy-digest.ts';
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

const sha256: Hash = (text) => createHash('sha256').update(text).digest('hex');
/** The digest of a member that is longer than a hash. */
const HASH = /^[0-9a-f]{64}$/;

/** `make` as in `describeRegistry`, which runs this too. */
export function describePolicies(make: () => Promise<RegistryUnderTest>): void {
  describe('policies', () => {
    let under: RegistryUnderTest;
    let registry: Registry;
    let policies: RegistryUnderTest['policies'];
    beforeEach(async () => {
      under = await openRegistry(make);
      ({ registry, policies } = under);
    });
    const { addValue, claim, claims, find, write, workingKey } = registryScenario(() => under);

    test('a key is found by its hash, with the policy of every charged scope, the key first', async () => {
      const user = await claim('ann@example.org', 'user', { models: ['small'] });
      const team = await claim('research', 'team', { blocked: true });
      const { claimed, policy } = await workingKey('billing', hash('a'), {
        chargedScopeIds: [team.scopeId, user.scopeId],
      });
      expect(await find(hash('a'))).toEqual({
        key: policy,
        scopes: [policy, team.policy, user.policy],
        holderUid: claimed.holder.uid,
        secret: expect.stringMatching(/.{32}/),
        size: expect.any(Number),
      });
    });

    test('a key has a secret of its own, which stays when its value is rotated and its policy edited', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await workingKey('other', hash('b'));
      const secret = (await find(hash('a')))?.secret;
      await addValue(claimed, hash('c'));
      await registry.endValues(claimed.scopeId, [hash('a')]);
      await write(claimed, { models: ['small'] });
      expect((await find(hash('c')))?.secret).toBe(secret);
      expect((await find(hash('b')))?.secret).not.toBe(secret);
    });

    test('a policy comes back as it was written: exact limits, instants and any text', async () => {
      const { policy } = await workingKey('billing', hash('a'), {
        budget: { limit: '999999999999999999', duration: '30d', alignment: 'Calendar' },
        models: ['a/b', 'ünï "quoted"', ''],
        expiresAt: 253_402_300_799_999,
      });
      expect((await find(hash('a')))?.key).toEqual(policy);
    });

    test('a policy with a NUL character is written like any other, so that a block of its key arrives', async () => {
      const { claimed } = await workingKey('billing', hash('a'), { metadata: { note: 'a\u0000b', path: 'c:\\u0000' } });
      await write(claimed, { blocked: true, metadata: { note: 'a\u0000b' } });
      expect(await find(hash('a'))).toMatchObject({ key: { blocked: true } });
    });

    test.each([
      ['short', ''],
      ['long', 'x'.repeat(64)],
    ])('a policy that was written has, when read, the digest that it had before, for any %s text', async (_, more) => {
      const letters = ['\u0000', '\\', 'u0000', '"', 'd800', '\ud800', '\udc00', '__proto__'];
      const pairs = letters.flatMap((one) => letters.map((other) => one + other));
      const texts = [...letters, ...pairs, ...pairs.flatMap((pair) => letters.map((letter) => pair + letter))];
      const window = { limit: '1', duration: '1d' };
      const writes = texts.map((text, place) => {
        const name = `${text}${more}`;
        const members = {
          name,
          models: [name],
          tags: [name, '\\u0000'],
          metadata: Object.fromEntries([
            [name, '1'],
            // The same where it is stored.
            [name.replaceAll('\u0000', '\\u0000'), '2'],
          ]),
          furtherBudgets: [{ ...window, scopeId: crypto.randomUUID(), model: name }],
        };
        const write = scopeWrite(`key-${place}`);
        return { ...write, policy: { ...write.policy, ...members } };
      });
      const outcomes = await Promise.all(writes.map((one) => registry.putScope(one)));
      expect(new Set(outcomes)).toEqual(new Set(['written']));
      const read = new Map((await claims()).map(({ alias, policy }) => [alias, policy]));
      for (const { alias, policy } of writes) expect(read.get(alias)).toEqual(digestOf(policy, sha256));
    });

    test('is read with hashes in place of long members, which are others when these change', async () => {
      const short = { models: ['small'], blocked: true, retained: 'x'.repeat(253) };
      const budget = {
        limit: '999999999999999999',
        duration: '36500d',
        alignment: 'Calendar Europe/Berlin',
        sinceGeneration: 7,
      } as const;
      const furtherBudgets = [{ scopeId: crypto.randomUUID(), model: 'm'.repeat(256), limit: '1', duration: '1d' }];
      const long = { metadata: { b: 'x'.repeat(60), a: '1' }, tags: ['y'.repeat(61)], name: 'z'.repeat(64) };
      const { policy, ...claimed } = await claim('billing', 'key', { ...short, ...long, budget, furtherBudgets });
      const read = async () => (await registry.claimsOf(INSTANCE.uid, [claimed]))[0];
      const first = await read();
      const digest = {
        metadata: expect.stringMatching(HASH),
        tags: expect.stringMatching(HASH),
        name: expect.stringMatching(HASH),
      };
      expect(first?.policy).toEqual({ ...policy, ...digest });
      const same = { metadata: { a: '1', b: 'x'.repeat(60) } };
      await registry.putScope(toWrite({ ...claimed, policy: { ...policy, ...same } }));
      expect((await read())?.policy).toEqual(first?.policy);
      await registry.putScope(toWrite({ ...claimed, policy: { ...policy, tags: ['y'.repeat(62)] } }));
      const after = await read();
      expect(after?.policy).toEqual({ ...first?.policy, tags: expect.stringMatching(HASH) });
      expect(after?.policy?.tags).not.toBe(first?.policy?.tags);
    });

    test('a change leaves all other members as they are', async () => {
      const user = await claim('ann@example.org', 'user');
      const more = { chargedScopeIds: [user.scopeId], tags: ['y'.repeat(60)], blocked: true };
      const { claimed, policy } = await workingKey('billing', hash('a'), more);
      const { scopeId, anchor } = claimed;
      const change = { scopeId, anchor, blocked: false, retained: 'billing-key' };
      const [before] = await registry.claimsOf(INSTANCE.uid, [claimed]);
      expect(await registry.putScope({ ...toWrite(claimed), policy: change })).toBe('written');
      const changed = { ...policy, blocked: false, retained: 'billing-key' };
      expect(await find(hash('a'))).toMatchObject({ key: changed, scopes: [changed, user.policy] });
      const [after] = await registry.claimsOf(INSTANCE.uid, [claimed]);
      expect(after).toEqual({ ...before, policy: { ...before?.policy, blocked: false, retained: 'billing-key' } });
    });

    test('policies of eight teams come back, however long their lists of models are', async () => {
      const models = Array.from({ length: 512 }, (_, place) => `${place}${'😀'.repeat(200)}`);
      const teams = await Promise.all(
        Array.from({ length: 8 }, (_, place) => claim(`team-${place}`, 'team', { models })),
      );
      const { policy } = await workingKey('billing', hash('a'), {
        chargedScopeIds: teams.map(({ scopeId }) => scopeId),
        models,
      });
      expect((await find(hash('a')))?.scopes).toEqual([policy, ...teams.map((team) => team.policy)]);
    });

    test('blocked and expired keys are found: what to say about them is for the gateway', async () => {
      await workingKey('billing', hash('a'), { blocked: true, expiresAt: 1 });
      expect(await find(hash('a'))).toMatchObject({ key: { blocked: true, expiresAt: 1 } });
    });

    test('what is written last holds immediately', async () => {
      const { claimed, policy } = await workingKey('billing', hash('a'));
      const budget = { limit: '5000000000', duration: '1h', alignment: 'Rolling' as const };
      await write(claimed, { budget });
      await write(claimed, { budget });
      expect((await find(hash('a')))?.key).toEqual({ ...policy, budget });
      await write(claimed, {});
      expect((await find(hash('a')))?.key).toEqual(policy);
    });

    test('an unknown value and the key of another instance are not found', async () => {
      await workingKey('working', hash('b'));
      expect(await find(hash('c'))).toBeUndefined();
      expect(await find('')).toBeUndefined();
      for (const instance of [OTHER.uid, 'never opened'])
        expect(await policies(instance).find([hash('b')])).toEqual(new Map([[hash('b'), undefined]]));
    });

    test('many keys are found by one question, known ones among unknown ones', async () => {
      const keys = await Promise.all(['a', 'b', 'd'].map((name) => workingKey(name, hash(name))));
      const unknown = Array.from({ length: 1_000 }, (_, place) => `${place}`.padStart(64, '0'));
      const hashes = [...unknown, ...['d', 'a', 'c', 'b'].map(hash)];
      const records = await policies(INSTANCE.uid).find(hashes);
      expect([...records.keys()].sort()).toEqual(hashes.toSorted());
      const known = [...records].flatMap(([one, record]) => (record === undefined ? [] : [one]));
      expect(known.sort()).toEqual(['a', 'b', 'd'].map(hash).sort());
      expect(records.get(hash('b'))?.key).toEqual(keys[1]?.policy);
      expect((await policies(INSTANCE.uid).find([])).size).toBe(0);
    });

    test('a record that is larger than the query may read comes back as its size, and others are read', async () => {
      await workingKey('ordinary', hash('a'));
      const team = await claim('research', 'team', { models: ['m'.repeat(10_000)] });
      await workingKey('large', hash('b'), { chargedScopeIds: [team.scopeId] });
      const hashes = ['a', 'b', 'c'].map(hash);
      const [ordinary, large, unknown] = await policies(INSTANCE.uid)
        .find(hashes, 4096)
        .then((found) => hashes.map((one) => found.get(one)));
      expect([ordinary?.key?.name, large, unknown]).toEqual(['ordinary', { size: expect.any(Number) }, undefined]);
      expect(ordinary?.size).toBeLessThan(1_000);
      expect(large?.size).toBeGreaterThan(10_000);
      expect(large?.size).toBeLessThan(11_000);
      expect(await find(hash('b'))).toMatchObject({ key: { name: 'large' }, size: large?.size });
    });

    test('a retired key is not found', async () => {
      const { claimed } = await workingKey('billing', hash('a'));
      await registry.retire([claimed.scopeId]);
      expect(await find(hash('a'))).toBeUndefined();
    });

    test('many policies are written at the same time, edited budgets among them', async () => {
      const keys = await Promise.all(Array.from({ length: 700 }, (_, place) => claim(`key-${place}`)));
      const window = { start: 0, end: 3_600_000 };
      const modelsOf = (alias: string) => [`model of ${alias}`];
      const outcomes = await Promise.all(
        keys.map((claimed, place) => {
          const recounts = place % 9 === 0 ? {} : { recounts: [{ scopeId: claimed.scopeId, window }] };
          const written = toWrite(claimed);
          const policy = { ...written.policy, models: modelsOf(claimed.alias) };
          return registry.putScope({ ...written, ...recounts, policy });
        }),
      );
      expect(new Set(outcomes)).toEqual(new Set(['written']));
      const listed = await claims();
      expect(listed).toHaveLength(700);
      for (const { alias, policy } of listed) expect(policy?.models).toEqual(modelsOf(alias));
    });

    test('a budget whose user was deleted still pays until the key is rewritten: a deletion never frees spend', async () => {
      const user = await claim('ann@example.org', 'user');
      const { claimed, policy } = await workingKey('billing', hash('a'), { chargedScopeIds: [user.scopeId] });
      await registry.retire([user.scopeId]);
      expect((await find(hash('a')))?.scopes).toEqual([policy, user.policy]);
      await write(claimed, { chargedScopeIds: [] });
      expect((await find(hash('a')))?.scopes).toEqual([{ ...policy, chargedScopeIds: [] }]);
    });

    test('a key that pays from a scope that is not there does not work', async () => {
      await workingKey('billing', hash('a'), { chargedScopeIds: [crypto.randomUUID()] });
      expect(await find(hash('a'))).toBeUndefined();
    });
  });
}
