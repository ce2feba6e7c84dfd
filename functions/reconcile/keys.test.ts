// Does a key become what its object says, and stay it?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed, sha256 } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../test/reconcile/objects.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
});

const chat = () => bed.status(virtualKeys, 'chat');
const ready = (name = 'chat') => bed.ready(virtualKeys, name);
const working = async (spec: object = {}) => {
  await bed.apply(makeKey(spec));
  expect((await bed.sweep()).failed).toEqual({});
  return (await bed.value('chat-key')) ?? '';
};
const editKey = (spec: object, name = 'chat') => bed.edit(virtualKeys, name, { spec });

describe('a new key', () => {
  test('works after one run over the whole file, and all five status fields are true', async () => {
    const value = await working();
    expect(await bed.works(value)).toBe(true);
    expect(value).toMatch(/^sk-[0-9A-Za-z]{49}$/);
    expect(await chat()).toMatchObject({
      keySecretRef: 'chat-key',
      keyValue: value,
      currentSpend: '0',
      isActive: true,
      keyID: sha256(value),
      budgetResetDate: '2026-12-21T12:00:00Z',
      lastSyncTime: '2026-11-21T12:00:00Z',
      observedGeneration: 1,
    });
    expect(await chat()).not.toHaveProperty('expiryDate');
    expect(await ready()).toBe('True Ready');
    expect(bed.events('chat')).toEqual(['KeyCreated', 'Ready']);
  });

  test('says the end of its first window at once, though its claim is younger than the run that made it', async () => {
    bed.onDatabase = (method) => {
      if (method === 'claimAll') bed.clock.pass(30);
    };
    await working();
    expect(await chat()).toMatchObject({ budgetResetDate: '2026-12-21T12:00:00Z' });
    bed.onDatabase = () => undefined;
    expect((await bed.sweep()).actions).toEqual({});
  });

  test('works after the hint for its own object alone', async () => {
    await bed.sweep();
    await bed.apply(makeKey());
    await bed.hint('VirtualKey', 'chat');
    expect(await bed.works(await bed.value('chat-key'))).toBe(true);
    expect(await ready()).toBe('True Ready');
  });

  test('has a Secret with our label that goes with it', async () => {
    await working();
    const secret = await bed.get(RESOURCES.secrets, 'chat-key');
    expect(secret?.metadata.labels).toMatchObject({ 'gateway-operator.dev/managed': 'true' });
    expect(secret?.metadata.ownerReferences).toMatchObject([{ kind: 'VirtualKey', name: 'chat', controller: true }]);
    expect(Object.keys(secret?.data as object)).toEqual(['key']);
  });

  test('gets a Secret as its template says, and edits of the template are followed', async () => {
    const value = await working({
      secretTemplate: {
        name: 'my-secret',
        entry: 'token',
        labels: { app: 'chat' },
        annotations: { note: 'x' },
        entries: { OPENAI_API_KEY: `\${key}`, OPENAI_BASE_URL: `\${baseURL}/v1` },
      },
    });
    expect(value).toBe('');
    expect((await chat()).keySecretRef).toBe('my-secret');
    const data = async (name: string) => {
      const stored = (await bed.get(RESOURCES.secrets, name))?.data as Record<string, string>;
      return Object.fromEntries(Object.entries(stored).map(([entry, text]) => [entry, atob(text)]));
    };
    const { key } = await data('my-secret');
    expect(await data('my-secret')).toEqual({
      key,
      token: key,
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: 'http://gateway.test/default/main/v1',
    });
    await editKey({ secretTemplate: { entry: null, entries: { OPENAI_API_KEY: null } } });
    await bed.sweep();
    expect(await data('my-secret')).toEqual({ key, OPENAI_BASE_URL: 'http://gateway.test/default/main/v1' });
    await editKey({ secretTemplate: { name: 'other' } });
    await bed.sweep();
    expect(await data('other')).toMatchObject({ key });
    expect(await bed.get(RESOURCES.secrets, 'my-secret')).toBeUndefined();
    expect(await chat()).toMatchObject({ keySecretRef: 'other', isActive: true, keyValue: key });
    expect(await bed.works(key)).toBe(true);
  });

  test('of an instance that says Redacted shows its last characters only, and switching that is followed', async () => {
    await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    const value = await working();
    const redacted = `sk-...${value.slice(-4)}`;
    expect((await chat()).keyValue).toBe(redacted);
    await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Full' } });
    await bed.sweep();
    expect((await chat()).keyValue).toBe(value);
    await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    await bed.sweep();
    expect((await chat()).keyValue).toBe(redacted);
  });

  test('with a name of 253 characters has a Secret whose name fits', async () => {
    const name = 'k'.repeat(253);
    await bed.apply(makeKey({ keyAlias: 'long' }, name));
    await bed.sweep();
    const { keySecretRef } = await bed.status(virtualKeys, name);
    expect(keySecretRef).toHaveLength(253);
    expect(keySecretRef).toMatch(/^k+-[0-9a-f]{10}-key$/);
    expect(await bed.works(await bed.value(String(keySecretRef)))).toBe(true);
  });
});

