import { describe, expect, test } from 'vitest';
import type { Hold } from '../ports/ledger.ts';
import type { Nano } from '../ports/money.ts';
import { createForgetfulScene, freezable, key, outcome } from './rebuild.fixture.ts';
import { heldOf, requestOf, scopeOf, settlementOf } from './scene.promises.ts';

describe('a store that was wiped', () => {
  test('gets the cost of a settled stream from its settlement, and the stream is not asked again', async () => {
    const { ended, scene, start, take, tryHold, wipe } = createForgetfulScene();
    const ledger = await start();
    const hold = await take(ledger, 60n);
    let asked = 0;
    ledger.progress(hold, () => {
      asked += 1;
      return 50n;
    });
    scene.store.behaviour = 'refuses';
    await ended(ledger.settle(hold, settlementOf(30n)));
    wipe();
    scene.store.behaviour = 'up';
    await scene.time.advance(3000);
    expect(await tryHold(ledger, 71n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryHold(ledger, 70n)).toMatchObject({ outcome: 'held' });
    expect(asked).toBe(0);
  });

  test('loses nothing: holds and settlements, booked or not, count after the rebuild as before', async () => {
    const { scene, spent, start, take, tryHold, wipe } = createForgetfulScene();
    const [one, two] = [await start(), await start()];
    const held = await take(one, 60n);
    const settled = await take(two, 30n);
    await two.settle(settled, settlementOf(20n));
    await scene.time.advance(10);
    wipe();
    expect(await tryHold(two, 21n)).toMatchObject({ outcome: 'busy' });
    expect(await tryHold(two, 20n)).toMatchObject({ outcome: 'held' });
    await one.settle(held, settlementOf(50n));
    await scene.time.advance(500);
    expect(await spent(one)).toMatchObject({ value: [{ spent: 70n }] });
    expect(scene.books.part.entries().map(({ cost }) => cost)).toEqual([20n, 50n]);
  });

  test('keeps spend from long ago in a window of years', async () => {
    const { ended, scene, start, wipe } = createForgetfulScene();
    const budget = { limit: '100', duration: '36500d', alignment: 'Rolling' as const };
    const lasting = scopeOf('lasting', 100n, { budget });
    const one = await start();
    const holdOf = async (amount: Nano) => (await ended(one.hold(requestOf(amount, lasting)))).value;
    for (const cost of [20n, 30n]) {
      await one.settle(heldOf(await holdOf(cost)), settlementOf(cost));
      await scene.time.advance(500);
      await scene.time.jump(400 * 86_400_000);
    }
    wipe();
    expect(outcome(await holdOf(51n))).toBe('exceeded');
    expect(outcome(await holdOf(50n))).toBe('held');
    expect((await ended(one.spend([lasting]))).value).toMatchObject({ value: [{ spent: 50n }] });
  });

  test('makes requests wait until it is rebuilt, without a 503', async () => {
    const { ended, rebuilds, start, take, tryHold, wipe } = createForgetfulScene();
    const [one, two] = [await start(), await start()];
    await take(one, 10n);
    await take(two, 10n);
    wipe();
    const results = await ended(Promise.all([one, two, one, two].map((ledger) => ledger.hold(requestOf(20n, key)))));
    expect(results.value.map(outcome)).toEqual(['held', 'held', 'held', 'held']);
    expect(results.millis).toBeLessThan(1000);
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'busy' });
    expect(rebuilds()).toBe(2);
  });

  test('waits a second, and no more, for a process that does not answer', async () => {
    const { start, take, tryHold, wipe } = createForgetfulScene();
    const sleeper = freezable();
    const [one, two] = [await start(), await start(sleeper)];
    await take(two, 30n);
    await take(one, 10n);
    sleeper.freeze();
    wipe();
    const { outcome: came, millis } = await tryHold(one, 60n);
    expect(came).toBe('held');
    expect(millis).toBeGreaterThanOrEqual(1000);
    expect(millis).toBeLessThan(1800);
  });

  test('does not wait for a process that stopped cleanly', async () => {
    const { ended, start, tryHold, wipe } = createForgetfulScene();
    const [one, two] = [await start(), await start()];
    await ended(two.close());
    wipe();
    expect((await tryHold(one, 60n)).millis).toBeLessThan(500);
  });

  test('counts a settlement once when its answer was lost with the store', async () => {
    const { scene, spent, start, take, tryHold, wipe } = createForgetfulScene();
    const [one, two] = [await start(), await start()];
    const held = await take(one, 60n);
    scene.store.behaviour = 'loses';
    await one.settle(held, settlementOf(40n));
    await scene.time.advance(50);
    scene.store.behaviour = 'up';
    wipe();
    expect(await tryHold(two, 61n)).toMatchObject({ outcome: 'exceeded' });
    await scene.time.advance(1000);
    expect(await spent(two)).toMatchObject({ value: [{ spent: 40n }] });
    expect(scene.books.part.entries()).toMatchObject([{ kind: 'settled', cost: 40n }]);
  });

  test('frees what was released while it was away', async () => {
    const { scene, start, take, tryHold, wipe } = createForgetfulScene();
    const one = await start();
    const held = await take(one, 100n);
    scene.store.behaviour = 'refuses';
    await one.release(held);
    await scene.time.advance(300);
    wipe();
    scene.store.behaviour = 'up';
    await scene.time.advance(2000);
    expect(await tryHold(one, 100n)).toMatchObject({ outcome: 'held' });
    expect(scene.books.part.entries()).toEqual([]);
  });

  test('repeatedly under load: never above the limit, nothing lost, nothing twice', async () => {
    const { scene, spent, start, take, tryHold, wipe } = createForgetfulScene();
    const [one, two] = [await start(), await start()];
    let cost = 0n;
    for (let round = 0; round < 8; round += 1) {
      const holds = [await take(one, 4n), await take(two, 4n)];
      wipe();
      await one.settle(holds[0] as Hold, settlementOf(3n));
      await two.release(holds[1] as Hold);
      cost += 3n;
      await scene.time.advance(round * 100);
    }
    await scene.time.advance(1000);
    expect(await spent(two)).toMatchObject({ value: [{ spent: cost }] });
    expect(scene.books.part.entries()).toHaveLength(8);
    expect(await tryHold(one, 100n - cost + 1n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryHold(one, 100n - cost)).toMatchObject({ outcome: 'held' });
  });

  test('while PostgreSQL is away admits no request, and is rebuilt when PostgreSQL is back', async () => {
    const { scene, start, take, tryHold, wipe } = createForgetfulScene();
    const one = await start();
    await take(one, 60n);
    scene.books.behaviour = 'refuses';
    if (scene.epochs !== undefined) scene.epochs.behaviour = 'refuses';
    wipe();
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'unavailable' });
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'unavailable', millis: 0 });
    scene.books.behaviour = 'up';
    if (scene.epochs !== undefined) scene.epochs.behaviour = 'up';
    await scene.time.advance(1000);
    expect(await tryHold(one, 41n)).toMatchObject({ outcome: 'busy' });
    expect(await tryHold(one, 40n)).toMatchObject({ outcome: 'held' });
  });
});

