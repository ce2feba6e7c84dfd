// Users and teams follow their objects, and so do their keys.
import { beforeEach, describe, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { recordOf } from '../../../test/doubles/policies.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const owned = async () => await harness.get(virtualKeys, 'alice');
const editUser = (spec: object) => harness.edit(users, 'alice', { spec });
const uidOf = async () => (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
const claims = async () => harness.database().claims(await uidOf());
const chargedScopesOf = async (alias: string) => {
  const [value] = (await claims()).find((claim) => claim.kind === 'key' && claim.alias === alias)?.values ?? [];
  const record = await recordOf(harness.database().policies(await uidOf()), value?.hash ?? '');
  return record?.scopes.flatMap(({ kind, name }) => (kind === 'user' || kind === 'team' ? [name] : [])) ?? [];
};

describe('a user', () => {
  test('that names a missing team reports it, and its key does not work until the team exists', async () => {
    await harness.apply(makeTeam(), makeUser({ teamRefs: [{ name: 'research' }] }));
    await harness.resync();
    const isBlocked = async () => (await claims()).find(({ alias }) => alias === 'alice-key')?.policy?.blocked;
    expect(await isBlocked()).toBe(false);
    await harness.remove(teams, 'research');
    await harness.resync();
    expect(await harness.ready(users, 'alice')).toBe('False TeamNotFound');
    expect(await harness.ready(virtualKeys, 'alice')).toBe('False TeamNotFound');
    expect(await isBlocked()).toBe(true);
    await harness.apply(makeTeam());
    await harness.resync();
    expect(await harness.ready(users, 'alice')).toBe('True Ready');
    expect(await isBlocked()).toBe(false);
  });

  test('with autoCreateKey has a key that works after one run, with all fields of the user', async () => {
    await harness.apply({
      ...makeUser({ models: ['small'], duration: '90d', rpmLimit: 5, tpmLimit: 6, maxParallelRequests: 7 }),
      metadata: { name: 'alice', namespace: 'default', annotations: { 'gateway-operator.dev/requested-by': 'ann' } },
    });
    expect((await harness.resync()).failed).toEqual({});
    expect(await owned()).toMatchObject({
      metadata: {
        annotations: { 'gateway-operator.dev/requested-by': 'ann' },
        ownerReferences: [{ kind: 'User', name: 'alice', controller: true }],
      },
      spec: {
        keyAlias: 'alice-key',
        models: ['small'],
        maxBudget: '25',
        budgetDuration: '30d',
        budgetWindow: 'Rolling',
        duration: '90d',
        rpmLimit: 5,
        tpmLimit: 6,
        maxParallelRequests: 7,
        userRef: { name: 'alice' },
        connectionRef: { instanceRef: { name: 'main', namespace: 'default' } },
      },
    });
    expect(await harness.status(users, 'alice')).toMatchObject({
      keyRef: { name: 'alice' },
      keySecretRef: 'alice-key',
      currentSpend: '0',
      budgetResetDate: '2026-12-21T12:00:00Z',
    });
    expect(await harness.ready(users, 'alice')).toBe('True Ready');
    expect(await harness.works(await harness.value('alice-key'))).toBe(true);
    expect(await chargedScopesOf('alice-key')).toEqual(['alice@example.com']);
  });

  test('without autoCreateKey has no key; after switching it on it gets one, after switching it off it loses it', async () => {
    await harness.apply(makeUser({ autoCreateKey: false }));
    await harness.resync();
    expect(await owned()).toBeUndefined();
    expect(await harness.ready(users, 'alice')).toBe('True Ready');
    await editUser({ autoCreateKey: true });
    await harness.resync();
    const value = await harness.value('alice-key');
    expect(await harness.works(value)).toBe(true);
    await editUser({ autoCreateKey: false });
    await harness.resync();
    expect(await owned()).toBeUndefined();
    expect(await harness.get(RESOURCES.secrets, 'alice-key')).toBeUndefined();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.status(users, 'alice')).not.toHaveProperty('keyRef');
  });

  test.each([
    ['maxBudget', { maxBudget: '26' }],
    ['budgetDuration', { budgetDuration: '7d' }],
    ['models', { models: ['free'] }],
    ['duration', { duration: '5d' }],
    ['blocked', { blocked: true }],
    ['rpmLimit', { rpmLimit: 9 }],
    ['tpmLimit', { tpmLimit: 9 }],
    ['maxParallelRequests', { maxParallelRequests: 9 }],
  ])('has a key that follows an edit of %s with one write and the same value, then with none', async (field, spec) => {
    await harness.apply(makeUser({ duration: '9d', rpmLimit: 1, tpmLimit: 1, maxParallelRequests: 1 }));
    await harness.resync();
    const value = await harness.value('alice-key');
    await editUser(spec);
    expect((await harness.resync()).actions).toMatchObject({ UpdateKey: 1 });
    expect((await owned())?.spec).toMatchObject(spec);
    expect(await harness.value('alice-key')).toBe(value);
    expect((await harness.resync()).actions).toEqual({});
    if (!['duration', 'rpmLimit', 'tpmLimit', 'maxParallelRequests'].includes(field)) return;
    await editUser({ [field]: null });
    expect((await harness.resync()).actions).toMatchObject({ UpdateKey: 1 });
    expect((await owned())?.spec).not.toHaveProperty(field);
    expect((await harness.resync()).actions).toEqual({});
  });

  test('whose keyAlias changes gets another key in the same run, and an event reports it', async () => {
    await harness.apply(makeUser());
    await harness.resync();
    const value = await harness.value('alice-key');
    await editUser({ keyAlias: 'renamed' });
    expect((await harness.resync()).failed).toEqual({});
    expect((await owned())?.spec).toMatchObject({ keyAlias: 'renamed' });
    const minted = await harness.value('alice-key');
    expect(minted).not.toBe(value);
    expect([await harness.works(value), await harness.works(minted)]).toEqual([false, true]);
    expect(harness.events('alice')).toContain('KeyReplaced');
    expect(await harness.ready(virtualKeys, 'alice')).toBe('True Ready');
  });

  test('whose connectionRef changes moves to the other instance with a new key', async () => {
    await harness.apply(makeInstance({}, 'second'), makeUser());
    await harness.resync();
    const value = await harness.value('alice-key');
    await editUser({ connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } });
    while ((await harness.resync()).underWay !== undefined);
    expect(await harness.works(value)).toBe(false);
    expect(await harness.works(await harness.value('alice-key'), 'second')).toBe(true);
    expect((await claims()).map(({ alias }) => alias)).toEqual([]);
  });

  test('deletes its key only while the key has our label', async () => {
    await harness.apply(makeUser());
    await harness.resync();
    const label = (value: string | null) =>
      harness.edit(virtualKeys, 'alice', { metadata: { labels: { 'gateway-operator.dev/managed': value } } });
    await label(null);
    await harness.resync();
    expect(await harness.ready(users, 'alice')).toBe('False KeyConflict');
    await editUser({ autoCreateKey: false });
    expect((await harness.resync()).actions).not.toHaveProperty('DeleteKey');
    expect(await owned()).toBeDefined();
    await label('true');
    await harness.resync();
    expect(await owned()).toBeUndefined();
  });

  test('does not change a VirtualKey of its name that it does not own', async () => {
    await harness.apply(makeKey({ keyAlias: 'mine' }, 'alice'), makeUser());
    await harness.resync();
    expect(await harness.ready(users, 'alice')).toBe('False KeyConflict');
    expect((await owned())?.spec).toMatchObject({ keyAlias: 'mine' });
    expect(await harness.ready(virtualKeys, 'alice')).toBe('True Ready');
    expect(harness.events('alice')).toContain('KeyConflict');
    const { conditions } = (await harness.status(users, 'alice')) as { conditions: ReadonlyArray<{ message: string }> };
    // Deleting the VirtualKey would end a value that clients may use.
    expect(conditions.map(({ message }) => message).join()).toMatch(/set autoCreateKey to false/);
    expect(conditions.map(({ message }) => message).join()).not.toMatch(/delete/);
    await harness.remove(virtualKeys, 'alice');
    await harness.resync();
    await harness.resync();
    expect((await owned())?.spec).toMatchObject({ keyAlias: 'alice-key' });
    expect(await harness.ready(users, 'alice')).toBe('True Ready');
  });

  describe('that is restored together with its key', () => {
    /** As docs/guides/back-up-and-restore.md does. */
    const restore = async (owners: ReadonlyArray<object> | undefined = undefined, more: object = {}) => {
      const [user, key] = [await harness.get(users, 'alice'), await owned()];
      for (const [kind, name] of [
        [virtualKeys, 'alice'],
        [users, 'alice'],
      ] as const) {
        await harness.edit(kind, name, { metadata: { finalizers: [] } });
        await harness.remove(kind, name);
      }
      const toBackup = ({ apiVersion, kind, metadata, spec }: KubeObject, further: object = {}): KubeObject => {
        const { name, namespace = '', labels = {}, annotations = {} } = metadata;
        return { apiVersion, kind, metadata: { name, namespace, labels, annotations, ...further }, spec };
      };
      if (user === undefined || key === undefined) throw new Error('the User has no key');
      await harness.apply(toBackup(key, { ...(owners && { ownerReferences: owners }), ...more }), toBackup(user));
    };
    const reference = { apiVersion: 'auth.gateway-operator.dev/v1alpha1', name: 'alice', uid: 'of-before' };
    const formerUser = { ...reference, kind: 'User', controller: true };
    const other = { ...reference, kind: 'ConfigMap', apiVersion: 'v1' };

    beforeEach(async () => {
      await harness.apply(makeUser());
      await harness.resync();
    });

    test.each([
      ['without owner', undefined, []],
      ['with the uid that the User had', [formerUser], []],
      ['with another owner, which stays', [other], [other]],
    ])('%s has it as its own again: the value works, and the key follows the User', async (_, owners, kept) => {
      const value = await harness.value('alice-key');
      await restore(owners);
      harness.restart();
      expect((await harness.resync()).actions).toMatchObject({ AdoptKey: 1 });
      expect(await harness.ready(users, 'alice')).toBe('True Ready');
      expect(harness.events('alice')).not.toContain('KeyConflict');
      expect(await harness.value('alice-key')).toBe(value);
      expect(await harness.works(value)).toBe(true);
      const uid = (await harness.get(users, 'alice'))?.metadata.uid;
      expect((await owned())?.metadata.ownerReferences).toEqual([
        ...kept,
        expect.objectContaining({ kind: 'User', name: 'alice', uid, controller: true }),
      ]);
      expect((await harness.resync()).actions).toEqual({});
      await editUser({ maxBudget: '7' });
      await harness.trigger('User', 'alice');
      expect((await owned())?.spec).toMatchObject({ maxBudget: '7' });
      await harness.remove(users, 'alice');
      await harness.resync();
      expect([await owned(), await harness.works(value)]).toEqual([undefined, false]);
    });

    test('has it as its own again after a trigger of the key alone', async () => {
      await restore();
      await harness.trigger('VirtualKey', 'alice');
      await harness.resync();
      expect(await harness.ready(users, 'alice')).toBe('True Ready');
    });

    test.each([
      ['has no label of the operator', undefined, { labels: {} }, {}],
      ['another object controls', [{ ...other, controller: true }], {}, {}],
      ['has another alias', undefined, {}, { keyAlias: 'mine' }],
      ['names no User', undefined, {}, { userRef: null }],
      [
        'belongs to another instance',
        undefined,
        {},
        { connectionRef: { instanceRef: { name: 'b', namespace: 'default' } } },
      ],
    ])('does not get a VirtualKey of its name that %s', async (_, owners, metadata, spec) => {
      await restore(owners, metadata);
      await harness.edit(virtualKeys, 'alice', { spec });
      const before = await owned();
      await harness.resync();
      expect(await harness.ready(users, 'alice')).toBe('False KeyConflict');
      expect((await owned())?.metadata.ownerReferences).toEqual(before?.metadata.ownerReferences);
    });
  });

  test('has its key restored if a person deletes it, and repaired if a person edits it', async () => {
    await harness.apply(makeUser());
    await harness.resync();
    await harness.edit(virtualKeys, 'alice', { spec: { maxBudget: '9999', userRef: null } });
    await harness.trigger('VirtualKey', 'alice');
    expect((await owned())?.spec).toMatchObject({ maxBudget: '25', userRef: { name: 'alice' } });
    await harness.remove(virtualKeys, 'alice');
    await harness.trigger('VirtualKey', 'alice');
    expect(await harness.works(await harness.value('alice-key'))).toBe(true);
  });

  test('that is deleted has its own key deleted too; other keys that name it show UserNotFound and are blocked', async () => {
    await harness.apply(makeUser(), makeKey({ userRef: { name: 'alice' } }));
    await harness.resync();
    const [own, named] = [await harness.value('alice-key'), await harness.value('chat-key')];
    await harness.remove(users, 'alice');
    await harness.resync();
    expect(await harness.get(users, 'alice')).toBeUndefined();
    expect(await owned()).toBeUndefined();
    expect(await harness.works(own)).toBe(false);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False UserNotFound');
    const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    const record = await recordOf(harness.database().policies(uid), sha256(named ?? ''));
    expect(record?.key.blocked).toBe(true);
  });

  test('that is blocked blocks all keys that name it', async () => {
    await harness.apply(makeUser({ autoCreateKey: false, blocked: true }), makeKey({ userRef: { name: 'alice' } }));
    await harness.resync();
    expect(await harness.ready(users, 'alice')).toBe('False Blocked');
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False Blocked');
  });

  test('whose budget is spent stops its keys', async () => {
    await harness.apply(makeUser({ autoCreateKey: false }), makeKey({ userRef: { name: 'alice' } }));
    await harness.resync();
    await harness.spend('alice@example.com', '25');
    await harness.resync();
    expect(await harness.status(users, 'alice')).toMatchObject({ currentSpend: '25' });
    expect(await harness.ready(users, 'alice')).toBe('False BudgetExceeded');
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False BudgetExceeded');
  });

  test('with a budget that never resets has no reset date', async () => {
    await harness.apply(makeUser({ autoCreateKey: false, budgetDuration: undefined }));
    await harness.resync();
    expect(await harness.status(users, 'alice')).toMatchObject({ currentSpend: '0' });
    expect(await harness.status(users, 'alice')).not.toHaveProperty('budgetResetDate');
  });

  test('and another with the same e-mail address: the older has it; the other shows AliasTaken and its key does not work', async () => {
    await harness.apply(makeUser());
    harness.clock.pass(1000);
    await harness.apply(makeUser({ userEmail: 'alice@example.com', keyAlias: 'b' }, 'bob'));
    await harness.resync();
    expect([await harness.ready(users, 'alice'), await harness.ready(users, 'bob')]).toEqual([
      'True Ready',
      'False AliasTaken',
    ]);
    expect(await harness.get(virtualKeys, 'bob')).toBeUndefined();
  });
});

