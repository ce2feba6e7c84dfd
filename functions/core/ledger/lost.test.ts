import { describe, expect, test } from 'vitest';
import { createMemoryEpochs } from '../../../test/doubles/epochs.ts';
import { createScene, heldOf, requestOf, type Scene, scopeOf, settlementOf } from './scene.promises.ts';

const SECOND = 1000;
const key = scopeOf('key', 100n);

/** A stream that has cost 10 of its hold of 100, and the times at which it was ended. */
async function streaming(scene: Scene) {
  const ledger = scene.process();
  await ledger.start();
  const hold = heldOf(await ledger.hold(requestOf(100n, key)));
  const endedAt: number[] = [];
  ledger.progress(
    hold,
    () => 10n,
    () => void endedAt.push(scene.time.clock.now()),
  );
  await scene.time.advance(16 * SECOND);
  return { ledger, hold, endedAt };
}

describe('a stream whose lease may have ended is ended', () => {
  test('when its process has slept: others may hold the money, and the stream spends no more', async () => {
    const scene = createScene();
    const { ledger, hold, endedAt } = await streaming(scene);
    const asleep = scene.time.jump(120 * SECOND);
    const other = scene.process(undefined, { records: [] });
    await other.start();
    await other.settle(heldOf(await other.hold({ ...requestOf(100n, key), minAmount: 1n })), settlementOf(90n));
    await asleep;
    await scene.time.advance(SECOND);
    expect(endedAt).toHaveLength(1);
    // The stream settles at its cost so far.
    await ledger.settle(hold, settlementOf(10n));
    await scene.time.advance(3 * SECOND);
    const spend = await ledger.spend([key]);
    expect(spend.ok && spend.value[0]?.spent).toBe(100n);
  });

  test('once, when the store answers after it was away for most of a minute', async () => {
    const scene = createScene();
    const { endedAt } = await streaming(scene);
    scene.store.behaviour = 'refuses';
    await scene.time.advance(50 * SECOND);
    expect(endedAt).toEqual([]);
    scene.store.behaviour = 'up';
    await scene.time.advance(20 * SECOND);
    expect(endedAt).toHaveLength(1);
    await scene.time.advance(120 * SECOND);
    expect(endedAt).toHaveLength(1);
  });
});

describe('a stream continues', () => {
  test('for minutes, and when the store was away for less', async () => {
    const scene = createScene();
    const { endedAt } = await streaming(scene);
    await scene.time.advance(300 * SECOND);
    scene.store.behaviour = 'refuses';
    await scene.time.advance(25 * SECOND);
    scene.store.behaviour = 'up';
    await scene.time.advance(60 * SECOND);
    expect(endedAt).toEqual([]);
  });

  test('when a store comes back empty: its hold is registered again', async () => {
    const scene = createScene();
    scene.epochs = { part: createMemoryEpochs(scene.time), behaviour: 'up' };
    const { endedAt } = await streaming(scene);
    scene.store.behaviour = 'refuses';
    await scene.time.advance(50 * SECOND);
    await scene.store.part.clear();
    scene.store.behaviour = 'up';
    await scene.time.advance(60 * SECOND);
    expect(endedAt).toEqual([]);
  });

  test('to its end: after it has settled it is not ended', async () => {
    const scene = createScene();
    const { ledger, hold, endedAt } = await streaming(scene);
    await ledger.settle(hold, settlementOf(20n));
    await scene.time.jump(120 * SECOND);
    await ledger.hold(requestOf(0n, key));
    expect(endedAt).toEqual([]);
  });
});
