// Whose turn is it when very many keys have changed at once?
import { expect, test } from 'vitest';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { createBed, sha256 } from '../../../test/reconcile/bed.ts';
import { makeKey } from '../../../test/reconcile/objects.ts';
import type { Reading } from './key-secrets.ts';
import { observeKeys, takeTurn } from './keys.ts';
import { toOwn } from './own.ts';

const COUNT = 12_000;
const TURN = 5000;

/** The last one is the oldest. */
function createKeys(): Map<string, VirtualKey> {
  const keys = Array.from({ length: COUNT }, (_, index): [string, VirtualKey] => {
    const name = `key-${index}`;
    const { metadata, ...rest } = makeKey({}, name);
    const creationTimestamp = new Date(Date.UTC(2026, 0, 1) - index * 1000).toISOString();
    const own = toOwn({ ...rest, metadata: { ...metadata, uid: name, generation: 1, creationTimestamp } });
    return [`default/${name}`, own?.object as VirtualKey];
  });
  return new Map(keys);
}

test('when more changed than a turn holds, the oldest come first, and every one has its turn', async () => {
  const { cluster, log } = createBed();
  let read = 0;
  cluster.inject(({ verb }) => {
    if (verb === 'get') read += 1;
    return undefined;
  });
  const deps = { cluster, log, hash: sha256 } as unknown as Reading['deps'];
  const reading: Reading = { deps, now: 0, sweep: true, count: COUNT };
  const keys = createKeys();
  const views = await observeKeys(reading, keys, new Map());
  expect([...views.keys()]).toEqual([...keys.keys()]);
  expect(read).toBe(TURN);
  const later = () => [...views].filter(([, view]) => view.later === true).map(([path]) => path);
  expect(later()).toEqual([...keys.keys()].slice(0, COUNT - TURN));
  const second = await takeTurn(reading.deps, views);
  expect([...second]).toEqual([...keys.keys()].slice(COUNT - 2 * TURN, COUNT - TURN).toReversed());
  expect(await takeTurn(reading.deps, views)).toHaveLength(COUNT - 2 * TURN);
  expect(await takeTurn(reading.deps, views)).toHaveLength(0);
  expect(read).toBe(COUNT);
});

test('what is not known of a database that is yet to be migrated makes no key one that has changed', async () => {
  const { cluster, log } = createBed();
  const deps = { cluster, log, hash: sha256 } as unknown as Reading['deps'];
  const [path, key] = [...createKeys()][0] as [string, VirtualKey];
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '' }];
  const settled = { ...key, status: { observedGeneration: 1, keySecretRef: 'key-0-key', keyID: 'a', conditions } };
  const reading: Reading = { deps, now: 0, sweep: false, count: COUNT };
  const views = await observeKeys(reading, new Map([[path, settled as VirtualKey]]), new Map());
  expect(views.get(path)?.secret).toEqual({ state: 'unread' });
});
