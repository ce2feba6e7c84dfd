// Promises of every registry about namespaces: all keys of a namespace are charged to its one row, too.
import { beforeEach, describe, expect, test } from 'vitest';
import { recordOf } from '../../../../test/doubles/policies.ts';
import type { KeyRecord } from '../policy.ts';
import { namespaceHolder, type Registry } from '../registry.ts';
import {
  hash,
  holder,
  INSTANCE,
  namespaceWrite,
  openWithNamespaces,
  type RegistryUnderTest,
  registryScenario,
  scopeWrite,
} from './registry.scenario.promises.ts';

/** `make` as in `describeRegistry`, which runs this too. */
export function describeNamespaces(make: () => Promise<RegistryUnderTest>): void {
  describe('a namespace', () => {
    let under: RegistryUnderTest;
    let registry: Registry;
    beforeEach(async () => {
      under = await openWithNamespaces(make);
      ({ registry } = under);
    });
    const { claim, claims, find, workingKey } = registryScenario(() => under);
    const scopesOf = (record: KeyRecord | undefined) => record?.scopes.map(({ kind, name }) => `${kind} ${name}`);
    const apps = namespaceWrite('apps');

    test('without a row has no key that works, and all work when the row is written, also those that were written before', async () => {
      await workingKey('billing', hash('a'));
      expect(await find(hash('a'))).toBeUndefined();
      expect(await registry.putScope(apps)).toBe('written');
      expect(await find(hash('a'))).toMatchObject({ key: { name: 'billing' } });
      await workingKey('other', hash('b'));
      expect(scopesOf(await find(hash('b')))).toEqual(['key other', 'namespace apps']);
    });

    test('has one row, the first, with the policy as it was written; and it is listed with its digest', async () => {
      const budget = { limit: '999999999999999999', duration: '1mo', alignment: 'Calendar Europe/Berlin' } as const;
      const perKey = { budget: { ...budget, sinceGeneration: 7 }, limits: { rpmLimit: 5 } };
      const policy = { budget, perKey, limits: { tpmLimit: 9 }, policyName: 'research', lastSince: 7 };
      const write = namespaceWrite('apps', policy);
      const rivals = Array.from({ length: 10 }, () => namespaceWrite('apps'));
      expect(await registry.putScope(write)).toBe('written');
      expect(new Set(await Promise.all(rivals.map((rival) => registry.putScope(rival))))).toEqual(new Set(['taken']));
      await workingKey('billing', hash('a'));
      expect((await find(hash('a')))?.scopes[1]).toEqual(write.policy);
      await claim('ann@example.org', 'user');
      await claim('research', 'team');
      const listed = (await claims()).filter(({ kind }) => kind === 'namespace');
      expect(await registry.namespaceClaims(INSTANCE.uid)).toEqual(listed);
      expect(listed).toEqual([
        {
          scopeId: write.policy.scopeId,
          kind: 'namespace',
          alias: 'apps',
          holder: namespaceHolder('apps'),
          anchor: write.policy.anchor,
          values: [],
          policy: write.policy,
        },
      ]);
    });

    test('is charged after the scopes of the key, with the Team of its policy: once, if the key names the same', async () => {
      const [own, shared] = [await claim('own', 'team'), await claim('shared', 'team')];
      await registry.putScope(namespaceWrite('apps', { chargedScopeIds: [shared.scopeId] }));
      await workingKey('one', hash('a'), { chargedScopeIds: [own.scopeId] });
      await workingKey('two', hash('b'), { chargedScopeIds: [shared.scopeId, own.scopeId] });
      expect(scopesOf(await find(hash('a')))).toEqual(['key one', 'team own', 'namespace apps', 'team shared']);
      expect(scopesOf(await find(hash('b')))).toEqual(['key two', 'team shared', 'team own', 'namespace apps']);
    });

    test('whose Team is not there has no key that works', async () => {
      await registry.putScope(namespaceWrite('apps', { chargedScopeIds: [crypto.randomUUID()] }));
      await workingKey('billing', hash('a'));
      expect(await find(hash('a'))).toBeUndefined();
    });

    test('that adopts a key is charged for it from then on', async () => {
      await registry.putScope(apps);
      await registry.putScope(namespaceWrite('elsewhere'));
      const write = scopeWrite('billing', { value: { hash: hash('a') } });
      await registry.putScope(write);
      expect(scopesOf(await find(hash('a')))).toEqual(['key billing', 'namespace apps']);
      const heir = { ...holder('heir'), namespace: 'elsewhere' };
      const adoption = { ...write, holder: heir, proof: hash('a'), formerHolders: [write.holder.uid] };
      expect(await registry.putScope(adoption)).toBe('written');
      const record = await find(hash('a'));
      expect(scopesOf(record)).toEqual(['key billing', 'namespace elsewhere']);
      expect(record?.holderUid).toBe(heir.uid);
    });

    test('continues with its row, unblocked, in an instance that continues the ledger: a retained key works there', async () => {
      await registry.putScope(namespaceWrite('apps', { policyName: 'research' }));
      await workingKey('billing', hash('a'), { retained: 'billing-key' });
      const before = (await find(hash('a')))?.scopes[1];
      await registry.closeInstance(INSTANCE.uid);
      await registry.openInstance({ ...INSTANCE, uid: 'heir' }, { uid: INSTANCE.uid, isMissing: false });
      expect((await recordOf(under.policies('heir'), hash('a')))?.scopes[1]).toEqual(before);
      expect(before?.blocked).toBe(false);
    });

    test('of a closed instance that opens again begins anew, like its keys', async () => {
      await registry.putScope(apps);
      await registry.closeInstance(INSTANCE.uid);
      await registry.openInstance(INSTANCE);
      expect(await claims()).toEqual([]);
      expect(await registry.putScope(apps)).toBe('taken');
      expect(await registry.putScope(namespaceWrite('apps'))).toBe('written');
    });
  });
}
