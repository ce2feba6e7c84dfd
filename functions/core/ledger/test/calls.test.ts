import { beforeEach, describe, expect, test } from 'vitest';
import { MAX_COUNTERS, MAX_REQUESTS } from '../../ports/counter-store.ts';
import type { StartableLedger } from '../ledger.ts';
import { createScene, heldOf, requestOf, type Scene, scopeOf, settlementOf } from './scenario.promises.ts';

let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = await scene.start();
});

const most = (): number => Math.max(...scene.calls.map(({ changes }) => changes.length));

describe('two thousand counters in a tick', () => {
  const team = scopeOf('team', 1_000_000n, { kind: 'team' });
  const keys = Array.from({ length: 2000 }, (_, index) => scopeOf(`key-${index}`, 1000n));

  test('are split into calls of at most 256, and every request keeps all its counters', async () => {
    const held = await scene.ended(Promise.all(keys.map((key) => ledger.reserve(requestOf(10n, key, team)))));
    expect(held.value.every(({ ok }) => ok)).toBe(true);
    await scene.time.advance(200);
    for (const result of held.value) void ledger.settle(heldOf(result), settlementOf(7n));
    await scene.time.advance(2000);
    expect(most()).toBeLessThanOrEqual(MAX_COUNTERS);
    expect(Math.max(...scene.calls.map(({ requests }) => requests.length))).toBeLessThanOrEqual(MAX_REQUESTS);
    expect(scene.entries.entries()).toHaveLength(2000);
    expect(await scene.spent(ledger, team)).toBe(14_000n);
    for (const key of [0, 999, 1999]) expect(await scene.spent(ledger, keys[key] ?? team)).toBe(7n);
  });

  test('each ask names its counters once, where many share them', async () => {
    await scene.ended(Promise.all(keys.slice(0, 60).map((key) => ledger.reserve(requestOf(10n, key, team)))));
    for (const { changes } of scene.calls) {
      const names = changes.map(({ scopeId, window }) => `${scopeId} ${window.start}`);
      expect(new Set(names).size).toBe(names.length);
    }
  });
});

describe('a process without requests', () => {
  test('renews its lease rarely, and tells nothing', async () => {
    scene.calls.length = 0;
    await scene.time.advance(60_000);
    expect(scene.calls.length).toBeLessThanOrEqual(35);
    expect(scene.calls.length).toBeGreaterThanOrEqual(6);
    expect(most()).toBe(0);
  });

  test('forgets counters that nothing is in: memory does not grow with the keys that were served', async () => {
    for (let index = 0; index < 300; index += 1) {
      const held = await scene.take(ledger, 10n, scopeOf(`key-${index}`, 1000n));
      await ledger.settle(held, settlementOf(1n));
    }
    await scene.time.advance(20_000);
    scene.wipe();
    scene.calls.length = 0;
    await scene.time.advance(3000);
    expect(scene.calls.flatMap(({ changes }) => changes)).toEqual([]);
  });
});

test('a counter that is forgotten while a free request runs is one and the same afterwards', async () => {
  const key = scopeOf('key', 1000n);
  const free = await scene.take(ledger, 0n, key);
  await scene.time.advance(60_000);
  const paid = await scene.take(ledger, 900n, key);
  await ledger.settle(free, settlementOf(0n));
  await scene.time.advance(1000);
  expect((await scene.tryHold(ledger, requestOf(101n, key))).outcome).toBe('busy');
  await ledger.settle(paid, settlementOf(900n));
  await scene.time.advance(1000);
  expect(await scene.spent(ledger, key)).toBe(900n);
});
