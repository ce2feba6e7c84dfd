// Does a key that comes from elsewhere keep its value and its spend: another namespace, a backup, another gateway?
import { beforeEach, describe, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../test/reconcile/objects.ts';

const second = { connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } };
const IMPORT = 'auth.gateway-operator.dev/import';
const MANAGED = { 'gateway-operator.dev/managed': 'true' };

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance(), makeInstance({}, 'second'));
});

const working = async (spec: object = {}) => {
  await bed.apply(makeKey(spec));
  await bed.sweep();
  await bed.spend('chat', '3');
  await bed.sweep();
  return (await bed.value('chat-key')) ?? '';
};
/** As a backup or a person copies it: without what the API server gave it. */
const copyOf = (secret: KubeObject | undefined, namespace = 'default', name = 'chat-key'): KubeObject => {
  const { labels = {}, annotations = {} } = secret?.metadata ?? {};
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, labels, annotations }, data: secret?.data };
};
const kept = (value: string) => ({ keyValue: value, currentSpend: '3', isActive: true });

test('a key that is restored from a backup with its Secret, both with other uids, keeps value and spend', async () => {
  const value = await working();
  const backup = copyOf(await bed.get(RESOURCES.secrets, 'chat-key'));
  // The cluster is lost: nothing runs any more that could clean up.
  await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
  await bed.remove(virtualKeys, 'chat');
  await bed.remove(RESOURCES.secrets, 'chat-key');
  await bed.apply(backup, makeKey());
  bed.restart();
  await bed.sweep();
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject(kept(value));
  expect((await bed.sweep()).actions).toEqual({});
});

test('a retained key moves to another instance of the same database, also under another alias, with value and spend', async () => {
  const value = await working({ deletionPolicy: 'Retain' });
  await bed.remove(virtualKeys, 'chat');
  await bed.sweep();
  await bed.apply(makeKey({ ...second, keyAlias: 'moved', secretTemplate: { name: 'chat-key' } }, 'moved'));
  await bed.sweep();
  expect(await bed.status(virtualKeys, 'moved')).toMatchObject(kept(value));
  expect([await bed.works(value, 'second'), await bed.works(value, 'main')]).toEqual([true, false]);
  expect((await bed.sweep()).actions).toEqual({});
});

test('a key that was not retained does not move: its copied Secret is a conflict, and it goes on working where it is', async () => {
  const value = await working();
  await bed.apply(copyOf(await bed.get(RESOURCES.secrets, 'chat-key'), 'default', 'moved-key'));
  await bed.apply(makeKey({ ...second, keyAlias: 'moved' }, 'moved'));
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'moved')).toBe('False SecretConflict');
  expect([await bed.works(value, 'second'), await bed.works(value, 'main')]).toEqual([false, true]);
});

describe('a key of another gateway', () => {
  const brought = (key: string, annotation = 'chat', labels: object = MANAGED) => {
    const secret = makeSecret('chat-key', { key });
    return {
      ...secret,
      metadata: { ...secret.metadata, labels: { ...labels }, annotations: { [IMPORT]: annotation } },
    };
  };
  const value = 'sk-another-gateway-gave-me-out';

  test('begins with the value that a Secret brings along for it, and is from then on a key like all others', async () => {
    await bed.apply(brought(value), makeKey());
    await bed.sweep();
    expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, isActive: true, currentSpend: '0' });
    expect(await bed.works(value)).toBe(true);
    expect((await bed.sweep()).actions).toEqual({});
    await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged-with-more-than-24-characters') } });
    await bed.sweep();
    expect(await bed.value('chat-key')).toBe(value);
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    expect(await bed.works(value)).toBe(false);
    expect(await bed.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  });

  test.each([
    ['is meant for another key', brought(value, 'other')],
    ['does not carry our label', brought(value, 'chat', {})],
    ['holds what could be guessed', brought('sk-short')],
    ['holds blanks', brought('sk-another gateway gave me out')],
  ])('is not taken from a Secret that %s', async (_, secret) => {
    await bed.apply(secret, makeKey());
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False SecretConflict');
    expect(await bed.works(await bed.value('chat-key'))).toBe(false);
  });

  const fix = 'a value has 24 to 512 characters without blanks; correct the value in that Secret';
  test.each([
    ['too short', brought('short'), `the value in its entry "key" is too short; ${fix}`],
    ['too long', brought('x'.repeat(513)), `the value in its entry "key" is too long; ${fix}`],
    ['with a line end', brought(`${value}\n`), `the value in its entry "key" has blanks or line ends in it; ${fix}`],
    [
      'not there',
      { ...brought(value), data: {} },
      'has no entry "key"; put the value there, 24 to 512 characters without blanks',
    ],
    [
      'in a Secret without our label',
      brought(value, 'chat', {}),
      'lacks the label gateway-operator.dev/managed: "true"; add it',
    ],
  ])(
    'whose value is %s is told what to mend, never to delete it, and is taken once that is done',
    async (_, bad, said) => {
      await bed.apply(bad, makeKey());
      await bed.sweep();
      const { conditions } = await bed.status(virtualKeys, 'chat');
      expect(conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
        reason: 'SecretConflict',
        message: `metadata.name: "chat": Secret "chat-key" is to be imported and ${said}`,
      });
      const { metadata } = brought(value);
      await bed.edit(RESOURCES.secrets, 'chat-key', {
        data: { key: btoa(value) },
        metadata: { labels: metadata.labels },
      });
      await bed.sweep();
      expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, isActive: true });
    },
  );

  test('that another key here has already works for that one only', async () => {
    await bed.apply(brought(value), makeKey());
    await bed.sweep();
    const secret = brought(value, 'thief');
    await bed.apply({ ...secret, metadata: { ...secret.metadata, name: 'thief-key' } }, makeKey({}, 'thief'));
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'thief')).toBe('False SecretConflict');
    expect(await bed.value('thief-key')).toBe(value);
    expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ isActive: true, keyValue: value });
  });

  test('that had a value here before is not exchanged by a Secret that comes later', async () => {
    await bed.apply(makeKey());
    await bed.sweep();
    const first = await bed.value('chat-key');
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await bed.apply(brought(value));
    await bed.sweep();
    expect(await bed.works(value)).toBe(false);
    expect(await bed.works(first)).toBe(true);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False SecretConflict');
  });
});