describe('a process that slept through a rebuild', () => {
  test('registers its holds again, and its settlements count', async () => {
    const { ended, scene, spent, start, take, tryHold, wipe } = createForgetfulScene();
    const sleeper = freezable();
    const [one, two] = [await start(), await start(sleeper)];
    const [held, settled] = [await take(two, 30n), await take(two, 20n)];
    await two.settle(settled, settlementOf(20n));
    await scene.time.advance(10);
    sleeper.freeze();
    wipe();
    await take(one, 10n);
    sleeper.thaw();
    const third = await ended(two.hold(requestOf(40n, key)));
    expect(outcome(third.value)).toBe('held');
    await scene.time.advance(500);
    // 20 spent, 10 and 30 and 40 held.
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'busy' });
    await two.settle(held, settlementOf(30n));
    await scene.time.advance(500);
    expect(await spent(one)).toMatchObject({ value: [{ spent: 50n }] });
    expect(scene.books.part.entries().map(({ cost }) => cost)).toEqual([20n, 30n]);
  });
});

describe('an expiry that one process knew and had not booked when the store forgot', () => {
  test('counts once, also after its own process registered the hold again', async () => {
    const { scene, spent, start, take, tryHold, wipe } = createForgetfulScene();
    const [hearer, holder] = [freezable(), freezable()];
    const [one, two] = [await start(hearer), await start(holder)];
    const held = await take(two, 40n);
    holder.freeze();
    scene.books.behaviour = 'refuses';
    await scene.time.advance(63_000);
    // The expiry waits for its booking in the first process.
    expect(scene.gauges.get('gateway_operator_ledger_unbooked')).toBe(1);
    hearer.freeze();
    scene.books.behaviour = 'up';
    wipe();
    holder.thaw();
    await scene.time.advance(3000);
    expect(await tryHold(two, 61n)).toMatchObject({ outcome: 'busy' });
    expect(scene.books.part.entries()).toEqual([]);
    hearer.thaw();
    await scene.time.advance(2500);
    expect(scene.books.part.entries()).toMatchObject([{ kind: 'expired', cost: 40n }]);
    expect(await spent(two)).toMatchObject({ value: [{ spent: 40n }] });
    expect(await tryHold(one, 61n)).toMatchObject({ outcome: 'exceeded' });
    const rest = await tryHold(one, 60n);
    expect(rest).toMatchObject({ outcome: 'held' });
    // The settlement arrives late.
    await two.settle(held, settlementOf(30n));
    await one.release(heldOf(rest.value));
    await scene.time.advance(2500);
    expect(await spent(one)).toMatchObject({ value: [{ spent: 30n }] });
    expect(scene.books.part.entries()).toMatchObject([
      { kind: 'expired', cost: 40n },
      { kind: 'correction', cost: -10n },
    ]);
    expect(await tryHold(two, 70n)).toMatchObject({ outcome: 'held' });
  });
});
