// A key works as its object specifies, and continues to.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createChat } from '../../../test/reconcile/chat.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const { chat, ready, working, editKey } = createChat(() => harness);

describe('a new key', () => {
  test('works after one run over the whole file, and all five status fields are correct', async () => {
    const value = await working();
    expect(await harness.works(value)).toBe(true);
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
    expect(harness.events('chat')).toEqual(['KeyCreated', 'Ready']);
  });

  test('shows the end of its first window immediately, although its claim is younger than its run', async () => {
    harness.onDatabase = (method) => {
      if (method === 'putScope') harness.clock.pass(30);
    };
    await working();
    expect(await chat()).toMatchObject({ budgetResetDate: '2026-12-21T12:00:00Z' });
    harness.onDatabase = () => undefined;
    expect((await harness.resync()).actions).toEqual({});
  });

  test('works after the trigger for its own object', async () => {
    await harness.resync();
    await harness.apply(makeKey());
    await harness.trigger('VirtualKey', 'chat');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
    expect(await ready()).toBe('True Ready');
  });

  test('has a Secret with our label that is deleted with it', async () => {
    await working();
    const secret = await harness.get(RESOURCES.secrets, 'chat-key');
    expect(secret?.metadata.labels).toMatchObject({ 'gateway-operator.dev/managed': 'true' });
    expect(secret?.metadata.ownerReferences).toBeUndefined();
    expect(Object.keys(secret?.data as object)).toEqual(['key']);
  });

  test('gets a Secret that follows its template, also after edits of the template', async () => {
    const value = await working({
      secretTemplate: {
        name: 'my-secret',
        labels: { app: 'chat' },
        annotations: { note: 'x' },
        data: {
          token: `\${key}`,
          OPENAI_API_KEY: `\${key}`,
          OPENAI_BASE_URL: `\${baseURL}/v1`,
          inside: `\${internalURL}`,
        },
      },
    });
    expect(value).toBe('');
    expect((await chat()).keySecretRef).toBe('my-secret');
    const data = async (name: string) => {
      const stored = (await harness.get(RESOURCES.secrets, name))?.data as Record<string, string>;
      return Object.fromEntries(Object.entries(stored).map(([entry, text]) => [entry, atob(text)]));
    };
    const { key } = await data('my-secret');
    expect(await data('my-secret')).toEqual({
      key,
      token: key,
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: 'http://gateway.test/default/main/v1',
      inside: 'http://gateway.test/default/main',
    });
    await editKey({ secretTemplate: { data: { token: null, OPENAI_API_KEY: null, inside: null } } });
    await harness.resync();
    expect(await data('my-secret')).toEqual({ key, OPENAI_BASE_URL: 'http://gateway.test/default/main/v1' });
    await editKey({ secretTemplate: { name: 'other' } });
    await harness.resync();
    expect(await data('other')).toMatchObject({ key });
    expect(await harness.get(RESOURCES.secrets, 'my-secret')).toBeUndefined();
    expect(await chat()).toMatchObject({ keySecretRef: 'other', isActive: true, keyValue: key });
    expect(await harness.works(key)).toBe(true);
  });

  test('of an instance with Redacted shows only a redacted value, and follows edits of that field', async () => {
    await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    const value = await working();
    const redacted = `sk-...${value.slice(-4)}`;
    expect((await chat()).keyValue).toBe(redacted);
    await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Full' } });
    await harness.resync();
    expect((await chat()).keyValue).toBe(value);
    await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    await harness.resync();
    expect((await chat()).keyValue).toBe(redacted);
  });

  test('with a name of 253 characters has a Secret whose name fits', async () => {
    const name = 'k'.repeat(253);
    await harness.apply(makeKey({ keyAlias: 'long' }, name));
    await harness.resync();
    const { keySecretRef } = await harness.status(virtualKeys, name);
    expect(keySecretRef).toHaveLength(253);
    expect(keySecretRef).toMatch(/^k+-[0-9a-f]{10}-key$/);
    expect(await harness.works(await harness.value(String(keySecretRef)))).toBe(true);
  });
});

test('an edit of budgetDuration keeps the anchor, and the new window counts what was spent inside it', async () => {
  await working();
  await harness.spend('chat', '2');
  harness.clock.pass(2 * DAY);
  await harness.spend('chat', '3');
  await editKey({ budgetDuration: '24h' });
  await harness.resync();
  expect(await chat()).toMatchObject({ currentSpend: '3', budgetResetDate: '2026-11-24T12:00:00Z' });
  await editKey({ budgetDuration: '30d' });
  await harness.resync();
  expect(await chat()).toMatchObject({ currentSpend: '5', budgetResetDate: '2026-12-21T12:00:00Z' });
});

test('an edit of each field causes one write of the policy, and then none', async () => {
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
    expect((await harness.resync()).actions).toMatchObject({ PutScope: 1 });
    expect((await harness.resync()).actions).toEqual({});
  }
});
