import { beforeEach, describe, expect, test } from 'vitest';
import { createProcess, createScene, requestOf, type Scene, scopeOf, settlementOf } from './scenario.promises.ts';

const SECOND = 1000;
const key = scopeOf('key', 100n);
let scene: Scene;

beforeEach(() => {
  scene = createScene();
});

/** A stream that has cost 10 of its hold of 100, and the times at which it was ended. */
async function streaming() {
  const sleeper = createProcess();
  const ledger = await scene.start(sleeper);
  const hold = await scene.take(ledger, 100n, key);
  const endedAt: number[] = [];
  ledger.trackStream(
    hold,
    () => 10n,
    () => void endedAt.push(scene.time.clock.now()),
  );
  await scene.time.advance(3 * SECOND);
  return { ledger, hold, endedAt, sleeper };
}

describe('a stream whose account another process has closed is ended', () => {
  test('once: others may hold the money, and the stream spends no more', async () => {
    const other = await scene.start();
    const { ledger, hold, endedAt, sleeper } = await streaming();
    sleeper.is.frozen = true;
    await scene.time.advance(25 * SECOND);
    await other.settle(await scene.take(other, 90n, key), settlementOf(90n));
    sleeper.is.frozen = false;
    await scene.time.advance(3 * SECOND);
    expect(endedAt).toHaveLength(1);
    await ledger.settle(hold, settlementOf(10n));
    await scene.time.advance(3 * SECOND);
    expect(await scene.spent(ledger, key)).toBe(100n);
    expect(endedAt).toHaveLength(1);
  });
});

describe('a stream continues', () => {
  test('for minutes, and while the store is away', async () => {
    const { endedAt } = await streaming();
    await scene.time.advance(300 * SECOND);
    scene.store.behaviour = 'refuses';
    await scene.time.advance(15 * SECOND);
    scene.store.behaviour = 'up';
    await scene.time.advance(60 * SECOND);
    expect(endedAt).toEqual([]);
  });

  test('when a store comes back empty: its hold is registered again', async () => {
    const { ledger, endedAt } = await streaming();
    scene.store.behaviour = 'refuses';
    await scene.time.advance(15 * SECOND);
    scene.wipe();
    scene.store.behaviour = 'up';
    await scene.time.advance(10 * SECOND);
    expect(endedAt).toEqual([]);
    expect(await scene.tryHold(ledger, requestOf(1n, key))).toMatchObject({ outcome: 'busy' });
  });

  test('to its end: after it has settled it is not ended', async () => {
    await scene.start();
    const { ledger, hold, endedAt, sleeper } = await streaming();
    await ledger.settle(hold, settlementOf(20n));
    sleeper.is.frozen = true;
    await scene.time.advance(25 * SECOND);
    sleeper.is.frozen = false;
    await scene.time.advance(3 * SECOND);
    expect(endedAt).toEqual([]);
  });
});
