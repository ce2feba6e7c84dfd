// The leak check: a key or password is found wherever it is shown, and the test that showed it fails.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { createBed } from './bed.ts';
import { makeInstance, makeKey, makeSecrets, PASSWORD } from './objects.ts';

test('a key in an object is found; the status of its own key may show it', async () => {
  const bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance(), makeKey());
  await bed.sweep();
  const value = (await bed.value('chat-key')) ?? '';
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value });
  expect(await bed.shown()).toEqual([]);
  await bed.apply({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'leak', namespace: 'default' },
    data: { note: `use ${value}` },
  });
  expect(await bed.shown()).toEqual([value]);
  await bed.remove(RESOURCES.configMaps, 'leak');
  expect(await bed.shown()).toEqual([]);
});

test.fails('a test that shows a password in a log fails, although it asks for nothing', async () => {
  const bed = createBed();
  await bed.apply(...makeSecrets());
  bed.log.info('connecting', { to: `postgres://gateway:${PASSWORD}@db` });
});