const MONTHS_IN_BERLIN = { budgetDuration: '1mo', budgetWindow: 'Calendar', budgetTimeZone: 'Europe/Berlin' };
const FIRST_OF_MONTH = { budgetResetDate: '2026-11-30T23:00:00Z' };

describe('calendar windows', () => {
  test('of a Team begin on the first of the month in its time zone, and end with the edit that removes them', async () => {
    await harness.apply(makeTeam(MONTHS_IN_BERLIN));
    await harness.resync();
    expect(await harness.status(teams, 'research')).toMatchObject(FIRST_OF_MONTH);
    await harness.edit(teams, 'research', { spec: { budgetTimeZone: null } });
    await harness.trigger('Team', 'research');
    expect(await harness.status(teams, 'research')).toMatchObject({ budgetResetDate: '2026-12-01T00:00:00Z' });
    await harness.edit(teams, 'research', { spec: { budgetWindow: 'Rolling' } });
    await harness.trigger('Team', 'research');
    expect(await harness.status(teams, 'research')).toMatchObject({ budgetResetDate: '2026-12-21T12:00:00Z' });
  });

  test('of a User are also those of the VirtualKey that autoCreateKey makes, after each edit too', async () => {
    await harness.apply(makeUser(MONTHS_IN_BERLIN));
    await harness.resync();
    expect(await harness.status(users, 'alice')).toMatchObject(FIRST_OF_MONTH);
    expect(await owned()).toMatchObject({ spec: MONTHS_IN_BERLIN, status: FIRST_OF_MONTH });
    await editUser({ budgetTimeZone: null });
    await harness.trigger('User', 'alice');
    await harness.resync();
    expect((await owned())?.spec).not.toHaveProperty('budgetTimeZone');
    expect(await owned()).toMatchObject({ status: { budgetResetDate: '2026-12-01T00:00:00Z' } });
  });

  test('need a budgetDuration: a budget without one never resets', async () => {
    await harness.apply(makeTeam({ ...MONTHS_IN_BERLIN, budgetDuration: undefined }));
    await harness.resync();
    expect(await harness.status(teams, 'research')).toMatchObject({ currentSpend: '0' });
    expect(await harness.status(teams, 'research')).not.toHaveProperty('budgetResetDate');
    const team = (await claims()).find(({ alias }) => alias === 'research');
    expect(team?.policy?.budget).toMatchObject({ duration: '36525d', alignment: 'Rolling' });
  });
});

