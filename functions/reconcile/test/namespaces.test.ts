// Namespaces have a row of their own on an instance, to which all of their keys are charged, with the key policy that the
// instance has for them.
import { beforeEach, describe, expect, test } from 'vitest';
import { formatMoney, parseMoney } from '#core/money/money.ts';
import { spendWindow } from '#core/money/window.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { KeyRecord, NamespacePolicy } from '#core/ports/policy.ts';
import { ledgerRowOf } from '#core/ports/test/ledger-row.fixture.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import type { Team } from '#crds/kinds/team.ts';
import { recordOf } from '../../../test/doubles/policies.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];
const RESEARCH = { matchLabels: { tier: 'research' } };
const BUDGET = { maxBudget: '10', budgetDuration: '1d', budgetWindow: 'Calendar' };

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await label('lab', { tier: 'research' });
  await label('web', {});
  await harness.apply(...makeSecrets(), makeInstance({ allowedNamespaces: { from: 'All' } }));
  await harness.apply(makeKey({}, 'chat', 'lab'), makeKey({}, 'other', 'lab'), makeKey({}, 'site', 'web'));
  await harness.resync();
});

async function label(name: string, labels: Readonly<Record<string, string | null>>) {
  const namespaces = RESOURCES.namespaces;
  if ((await harness.cluster.get(namespaces, undefined, name)) !== undefined)
    return void (await harness.cluster.patch(namespaces, undefined, name, { metadata: { labels } }));
  const metadata = { name, labels } as never;
  await harness.cluster.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
}

const setPolicies = (...keyPolicies: object[]) =>
  harness.edit(gatewayInstances, 'main', { spec: { keyPolicies: [...keyPolicies] } });
const pass = async (millis = 60_000) => {
  harness.clock.pass(millis);
  return harness.resync();
};
const uidOf = async () => (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
const recordOfKey = async (key = 'chat', namespace = 'lab'): Promise<KeyRecord> => {
  const value = await harness.value(`${key}-key`, namespace);
  const record = await recordOf(harness.database().policies(await uidOf()), sha256(value ?? ''));
  if (record === undefined) throw new Error(`${namespace}/${key} does not work`);
  return record;
};
const policyOf = async (namespace = 'lab', key = 'chat'): Promise<NamespacePolicy> =>
  (await recordOfKey(key, namespace)).scopes.find(({ kind }) => kind === 'namespace') as NamespacePolicy;
/** The policies of namespaces, by name. */
const policyNames = async () =>
  Object.fromEntries((await harness.namespaces()).map(({ alias, policy }) => [alias, policy?.policyName]));

/** Books a request of this key, as a gateway does. */
async function spend(dollars: string, key = 'chat', namespace = 'lab'): Promise<void> {
  const now = harness.clock.now();
  const { scopes } = await recordOfKey(key, namespace);
  const scopeWindows = scopes.map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) }));
  const id = `${now
    .toString(16)
    .padStart(12, '0')
    .replace(/^(.{8})/, '$1-')}-7${crypto.randomUUID().slice(15)}`;
  await harness.database().book(await uidOf(), [ledgerRowOf({ id, scopeWindows, cost: parseMoney(dollars) ?? 0n })]);
}

/** What the namespace has spent in its current window. */
async function spentBy(namespace = 'lab', key = 'chat'): Promise<string> {
  const scope = await policyOf(namespace, key);
  const window = spendWindow(scope, harness.clock.now());
  const [sum] = await harness.database().sums([{ scopeId: scope.scopeId, window }]);
  return formatMoney(sum?.spent ?? 0n);
}