describe('the value', () => {
  test('is never taken from, nor written to, a Secret that is not ours', async () => {
    await bed.apply(makeSecret('chat-key', { key: 'sk-chosen-by-somebody' }), makeKey());
    await bed.sweep();
    expect(await ready()).toBe('False SecretConflict');
    expect(await chat()).toMatchObject({ isActive: false });
    expect(await chat()).not.toHaveProperty('keyValue');
    expect(await bed.value('chat-key')).toBe('sk-chosen-by-somebody');
    expect(await bed.works('sk-chosen-by-somebody')).toBe(false);
    expect(bed.events('chat')).toEqual(['SecretConflict']);
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
  });

  test('is minted anew when its Secret is lost: the old one works no more, the spend stays, an event tells', async () => {
    const old = await working();
    await bed.spend('chat', '1.5');
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await bed.sweep();
    const value = await bed.value('chat-key');
    expect(value).not.toBe(old);
    expect([await bed.works(old), await bed.works(value)]).toEqual([false, true]);
    expect(await chat()).toMatchObject({ keyValue: value, keyID: sha256(value ?? ''), currentSpend: '1.5' });
    expect(bed.events('chat')).toEqual(['KeyCreated', 'Ready', 'KeyCreated']);
  });

  test('that somebody edits into its Secret never works: the true one is put back', async () => {
    const value = await working();
    await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged'), more: btoa('x') } });
    await bed.sweep();
    expect(await bed.value('chat-key')).toBe(value);
    expect([await bed.works(value), await bed.works('sk-forged')]).toEqual([true, false]);
    const secret = await bed.get(RESOURCES.secrets, 'chat-key');
    expect(Object.keys(secret?.data as object)).toEqual(['key']);
  });

  test('that is edited where the status is redacted is lost: a new one is minted, the forged one never works', async () => {
    await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    const value = await working();
    await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
    expect((await bed.sweep()).failed).toEqual({});
    const minted = await bed.value('chat-key');
    expect([value, 'sk-forged']).not.toContain(minted);
    expect([await bed.works(value), await bed.works('sk-forged'), await bed.works(minted)]).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('that is edited while the namespace is not admitted never works, then neither', async () => {
    await bed.apply(makeKey({}, 'chat', 'team-a'));
    await bed.sweep();
    await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    await bed.sweep();
    await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } }, 'team-a');
    await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'All' } } });
    await bed.sweep();
    expect(await bed.works('sk-forged')).toBe(false);
    expect(await bed.works(await bed.value('chat-key', 'team-a'))).toBe(true);
    expect(await bed.ready(virtualKeys, 'chat', 'team-a')).toBe('True Ready');
  });

  test('cannot be taken from another key by copying its Secret', async () => {
    const value = await working();
    await bed.apply(makeKey({}, 'other'));
    await bed.sweep();
    await bed.edit(RESOURCES.secrets, 'other-key', { data: { key: btoa(value) } });
    await bed.sweep();
    expect(await bed.value('other-key')).not.toBe(value);
    expect(await bed.works(await bed.value('other-key'))).toBe(true);
  });

  test('is restored to the database from its Secret when its row is lost', async () => {
    const value = await working();
    const [claim] = await bed.database().claims((await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '');
    await bed.database().retire([claim?.scopeId ?? '']);
    expect(await bed.works(value)).toBe(false);
    await bed.sweep();
    expect(await bed.value('chat-key')).toBe(value);
    expect(await bed.works(value)).toBe(true);
    expect(await ready()).toBe('True Ready');
  });

  test('stays where somebody takes our label off its Secret: the label is put back', async () => {
    const value = await working();
    const label = async () =>
      (await bed.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels?.['gateway-operator.dev/managed'];
    await bed.edit(RESOURCES.secrets, 'chat-key', { metadata: { labels: { 'gateway-operator.dev/managed': null } } });
    await bed.sweep();
    expect(await label()).toBe('true');
    expect(await bed.value('chat-key')).toBe(value);
    await bed.edit(RESOURCES.secrets, 'chat-key', {
      metadata: { labels: { 'gateway-operator.dev/managed': null } },
      data: { key: null },
    });
    await bed.sweep();
    expect([await label(), await bed.value('chat-key')]).toEqual(['true', value]);
    await bed.edit(RESOURCES.secrets, 'chat-key', { metadata: { labels: { 'gateway-operator.dev/managed': null } } });
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    expect(await bed.get(RESOURCES.secrets, 'chat-key')).toBeDefined();
    bed.cluster.collectGarbage();
    expect(await bed.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  });

  test('labels and annotations of others on the Secret stay, ours are put back', async () => {
    await working();
    await bed.edit(RESOURCES.secrets, 'chat-key', {
      metadata: {
        labels: { 'gateway-operator.dev/managed': 'true', theirs: 'yes', 'app.kubernetes.io/managed-by': 'helm' },
      },
    });
    await bed.sweep();
    expect((await bed.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels).toMatchObject({
      theirs: 'yes',
      'app.kubernetes.io/managed-by': 'gateway-operator',
    });
  });
});

describe('a key is not active, and says the first cause', () => {
  test('while its instance is not there', async () => {
    await bed.apply(makeKey({ connectionRef: { instanceRef: { name: 'none', namespace: 'default' } } }));
    await bed.sweep();
    expect(await ready()).toBe('False InstanceNotFound');
  });

  test('while its instance is not ready, and it is again in the run in which the instance turns ready', async () => {
    await bed.remove(RESOURCES.secrets, 'store');
    await bed.apply(makeKey());
    await bed.sweep();
    expect(await ready()).toBe('False InstanceNotReady');
    await bed.apply(...makeSecrets());
    await bed.hint('GatewayInstance', 'main');
    expect(await ready()).toBe('True Ready');
  });

  test('while the database cannot be reached; its spend and value stay shown, and it comes back', async () => {
    const value = await working();
    bed.refuse(true);
    await bed.sweep();
    expect(await ready()).toBe('False InstanceNotReady');
    expect(await chat()).toMatchObject({
      isActive: false,
      keyValue: value,
      currentSpend: '0',
      keySecretRef: 'chat-key',
    });
    bed.refuse(false);
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
    expect(await bed.value('chat-key')).toBe(value);
  });

  test('when its namespace is not admitted; the value stops working, and the same one works when it is again', async () => {
    await bed.apply(makeKey({}, 'chat', 'team-a'));
    await bed.sweep();
    const value = await bed.value('chat-key', 'team-a');
    expect(await bed.works(value)).toBe(true);
    await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'chat', 'team-a')).toBe('False NamespaceNotAllowed');
    expect(await bed.works(value)).toBe(false);
    await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'All' } } });
    await bed.sweep();
    expect(await bed.works(value)).toBe(true);
    expect(await bed.ready(virtualKeys, 'chat', 'team-a')).toBe('True Ready');
  });

  test('unless a selector selects its namespace by label', async () => {
    const namespace = (name: string, labels: Record<string, string>) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    });
    await bed.apply(namespace('team-a', { tier: 'gold' }), namespace('team-b', {}));
    const selector = { matchExpressions: [{ key: 'tier', operator: 'In', values: ['gold', 'silver'] }] };
    await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Selector', selector } } });
    await bed.apply(makeKey({ keyAlias: 'a' }, 'chat', 'team-a'), makeKey({ keyAlias: 'b' }, 'chat', 'team-b'));
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'chat', 'team-a')).toBe('True Ready');
    // Never admitted: for all it may know there is no such instance.
    expect(await bed.ready(virtualKeys, 'chat', 'team-b')).toBe('False InstanceNotFound');
  });

  test('when another key has its alias: the older object wins, the loser never has a key', async () => {
    await bed.apply(makeKey({ keyAlias: 'same' }, 'first'));
    bed.clock.pass(1000);
    await bed.apply(makeKey({ keyAlias: 'same' }, 'a-second'));
    await bed.sweep();
    expect([await ready('first'), await ready('a-second')]).toEqual(['True Ready', 'False AliasTaken']);
    expect(await bed.get(RESOURCES.secrets, 'a-second-key')).toBeUndefined();
    expect(bed.events('a-second')).toEqual(['AliasTaken']);
    await bed.remove(virtualKeys, 'first');
    await bed.sweep();
    expect(await ready('a-second')).toBe('True Ready');
  });

  test('while it is blocked', async () => {
    const value = await working({ blocked: true });
    expect(await ready()).toBe('False Blocked');
    expect(await bed.works(value)).toBe(true);
    await editKey({ blocked: false });
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
    expect(await bed.value('chat-key')).toBe(value);
  });

  test('when it has expired; the lifetime never slides, and lengthening it revives the key', async () => {
    await working({ duration: '24h' });
    for (let hour = 1; hour < 24; hour += 1) {
      bed.clock.pass(HOUR);
      const before = bed.writes();
      await bed.sweep();
      expect(bed.writes()).toBe(before);
    }
    expect(await chat()).toMatchObject({ expiryDate: '2026-11-22T12:00:00Z', isActive: true });
    bed.clock.pass(HOUR);
    await bed.sweep();
    expect(await ready()).toBe('False Expired');
    await editKey({ duration: '48h' });
    await bed.sweep();
    expect(await chat()).toMatchObject({ expiryDate: '2026-11-23T12:00:00Z', isActive: true });
    await editKey({ duration: null });
    await bed.sweep();
    expect(await chat()).not.toHaveProperty('expiryDate');
  });

  test('when its budget is used up, until it is raised or the window ends', async () => {
    await working();
    await bed.spend('chat', '10');
    await bed.sweep();
    expect(await ready()).toBe('False BudgetExceeded');
    expect(await chat()).toMatchObject({ currentSpend: '10', isActive: false });
    await editKey({ maxBudget: '10.000000001' });
    await bed.sweep();
    expect(await ready()).toBe('True Ready');
    await bed.spend('chat', '1');
    await bed.sweep();
    expect(await ready()).toBe('False BudgetExceeded');
    bed.clock.pass(30 * DAY);
    await bed.sweep();
    expect(await chat()).toMatchObject({ currentSpend: '0', isActive: true, budgetResetDate: '2027-01-20T12:00:00Z' });
  });

  test('with a budget of zero, always', async () => {
    await working({ maxBudget: '0' });
    expect(await ready()).toBe('False BudgetExceeded');
  });

  test('when none of its models is served; when some are not it says so and goes on', async () => {
    await working({ models: ['small', 'withdrawn'] });
    expect(await ready()).toBe('True Ready');
    const { conditions } = await chat();
    expect(conditions?.find(({ type }) => type === 'ModelsReady')).toMatchObject({
      status: 'False',
      reason: 'ModelNotServed',
      message: expect.stringContaining('"withdrawn"'),
    });
    await editKey({ models: ['Small'] });
    await bed.sweep();
    expect(await ready()).toBe('False ModelNotServed');
  });
});

test('an edit of budgetDuration keeps the anchor and recounts the new window from what was spent inside it', async () => {
  await working();
  await bed.spend('chat', '2');
  bed.clock.pass(2 * DAY);
  await bed.spend('chat', '3');
  await editKey({ budgetDuration: '24h' });
  await bed.sweep();
  expect(await chat()).toMatchObject({ currentSpend: '3', budgetResetDate: '2026-11-24T12:00:00Z' });
  await editKey({ budgetDuration: '30d' });
  await bed.sweep();
  expect(await chat()).toMatchObject({ currentSpend: '5', budgetResetDate: '2026-12-21T12:00:00Z' });
});

test('an edit of each field is carried by one write of the policy, and then by none', async () => {
  await working();
  const edits = [
    { maxBudget: '11' },
    { models: ['small'] },
    { models: [] },
    { blocked: true },
    { blocked: false },
    { duration: '5d' },
    { duration: null },
    { budgetWindow: 'Calendar' },
  ];
  for (const spec of edits) {
    await editKey(spec);
    expect((await bed.sweep()).actions).toMatchObject({ WritePolicy: 1 });
    expect((await bed.sweep()).actions).toEqual({});
  }
});
