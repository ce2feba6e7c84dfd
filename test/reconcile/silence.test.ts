// Is a key that is shown found, wherever it is shown?
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness } from './harness.ts';
import { makeInstance, makeKey, makeSecrets, PASSWORD } from './objects.ts';
import { takeShown } from './silence.ts';

test('a key or password in a log, an event or a status is found after the test; the status of its own key may show it', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  await harness.resync();
  const value = (await harness.value('chat-key')) ?? '';
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value });
  harness.log.info('connecting', { to: `postgres://gateway:${PASSWORD}@db` });
  await harness.apply({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'leak', namespace: 'default' },
    data: { note: `use ${value}` },
  });
  expect([...takeShown()].sort()).toEqual([value, PASSWORD].sort());
  await harness.remove(RESOURCES.configMaps, 'leak');
  expect(takeShown()).toEqual([]);
});