describe('the row of a namespace', () => {
  test('is written in the run that writes its first key, without a limit if there is no key policy', async () => {
    expect(await policyOf()).toMatchObject({ kind: 'namespace', name: 'lab', of: 'default/main', blocked: false });
    expect((await recordOfKey()).scopes.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'key chat',
      'namespace lab',
    ]);
    expect((await policyOf('lab', 'other')).scopeId).toBe((await policyOf()).scopeId);
    expect((await policyOf('web', 'site')).scopeId).not.toBe((await policyOf()).scopeId);
    for (const member of ['budget', 'limits', 'perKey', 'policyName', 'lastSince'])
      expect(await policyOf()).not.toHaveProperty(member);
    expect((await pass()).actions).toEqual({});
  });

  test('is written by the trigger for its first key, and for a User that gets a key, also if labels select its policy', async () => {
    await setPolicies({ name: 'research', namespaceSelector: RESEARCH, models: ['small'] });
    await harness.resync();
    await label('first', { tier: 'research' });
    await label('people', { tier: 'research' });
    await harness.apply(makeKey({}, 'new', 'first'), makeUser({}, 'alice', 'people'));
    await harness.trigger('VirtualKey', 'new', 'first');
    await harness.trigger('User', 'alice', 'people');
    expect(await policyOf('first', 'new')).toMatchObject({ policyName: 'research', models: ['small'] });
    expect(await policyOf('people', 'alice')).toMatchObject({ policyName: 'research', models: ['small'] });
  });

  test('is not written for a namespace that the instance does not allow', async () => {
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    await harness.apply(makeKey({}, 'new', 'stranger'));
    await pass();
    expect((await harness.namespaces()).map(({ alias }) => alias).toSorted()).toEqual(['lab', 'web']);
  });

  test('stays when keys, namespace and policies are deleted: nothing refills a budget', async () => {
    await setPolicies({ name: 'all', perNamespace: BUDGET });
    await pass();
    await spend('4');
    const { scopeId } = await policyOf();
    for (const name of ['chat', 'other']) await harness.remove(virtualKeys, name, 'lab');
    await pass();
    await harness.cluster.delete(RESOURCES.namespaces, undefined, 'lab', await uidOfNamespace());
    harness.cluster.collectGarbage();
    await setPolicies();
    await pass();
    expect(await policyNames()).toEqual({ lab: undefined, web: undefined });
    await label('lab', {});
    await setPolicies({ name: 'all', perNamespace: BUDGET });
    await harness.apply(makeKey({}, 'chat', 'lab'));
    await pass();
    expect((await policyOf()).scopeId).toBe(scopeId);
    expect(await spentBy()).toBe('4');
  });

  const uidOfNamespace = async () =>
    (await harness.cluster.get(RESOURCES.namespaces, undefined, 'lab'))?.metadata.uid ?? '';

  test('continues in an instance that continues the ledger', async () => {
    await setPolicies({ name: 'all', perNamespace: BUDGET });
    await pass();
    await spend('4');
    const [old, { scopeId }] = [await uidOf(), await policyOf()];
    await harness.remove(gatewayInstances, 'main');
    await pass();
    const successor = makeInstance({
      allowedNamespaces: { from: 'All' },
      keyPolicies: [{ name: 'all', perNamespace: BUDGET }],
    });
    const annotations = { 'instance.gateway-operator.dev/adopt-ledger': old };
    await harness.apply({ ...successor, metadata: { ...successor.metadata, annotations } });
    await pass();
    expect((await policyOf()).scopeId).toBe(scopeId);
    expect(await spentBy()).toBe('4');
    expect((await pass()).actions).toEqual({});
  });

  test('that is lost keeps its keys from working, as their conditions show, until it is written again', async () => {
    const [lab] = (await harness.namespaces()).filter(({ alias }) => alias === 'lab');
    await harness.database().retire([lab?.scopeId ?? '']);
    harness.onDatabase = (method) => {
      if (method === 'putScope') throw new Error('refused');
    };
    await pass();
    expect(await harness.ready(virtualKeys, 'chat', 'lab')).toBe('False ReconcileFailed');
    expect(await harness.ready(virtualKeys, 'site', 'web')).toBe('True Ready');
    harness.onDatabase = () => undefined;
    await pass();
    expect(await harness.ready(virtualKeys, 'chat', 'lab')).toBe('True Ready');
    expect((await policyOf()).scopeId).not.toBe(lab?.scopeId);
  });
});

