import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, createScene, requestOf, type Scene, scopeOf, settlementOf, slow } from './scenario.promises.ts';

const key = scopeOf('key', 1_000_000n);
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = await scene.start();
});

/** The time from the settlement to the reply's last byte. */
const settle = async (hold: Reservation, cost: bigint, one = ledger): Promise<number> =>
  (await scene.ended(one.settle(hold, settlementOf(cost)))).millis;

describe('a reply ends', () => {
  test('at once where the store knows its hold', async () => {
    const hold = await scene.take(ledger, 100n, key);
    scene.store.behaviour = 'hangs';
    expect(await settle(hold, 90n)).toBe(0);
  });

  test('at once where the hold was admitted in memory, and the store has been told of it since', async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      await settle(await scene.take(ledger, 100n, key), 100n);
      await scene.time.advance(30);
    }
    scene.store.part = slow(scene.store.part, scene.time, () => 20);
    const hold = await scene.take(ledger, 100n, key);
    await scene.time.advance(60);
    expect(await settle(hold, 90n)).toBe(0);
  });

  test('only when a call has told what no risk in the store covers', async () => {
    const hold = await scene.take(ledger, 100n, key);
    scene.store.part = slow(scene.store.part, scene.time, () => 200);
    const millis = await settle(hold, 150n);
    expect(millis).toBeGreaterThanOrEqual(200);
    expect(millis).toBeLessThanOrEqual(250);
  });

  test('after 2 s where the store is silent', async () => {
    const hold = await scene.take(ledger, 100n, key);
    scene.store.behaviour = 'hangs';
    expect(await settle(hold, 150n)).toBe(2000);
  });

  test('of a stream with what it produced since its last second told later', async () => {
    const hold = await scene.take(ledger, 100n, key);
    ledger.trackStream(hold, () => 10n);
    await scene.time.advance(2000);
    scene.store.behaviour = 'hangs';
    expect(await settle(hold, 90n)).toBe(0);
  });
});

test('one risk covers one reply: the second of two waits until the store is told', async () => {
  const [first, second] = [await scene.take(ledger, 100n, key), await scene.take(ledger, 10n, key)];
  scene.store.part = slow(scene.store.part, scene.time, () => 200);
  expect(await settle(first, 100n)).toBe(0);
  expect(await settle(second, 40n)).toBeGreaterThan(0);
});

describe('process and disk are lost together: what was charged covers every completed reply', () => {
  test.each([0, 1, 5, 10, 24, 25, 26, 50, 100, 150, 300])('%i ms after the last of many replies', async (after) => {
    const process = createProcess();
    const [mortal, other] = [await scene.start(process), ledger];
    let completed = 0n;
    scene.store.part = slow(scene.store.part, scene.time, () => 8);
    for (let turn = 0; turn < 30; turn += 1) {
      const cost = BigInt(50 + ((turn * 37) % 60));
      void mortal.reserve(requestOf(100n, key)).then(async (held) => {
        if (!held.ok) return;
        await new Promise<void>((resolve) => scene.time.timer(turn % 7, resolve));
        if (process.is.dead) return;
        await mortal.settle(held.value, settlementOf(cost));
        completed += cost;
      });
      await scene.time.advance(4);
    }
    await scene.time.advance(after);
    process.is.dead = true;
    const owed = completed;
    await scene.time.advance(25_000);
    const booked = scene.entries.entries().reduce((sum, { cost }) => sum + cost, 0n);
    expect(booked).toBeGreaterThanOrEqual(owed);
    expect(await scene.spent(other, key)).toBe(booked);
  });
});
