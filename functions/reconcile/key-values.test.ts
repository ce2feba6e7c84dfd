// Is the value of a key always the one in its Secret, and nobody else's?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed, sha256 } from '../../test/reconcile/bed.ts';
import { createChat } from '../../test/reconcile/chat.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../test/reconcile/objects.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
});
const { chat, ready, working } = createChat(() => bed);

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
