// The value of a key is always the one in its Secret, and no other key has it.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createChat } from '../../../test/reconcile/chat.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const { chat, ready, working } = createChat(() => harness);

describe('the value', () => {
  test('is never read from, nor written to, a Secret that is not ours', async () => {
    await harness.apply(makeSecret('chat-key', { key: 'sk-chosen-by-somebody' }), makeKey());
    await harness.resync();
    expect(await ready()).toBe('False SecretConflict');
    expect(await chat()).toMatchObject({ isActive: false });
    expect(await chat()).not.toHaveProperty('keyValue');
    expect(await harness.value('chat-key')).toBe('sk-chosen-by-somebody');
    expect(await harness.works('sk-chosen-by-somebody')).toBe(false);
    expect(harness.events('chat')).toEqual(['SecretConflict']);
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.resync();
    expect(await ready()).toBe('True Ready');
  });

  test('is not read from a Secret with very many keys, which then is not ours', async () => {
    await harness.apply(makeKey());
    await harness.resync();
    const value = await working();
    const edit = async (text: string | null) => {
      const data = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, text]));
      await harness.edit(RESOURCES.secrets, 'chat-key', { data });
      await harness.resync();
    };
    await edit('');
    expect(await ready()).toBe('False SecretConflict');
    await edit(null);
    expect(await ready()).toBe('True Ready');
    expect(await harness.value('chat-key')).toBe(value);
    expect(await harness.works(value)).toBe(true);
  });

  test('is replaced when its Secret is lost: the old value no longer works, the spend stays, and an event reports it', async () => {
    const old = await working();
    await harness.spend('chat', '1.5');
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.resync();
    const value = await harness.value('chat-key');
    expect(value).not.toBe(old);
    expect([await harness.works(old), await harness.works(value)]).toEqual([false, true]);
    expect(await chat()).toMatchObject({ keyValue: value, keyID: sha256(value ?? ''), currentSpend: '1.5' });
    expect(harness.events('chat')).toEqual(['KeyCreated', 'Ready', 'KeyCreated']);
  });

  test('that a person writes into its Secret never works: the correct value is restored', async () => {
    const value = await working();
    await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged'), more: btoa('x') } });
    await harness.resync();
    expect(await harness.value('chat-key')).toBe(value);
    expect([await harness.works(value), await harness.works('sk-forged')]).toEqual([true, false]);
    const secret = await harness.get(RESOURCES.secrets, 'chat-key');
    expect(Object.keys(secret?.data as object)).toEqual(['key']);
  });

  test('that is edited while the status is redacted is lost: a new value replaces it, and the forged one never works', async () => {
    await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    const value = await working();
    await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
    expect((await harness.resync()).failed).toEqual({});
    const minted = await harness.value('chat-key');
    expect([value, 'sk-forged']).not.toContain(minted);
    expect([await harness.works(value), await harness.works('sk-forged'), await harness.works(minted)]).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('that is edited while the namespace is not allowed never works, also after the namespace is allowed', async () => {
    await harness.apply(makeKey({}, 'chat', 'team-a'));
    await harness.resync();
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    await harness.resync();
    await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } }, 'team-a');
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'All' } } });
    await harness.resync();
    expect(await harness.works('sk-forged')).toBe(false);
    expect(await harness.works(await harness.value('chat-key', 'team-a'))).toBe(true);
    expect(await harness.ready(virtualKeys, 'chat', 'team-a')).toBe('True Ready');
  });

  test('cannot be taken from another key by copying its Secret', async () => {
    const value = await working();
    await harness.apply(makeKey({}, 'other'));
    await harness.resync();
    await harness.edit(RESOURCES.secrets, 'other-key', { data: { key: btoa(value) } });
    await harness.resync();
    expect(await harness.value('other-key')).not.toBe(value);
    expect(await harness.works(await harness.value('other-key'))).toBe(true);
  });

  test('is restored to the database from its Secret when its row is lost', async () => {
    const value = await working();
    const [claim] = await harness.database().claims((await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '');
    await harness.database().retire([claim?.scopeId ?? '']);
    expect(await harness.works(value)).toBe(false);
    await harness.resync();
    expect(await harness.value('chat-key')).toBe(value);
    expect(await harness.works(value)).toBe(true);
    expect(await ready()).toBe('True Ready');
  });

  /** As after a restore of the cluster or the database: Secret and status have this value. */
  const show = async (value: string) => {
    await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa(value) } });
    await harness.editStatus(virtualKeys, 'chat', { keyID: sha256(value), keyValue: value });
  };

  test('is restored if the database has only the value that a rotation replaced; the replaced value ends after the overlap', async () => {
    const old = await working({ rotation: { every: '30d', overlap: '10m' } });
    harness.clock.pass(86_400_000);
    await show('sk-rotated');
    expect((await harness.resync()).failed).toEqual({});
    expect(await harness.value('chat-key')).toBe('sk-rotated');
    expect([await harness.works('sk-rotated'), await harness.works(old)]).toEqual([true, true]);
    harness.clock.pass(600_000);
    await harness.resync();
    expect([await harness.works('sk-rotated'), await harness.works(old)]).toEqual([true, false]);
    expect(await ready()).toBe('True Ready');
  });

  test('never works again after its end, also if a backup of the cluster has it', async () => {
    const old = await working({ rotation: { every: '1d', overlap: '10m' } });
    harness.clock.pass(86_400_000);
    await harness.resync();
    harness.clock.pass(600_000);
    await harness.resync();
    expect(await harness.works(old)).toBe(false);
    await show(old);
    expect((await harness.resync()).failed).toEqual({});
    expect(await harness.works(old)).toBe(false);
    expect(await harness.value('chat-key')).not.toBe(old);
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
    expect(await ready()).toBe('True Ready');
  });

  test('stays if a person removes our label from its Secret: the label is restored', async () => {
    const value = await working();
    const label = async () =>
      (await harness.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels?.['gateway-operator.dev/managed'];
    await harness.edit(RESOURCES.secrets, 'chat-key', {
      metadata: { labels: { 'gateway-operator.dev/managed': null } },
    });
    await harness.resync();
    expect(await label()).toBe('true');
    expect(await harness.value('chat-key')).toBe(value);
    await harness.edit(RESOURCES.secrets, 'chat-key', {
      metadata: { labels: { 'gateway-operator.dev/managed': null } },
      data: { key: null },
    });
    await harness.resync();
    expect([await label(), await harness.value('chat-key')]).toEqual(['true', value]);
    await harness.edit(RESOURCES.secrets, 'chat-key', {
      metadata: { labels: { 'gateway-operator.dev/managed': null } },
    });
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeDefined();
  });

  test('labels and annotations of others on the Secret stay; ours are restored', async () => {
    await working();
    await harness.edit(RESOURCES.secrets, 'chat-key', {
      metadata: {
        labels: { 'gateway-operator.dev/managed': 'true', theirs: 'yes', 'app.kubernetes.io/managed-by': 'helm' },
      },
    });
    await harness.resync();
    expect((await harness.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels).toMatchObject({
      theirs: 'yes',
      'app.kubernetes.io/managed-by': 'gateway-operator',
    });
  });
});