describe('a key policy', () => {
  test('is in the row of each namespace that it selects first, and no key is written', async () => {
    await setPolicies(
      {
        name: 'research',
        namespaceSelector: RESEARCH,
        models: ['small'],
        perNamespace: { ...BUDGET, budgetTimeZone: 'Europe/Berlin', maxParallelRequests: 5 },
        perKey: { maxBudget: '2', budgetDuration: '1h', rpmLimit: 60, tpmLimit: 100 },
      },
      { name: 'rest' },
      { name: 'never', perNamespace: BUDGET },
    );
    expect((await pass()).actions).toMatchObject({ PutScope: 2 });
    expect(await policyOf()).toMatchObject({
      policyName: 'research',
      models: ['small'],
      budget: { limit: '10000000000', duration: '1d', alignment: 'Calendar Europe/Berlin' },
      limits: { maxParallelRequests: 5 },
      perKey: {
        budget: { limit: '2000000000', duration: '1h', alignment: 'Rolling' },
        limits: { rpmLimit: 60, tpmLimit: 100 },
      },
    });
    expect(await policyOf('web', 'site')).toMatchObject({ policyName: 'rest', models: [] });
    expect(await policyOf('web', 'site')).not.toHaveProperty('budget');
    expect((await pass()).actions).toEqual({});
    await setPolicies({ name: 'rest' });
    expect((await pass()).actions).toMatchObject({ PutScope: 1 });
    expect(await policyNames()).toEqual({ lab: 'rest', web: 'rest' });
  });

  test('follows the labels of a namespace, and stays if they cannot be read', async () => {
    await setPolicies({ name: 'research', namespaceSelector: RESEARCH }, { name: 'rest' });
    await pass();
    await label('web', { tier: 'research' });
    harness.cluster.inject(({ resource }) => {
      if (resource === RESOURCES.namespaces) throw new Error('forbidden');
      return undefined;
    });
    await setPolicies({ name: 'research', namespaceSelector: RESEARCH, models: ['small'] }, { name: 'rest' });
    await harness.apply(makeKey({}, 'late', 'unread'), makeKey({}, 'more', 'lab'));
    await pass();
    expect(await policyNames()).toEqual({ lab: 'research', web: 'rest' });
    expect(await policyOf('lab', 'more')).toMatchObject({ models: [] });
    expect(await harness.ready(virtualKeys, 'site', 'web')).toBe('True Ready');
    // A key never works before its namespace is recorded.
    const { conditions } = await harness.status(virtualKeys, 'late', 'unread');
    expect(conditions?.[0]).toMatchObject({ reason: 'Pending', message: expect.stringContaining('namespace unread') });
    harness.cluster.inject(() => undefined);
    await pass();
    expect(await policyNames()).toEqual({ lab: 'research', web: 'research', unread: 'rest' });
    expect(await policyOf('web', 'site')).toMatchObject({ models: ['small'] });
  });

  test('is in force before a trigger for the instance reads the VirtualKeys, of which there may be very many', async () => {
    await harness.apply(makeTeam());
    await setPolicies(
      { name: 'research', namespaceSelector: RESEARCH, teamRef: { name: 'research' } },
      { name: 'rest', models: ['small'] },
    );
    await harness.resync();
    await setPolicies({ name: 'all', teamRef: { name: 'research' } });
    const listed = Promise.withResolvers<undefined>();
    harness.cluster.inject(({ verb, resource }) =>
      verb === 'list' && resource === virtualKeys ? listed.promise : undefined,
    );
    const trigger = harness.trigger('GatewayInstance', 'main');
    await expect.poll(policyNames).toEqual({ lab: 'all', web: 'all' });
    listed.resolve(undefined);
    expect((await trigger).failed).toEqual({});
    expect((await recordOfKey('site', 'web')).scopes.map(({ name }) => name)).toEqual(['site', 'web', 'research']);
  });

  test('applies to a namespace that has only a retained key, also in the trigger for the instance', async () => {
    await harness.edit(virtualKeys, 'site', { spec: { deletionPolicy: 'Retain' } }, 'web');
    await pass();
    await harness.remove(virtualKeys, 'site', 'web');
    await pass();
    expect(await harness.get(virtualKeys, 'site', 'web')).toBeUndefined();
    await setPolicies({ name: 'research', namespaceSelector: RESEARCH }, { name: 'rest', models: ['small'] });
    await harness.trigger('GatewayInstance', 'main');
    expect(await policyOf('web', 'site')).toMatchObject({ policyName: 'rest', models: ['small'] });
  });
});