describe('a team', () => {
  test('is charged for the keys of its users, whether the team or the user names the other', async () => {
    await harness.apply(
      makeTeam({ members: [{ name: 'alice' }] }, 'listed'),
      makeTeam({}, 'named'),
      makeTeam({}, 'other'),
      makeUser({ teamRefs: [{ name: 'named' }] }),
      makeKey({ userRef: { name: 'alice' } }),
      makeKey({ userRef: { name: 'alice' }, teamRef: { name: 'other' } }, 'single'),
    );
    await harness.resync();
    expect(await harness.ready(teams, 'listed')).toBe('True Ready');
    expect(await chargedScopesOf('alice-key')).toEqual(['alice@example.com', 'listed', 'named']);
    expect(await chargedScopesOf('chat')).toEqual(['alice@example.com', 'listed', 'named']);
    expect(await chargedScopesOf('single')).toEqual(['alice@example.com', 'other']);
    await harness.edit(teams, 'listed', { spec: { members: [] } });
    await harness.trigger('Team', 'listed');
    expect(await chargedScopesOf('alice-key')).toEqual(['alice@example.com', 'named']);
  });

  test('that is missing makes the key that names it inactive', async () => {
    await harness.apply(makeKey({ teamRef: { name: 'research' } }));
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False TeamNotFound');
    await harness.apply(makeTeam());
    await harness.trigger('Team', 'research');
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('is deleted in any order with its keys and users', async () => {
    await harness.apply(
      makeTeam(),
      makeUser({ teamRefs: [{ name: 'research' }] }),
      makeKey({ teamRef: { name: 'research' } }),
    );
    await harness.resync();
    for (const [kind, name] of [
      [teams, 'research'],
      [gatewayInstances, 'main'],
      [users, 'alice'],
      [virtualKeys, 'chat'],
    ] as const) {
      await harness.remove(kind, name);
      await harness.trigger(kind.kind, name);
      expect(await harness.get(kind, name)).toBeUndefined();
    }
    expect(await owned()).toBeUndefined();
  });

  test('is one of at most eight that are charged for one key, by name', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `t${index}`);
    await harness.apply(...names.map((name) => makeTeam({ members: [{ name: 'alice' }] }, name)), makeUser());
    await harness.resync();
    expect(await chargedScopesOf('alice-key')).toEqual(['alice@example.com', ...names.slice(0, 8)]);
  });
});

