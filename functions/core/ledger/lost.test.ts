import { describe, expect, test } from 'vitest';
import { createMemoryEpochs } from '../../../test/doubles/epochs.ts';
import { createScene, heldOf, requestOf, type Scene, scopeOf, settlementOf } from './scene.promises.ts';

const SECOND = 1000;
const key = scopeOf('key', 100n);

/** A stream that has cost 10 of the 100 that it holds; what it was told. */
async function streaming(scene: Scene) {
  const ledger = scene.process();
  await ledger.start();
  const hold = heldOf(await ledger.hold(requestOf(100n, key)));
  const told: number[] = [];
  ledger.progress(
    hold,
    () => 10n,
    () => void told.push(scene.time.clock.now()),
  );
  await scene.time.advance(16 * SECOND);
  return { ledger, hold, told };
}

describe('a stream whose hold’s lease may have ended is told to end', () => {
  test('when its process has slept: others have what it left, and it spends no more of that', async () => {
    const scene = createScene();
    const { ledger, hold, told } = await streaming(scene);
    const asleep = scene.time.jump(120 * SECOND);
    const other = scene.process(undefined, { records: [] });
    await other.start();
    await other.settle(heldOf(await other.hold({ ...requestOf(100n, key), minAmount: 1n })), settlementOf(90n));
    await asleep;
    await scene.time.advance(SECOND);
    expect(told).toHaveLength(1);
    // As it does when it is told: at what it has cost.
    await ledger.settle(hold, settlementOf(10n));
    await scene.time.advance(3 * SECOND);
    const spend = await ledger.spend([key]);
    expect(spend.ok && spend.value[0]?.spent).toBe(100n);
  });

  test('when the store was away for most of a minute, as soon as it answers, and once', async () => {
    const scene = createScene();
    const { told } = await streaming(scene);
    scene.store.behaviour = 'refuses';
    await scene.time.advance(50 * SECOND);
    expect(told).toEqual([]);
    scene.store.behaviour = 'up';
    await scene.time.advance(20 * SECOND);
    expect(told).toHaveLength(1);
    await scene.time.advance(120 * SECOND);
    expect(told).toHaveLength(1);
  });
});

describe('a stream goes on', () => {
  test('for minutes, and when the store was away for less', async () => {
    const scene = createScene();
    const { told } = await streaming(scene);
    await scene.time.advance(300 * SECOND);
    scene.store.behaviour = 'refuses';
    await scene.time.advance(25 * SECOND);
    scene.store.behaviour = 'up';
    await scene.time.advance(60 * SECOND);
    expect(told).toEqual([]);
  });

  test('when a store comes back empty: its hold is registered anew', async () => {
    const scene = createScene();
    scene.epochs = { part: createMemoryEpochs(scene.time), behaviour: 'up' };
    const { told } = await streaming(scene);
    scene.store.behaviour = 'refuses';
    await scene.time.advance(50 * SECOND);
    await scene.store.part.clear();
    scene.store.behaviour = 'up';
    await scene.time.advance(60 * SECOND);
    expect(told).toEqual([]);
  });

  test('after it has settled nobody tells it anything', async () => {
    const scene = createScene();
    const { ledger, hold, told } = await streaming(scene);
    await ledger.settle(hold, settlementOf(20n));
    await scene.time.jump(120 * SECOND);
    await ledger.hold(requestOf(0n, key));
    expect(told).toEqual([]);
  });
});