describe('the Team of a key policy', () => {
  const POLICY = { name: 'all', teamRef: { name: 'research' } };
  const chargedBy = async (namespace: string, key: string) =>
    (await recordOfKey(key, namespace)).scopes.map(({ kind, name }) => `${kind} ${name}`);

  test('is charged for all keys of its namespaces, once if a key names it too', async () => {
    await harness.apply(makeTeam());
    await harness.apply(makeKey({ teamRef: { name: 'research' } }, 'near'));
    await setPolicies(POLICY);
    expect((await pass()).failed).toEqual({});
    expect(await chargedBy('lab', 'chat')).toEqual(['key chat', 'namespace lab', 'team research']);
    expect(await chargedBy('default', 'near')).toEqual(['key near', 'team research', 'namespace default']);
    expect((await pass()).actions).toEqual({});
    await setPolicies();
    await pass();
    expect(await chargedBy('lab', 'chat')).toEqual(['key chat', 'namespace lab']);
  });

  test('that is missing, or of another instance, keeps the keys from working; when it is there they work again', async () => {
    await setPolicies(POLICY);
    await pass();
    expect(await policyOf()).toMatchObject({ blocked: true, missingOwnerReason: 'TeamNotFound' });
    await harness.apply(
      makeInstance({}, 'second'),
      makeTeam({ connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } }),
    );
    await pass();
    expect(await policyOf()).toMatchObject({ blocked: true, missingOwnerReason: 'TeamOfOtherInstance' });
    await harness.trigger('GatewayInstance', 'main');
    expect(await policyOf()).toMatchObject({ missingOwnerReason: 'TeamOfOtherInstance' });
    await harness.remove(teams, 'research');
    await pass();
    await harness.apply(makeTeam());
    await pass();
    expect(await chargedBy('lab', 'chat')).toEqual(['key chat', 'namespace lab', 'team research']);
    expect(await policyOf()).toMatchObject({ blocked: false });
    await harness.remove(teams, 'research');
    await pass();
    expect(await policyOf()).toMatchObject({ blocked: true, missingOwnerReason: 'TeamNotFound' });
  });

  test('is known in the trigger for the first key of a namespace', async () => {
    await harness.apply(makeTeam());
    await setPolicies(POLICY);
    await pass();
    await harness.apply(makeKey({}, 'new', 'first'), makeUser({ autoCreateKey: false }, 'bob', 'lab'));
    await harness.trigger('VirtualKey', 'new', 'first');
    expect(await chargedBy('first', 'new')).toEqual(['key new', 'namespace first', 'team research']);
    await harness.trigger('User', 'bob', 'lab');
    await harness.trigger('VirtualKey', 'chat', 'lab');
    expect(await policyOf()).toMatchObject({ blocked: false });
    expect((await pass()).failed).toEqual({});
    expect(await harness.ready(users, 'bob', 'lab')).toBe('True Ready');
  });
});