describe('an edit of the alias', () => {
  const PLACES = [
    ['userEmail', users, 'alice', 'alice@example.com', 'alan@example.com'],
    ['teamAlias', teams, 'research', 'research', 'Research'],
  ] as const;
  const scopeOf = async (alias: string) => (await claims()).find((claim) => claim.alias === alias)?.scopeId;
  const members = () => [
    makeTeam(),
    makeUser({ autoCreateKey: false, teamRefs: [{ name: 'research' }] }),
    makeKey({ userRef: { name: 'alice' } }),
  ];
  const edit = (kind: typeof users | typeof teams, name: string, field: string, alias: string) =>
    harness.edit(kind, name, { spec: { [field]: alias } });

  describe.each(PLACES)('%s', (field, kind, name, before, after) => {
    beforeEach(async () => {
      await harness.apply(...members());
      await harness.resync();
      await harness.spend(before, '24');
      await harness.resync();
    });

    test.each([
      ['resync', () => harness.resync()],
      ['trigger', () => harness.trigger(kind.kind, name)],
    ])('keeps scope, window, spend and charges with one %s, and the gateway reads the new name', async (_, run) => {
      const scope = await scopeOf(before);
      const { budgetResetDate, currentSpend } = await harness.status(kind, name);
      expect(currentSpend).toBe('24');
      await edit(kind, name, field, after);
      expect((await run()).failed).toEqual({});
      await harness.resync();
      expect(await harness.status(kind, name)).toMatchObject({ currentSpend: '24', budgetResetDate });
      expect([await scopeOf(before), await scopeOf(after)]).toEqual([undefined, scope]);
      expect(await chargedScopesOf('chat')).toContain(after);
      expect([await harness.ready(kind, name), await harness.ready(virtualKeys, 'chat')]).toEqual([
        'True Ready',
        'True Ready',
      ]);
      expect((await harness.resync()).actions).toEqual({});
    });

    test('waits while another object has the alias, and gets it when that is free', async () => {
      await harness.apply({
        ...(kind === users ? makeUser({ userEmail: after, autoCreateKey: false }, 'other') : makeTeam({}, 'other')),
      });
      if (kind === teams) await harness.edit(teams, 'other', { spec: { teamAlias: after } });
      await harness.resync();
      const scope = await scopeOf(before);
      await edit(kind, name, field, after);
      await harness.resync();
      await harness.resync();
      expect([await harness.ready(kind, name), await scopeOf(before)]).toEqual(['False AliasTaken', scope]);
      await harness.remove(kind, 'other');
      await harness.resync();
      await harness.resync();
      expect([await harness.ready(kind, name), await scopeOf(after)]).toEqual(['True Ready', scope]);
      expect(await harness.status(kind, name)).toMatchObject({ currentSpend: '24' });
    });

    test('frees the previous alias in the same run, for an object that gets it in the same commit', async () => {
      await harness.apply(kind === users ? makeUser({ userEmail: 'c@example.com' }, 'other') : makeTeam({}, 'other'));
      await harness.resync();
      await edit(kind, name, field, after);
      await edit(kind, 'other', field, before);
      await harness.resync();
      expect([await harness.ready(kind, name), await harness.ready(kind, 'other')]).toEqual([
        'True Ready',
        'True Ready',
      ]);
      expect(await harness.status(kind, name)).toMatchObject({ currentSpend: '24' });
      expect(await harness.status(kind, 'other')).toMatchObject({ currentSpend: '0' });
    });

    test('and a deletion before the next run leave no claim', async () => {
      await edit(kind, name, field, after);
      await harness.remove(kind, name);
      await harness.resync();
      await harness.resync();
      expect([await scopeOf(before), await scopeOf(after)]).toEqual([undefined, undefined]);
    });
  });
});
