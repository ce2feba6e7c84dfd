// Is a key that is shown found, wherever it is shown?
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { createBed } from './bed.ts';
import { makeInstance, makeKey, makeSecrets, PASSWORD } from './objects.ts';
import { takeShown } from './silence.ts';

test('a key or password in a log, an event or a status is found after the test; the status of its own key may show it', async () => {
  const bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance(), makeKey());
  await bed.sweep();
  const value = (await bed.value('chat-key')) ?? '';
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value });
  bed.log.info('connecting', { to: `postgres://gateway:${PASSWORD}@db` });
  await bed.apply({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'leak', namespace: 'default' },
    data: { note: `use ${value}` },
  });
  expect([...takeShown()].sort()).toEqual([value, PASSWORD].sort());
  await bed.remove(RESOURCES.configMaps, 'leak');
  expect(takeShown()).toEqual([]);
});