describe('the budget of a namespace', () => {
  test('counts what its window has cost before there was a budget, and before its window was another', async () => {
    await spend('1');
    await spend('2', 'other');
    harness.clock.pass(HOUR);
    await setPolicies({ name: 'all', perNamespace: BUDGET });
    await pass();
    expect(await spentBy()).toBe('3');
    await spend('4');
    await pass();
    for (const perNamespace of [
      { ...BUDGET, budgetDuration: '2d' },
      { ...BUDGET, budgetWindow: 'Rolling' },
      { ...BUDGET, budgetTimeZone: 'Asia/Tokyo' },
      BUDGET,
    ]) {
      await setPolicies({ name: 'all', perNamespace });
      await pass();
      expect(await spentBy()).toBe('7');
    }
    expect(await spentBy('web', 'site')).toBe('0');
    harness.clock.pass(DAY);
    expect(await spentBy()).toBe('0');
  });

  test('is not refilled by a label that takes it away and gives it back: no counter comes back either', async () => {
    await setPolicies({ name: 'research', namespaceSelector: RESEARCH, perNamespace: BUDGET });
    await pass();
    const before = (await policyOf()).budget?.sinceGeneration ?? 0;
    await spend('1');
    for (const tier of ['other', 'research', 'other', 'research']) {
      await label('lab', { tier });
      await pass();
      await spend('1');
    }
    expect(await spentBy()).toBe('5');
    expect((await policyOf()).budget?.sinceGeneration).toBe(before + 2);
  });

  test('keeps its window when its amount, its policy or its place among the policies changes', async () => {
    await setPolicies({ name: 'one', perNamespace: BUDGET });
    await pass();
    const { budget } = await policyOf();
    await spend('1');
    await setPolicies(
      { name: 'first', namespaceSelector: RESEARCH, perNamespace: { ...BUDGET, maxBudget: '5' } },
      { name: 'one', perNamespace: BUDGET },
    );
    await pass();
    expect((await policyOf()).budget).toEqual({ ...budget, limit: '5000000000' });
    expect(await spentBy()).toBe('1');
  });
});

test('the budget per key has a number that grows each time its window appears or changes, also by a label', async () => {
  const perKey = { maxBudget: '1', budgetDuration: '1d' };
  const selected = { name: 'research', namespaceSelector: RESEARCH };
  const sinceOf = async () => (await policyOf()).perKey?.budget?.sinceGeneration;
  const numbers: Array<number | undefined> = [];
  for (const one of [perKey, { ...perKey, maxBudget: '2' }, { ...perKey, budgetDuration: '2d' }, perKey]) {
    await setPolicies({ ...selected, perKey: one });
    await pass();
    numbers.push(await sinceOf());
  }
  for (const tier of ['other', 'research', 'other', 'research']) {
    await label('lab', { tier });
    await pass();
    numbers.push(await sinceOf());
  }
  const known = numbers.filter((number) => number !== undefined);
  expect(numbers).toEqual([known[0], known[0], known[2], known[3], undefined, known[4], undefined, known[5]]);
  expect(known.toSorted((one, other) => one - other)).toEqual(known);
  expect(new Set(known).size).toBe(5);
});

test('a policy that names a Team of another instance changes no row of that instance', async () => {
  await harness.apply(makeTeam({ connectionRef: { instanceRef: { name: 'main', namespace: 'default' } } }, 'shared'));
  await setPolicies({ name: 'all', teamRef: { name: 'shared' } });
  await pass();
  const before = await policyOf();
  expect(before).toMatchObject({ policyName: 'all', blocked: false });
  await label('tenant', {});
  const tenant = (object: object) => ({ ...object, metadata: { ...(object as Team).metadata, namespace: 'tenant' } });
  const connectionRef = { instanceRef: { name: 'main', namespace: 'default' } };
  await harness.apply(
    ...(makeSecrets().map(tenant) as ReturnType<typeof makeSecrets>),
    makeInstance({ keyPolicies: [{ name: 'x', teamRef: { name: 'lure' } }] }, 'own', 'tenant'),
    makeTeam({ connectionRef, teamAlias: 'lure' }, 'lure', 'tenant'),
  );
  await harness.trigger('GatewayInstance', 'own', 'tenant');
  expect(await policyOf()).toEqual(before);
});
