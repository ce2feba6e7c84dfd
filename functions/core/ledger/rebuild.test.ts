import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryEpochs } from '#adapters/memory/epochs.ts';
import { createMemoryStore } from '#adapters/memory/store.ts';
import { idAt } from '../ports/entry.fixture.ts';
import type { Hold, HoldRefusal } from '../ports/ledger.ts';
import type { Nano } from '../ports/money.ts';
import type { Result } from '../result.ts';
import type { StartableLedger } from './ledger.ts';
import {
  createScene,
  heldOf,
  IMMORTAL,
  type Process,
  requestOf,
  type Scene,
  scopeOf,
  settlementOf,
} from './scene.promises.ts';

const key = scopeOf('key', 100n);
let scene: Scene;

beforeEach(() => {
  scene = createScene();
  scene.epochs = { part: createMemoryEpochs(scene.time), mood: 'up' };
  scene.store.part = createMemoryStore({ ...scene.time, epoch: 0 });
});

/** Time goes on until the promise has come to its end; answers how long that took. */
async function ended<T>(promise: Promise<T>): Promise<{ readonly value: T; readonly millis: number }> {
  const began = scene.time.clock.now();
  let done: { value: T; millis: number } | undefined;
  void promise.then((value) => {
    done = { value, millis: scene.time.clock.now() - began };
  });
  for (let waited = 0; done === undefined && waited < 10_000; waited += 5) await scene.time.advance(5);
  if (done === undefined) throw new Error('nothing came in 10 s');
  return done;
}

async function start(process: Process = IMMORTAL): Promise<StartableLedger> {
  // Each on a folder of its own.
  const ledger = scene.process(process, { records: [] });
  await ended(ledger.start());
  return ledger;
}

const wipe = (): void => {
  scene.store.part = createMemoryStore({ ...scene.time, epoch: 0 });
};
const outcome = ({ ok, ...rest }: Result<Hold, HoldRefusal>): string => {
  if (ok) return 'held';
  return 'failure' in rest ? (rest.failure as HoldRefusal).reason : '';
};
const tryHold = async (ledger: StartableLedger, amount: Nano) => {
  const { value, millis } = await ended(ledger.hold(requestOf(amount, key)));
  return { value, outcome: outcome(value), millis };
};
const take = async (ledger: StartableLedger, amount: Nano): Promise<Hold> =>
  heldOf((await tryHold(ledger, amount)).value);
const spent = async (ledger: StartableLedger) => (await ended(ledger.spend([key]))).value;
const rebuilds = (): number => scene.counted.get('gateway_operator_ledger_rebuilds_total') ?? 0;

/** A process that can be stopped where it stands. */
function freezable(): Process & { freeze(): void; thaw(): void } {
  let frozen = false;
  return {
    ...IMMORTAL,
    isFrozen: () => frozen,
    freeze: () => {
      frozen = true;
    },
    thaw: () => {
      frozen = false;
    },
  };
}

describe('a store that was wiped', () => {
  test('hears of a stream that has settled what that cost, and nobody asks the stream again', async () => {
    const ledger = await start();
    const hold = await take(ledger, 60n);
    let asked = 0;
    ledger.progress(hold, () => {
      asked += 1;
      return 50n;
    });
    scene.store.mood = 'refuses';
    await ended(ledger.settle(hold, settlementOf(30n)));
    wipe();
    scene.store.mood = 'up';
    await scene.time.advance(3000);
    expect(await tryHold(ledger, 71n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryHold(ledger, 70n)).toMatchObject({ outcome: 'held' });
    expect(asked).toBe(0);
  });

  test('is empty for nobody: what is held and what is settled, booked or not, counts after it as before', async () => {
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

  test('knows what was spent long ago in a window of years', async () => {
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

  test('lets requests wait until it is rebuilt, and nobody sees a 503', async () => {
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

  test('does not wait for a process that ended in order', async () => {
    const [one, two] = [await start(), await start()];
    await ended(two.close());
    wipe();
    expect((await tryHold(one, 60n)).millis).toBeLessThan(500);
  });

  test('counts a settlement once whose answer was lost with it', async () => {
    const [one, two] = [await start(), await start()];
    const held = await take(one, 60n);
    scene.store.mood = 'loses';
    await one.settle(held, settlementOf(40n));
    await scene.time.advance(50);
    scene.store.mood = 'up';
    wipe();
    expect(await tryHold(two, 61n)).toMatchObject({ outcome: 'exceeded' });
    await scene.time.advance(1000);
    expect(await spent(two)).toMatchObject({ value: [{ spent: 40n }] });
    expect(scene.books.part.entries()).toMatchObject([{ kind: 'settled', cost: 40n }]);
  });

  test('frees what was released while it was away', async () => {
    const one = await start();
    const held = await take(one, 100n);
    scene.store.mood = 'refuses';
    await one.release(held);
    await scene.time.advance(300);
    wipe();
    scene.store.mood = 'up';
    await scene.time.advance(2000);
    expect(await tryHold(one, 100n)).toMatchObject({ outcome: 'held' });
    expect(scene.books.part.entries()).toEqual([]);
  });

  test('again and again, while requests go on: never above the limit, nothing lost, nothing twice', async () => {
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

  test('while PostgreSQL is away lets nobody in, and is rebuilt when it is back', async () => {
    const one = await start();
    await take(one, 60n);
    scene.books.mood = 'refuses';
    if (scene.epochs !== undefined) scene.epochs.mood = 'refuses';
    wipe();
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'unavailable' });
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'unavailable', millis: 0 });
    scene.books.mood = 'up';
    if (scene.epochs !== undefined) scene.epochs.mood = 'up';
    await scene.time.advance(1000);
    expect(await tryHold(one, 41n)).toMatchObject({ outcome: 'busy' });
    expect(await tryHold(one, 40n)).toMatchObject({ outcome: 'held' });
  });
});

describe('a process that slept through a rebuild', () => {
  test('brings its holds along, and what it had settled counts', async () => {
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

describe('a lease whose end one process had heard and not booked when the store forgot', () => {
  test('counts once, also while the process that holds it has registered it anew', async () => {
    const [hearer, holder] = [freezable(), freezable()];
    const [one, two] = [await start(hearer), await start(holder)];
    const held = await take(two, 40n);
    holder.freeze();
    scene.books.mood = 'refuses';
    await scene.time.advance(63_000);
    // It waits in the first one to be booked.
    expect(scene.gauges.get('gateway_operator_ledger_unbooked')).toBe(1);
    hearer.freeze();
    scene.books.mood = 'up';
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
    // The truth comes after all.
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

describe('what a process counted that is gone for good', () => {
  test('is booked by another after two seconds of silence, with its tokens and its model', async () => {
    const dead = freezable();
    const [one, two] = [await start(), await start(dead)];
    const settled = await take(two, 30n);
    await two.settle(settled, settlementOf(25n));
    await scene.time.advance(10);
    dead.freeze();
    await scene.time.advance(1000);
    expect(scene.books.part.entries()).toEqual([]);
    await scene.time.advance(4000);
    expect(scene.books.part.entries()).toMatchObject([
      { id: settled.id, kind: 'settled', cost: 25n, charges: settled.charges, tokens: { input: 1, output: 2 } },
    ]);
    expect(await spent(one)).toMatchObject({ value: [{ spent: 25n }] });
  });

  test('and left under way is charged when its lease ends, also while nobody asks for anything', async () => {
    const dead = freezable();
    const [, two] = [await start(), await start(dead)];
    const { id } = await take(two, 30n);
    dead.freeze();
    await scene.time.advance(70_000);
    expect(scene.books.part.entries()).toMatchObject([{ id, kind: 'expired', cost: 30n }]);
  });

  test('is booked by a sweep at once, its own process’s too, and never twice', async () => {
    const [one, two] = [await start(), await start()];
    const settled = await take(two, 30n);
    await two.settle(settled, settlementOf(25n));
    await scene.time.advance(10);
    await ended(one.tend());
    expect(scene.books.part.entries()).toHaveLength(1);
    await scene.time.advance(1000);
    expect(scene.books.part.entries()).toHaveLength(1);
    expect(await spent(one)).toMatchObject({ value: [{ spent: 25n }] });
  });
});

describe('an audit', () => {
  test('finds nothing where every counter shows its entries and what is not booked yet', async () => {
    const one = await start();
    const [booked, unbooked] = [await take(one, 30n), await take(one, 20n)];
    await one.settle(booked, settlementOf(25n));
    await scene.time.advance(500);
    await one.settle(unbooked, settlementOf(10n));
    await scene.time.advance(10);
    await ended(one.tend());
    expect(scene.counted.get('gateway_operator_ledger_audit_differences_total')).toBeUndefined();
  });

  test('repairs a counter that shows something else, and tells it', async () => {
    const one = await start();
    const settled = await take(one, 30n);
    await one.settle(settled, settlementOf(25n));
    await scene.time.advance(500);
    const [window] = settled.charges;
    if (window === undefined) throw new Error('nobody pays');
    const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
    const deadline = scene.time.clock.now() + 1000;
    await scene.store.part.call({ ...nothing, epoch: 1, adjusts: [{ ...window, by: -20n, deadline }] });
    expect(await spent(one)).toMatchObject({ value: [{ spent: 5n }] });
    await ended(one.tend());
    expect(await spent(one)).toMatchObject({ value: [{ spent: 25n }] });
    expect(scene.counted.get('gateway_operator_ledger_audit_differences_total')).toBe(1);
    expect(scene.log.lines.filter(({ message }) => message.includes('was repaired'))).toHaveLength(1);
  });

  test('keeps the counter of a key that spends in another instance now as it must be, and tells nobody', async () => {
    const one = await start();
    const { id, charges } = await take(one, 30n);
    await one.settle({ id, amount: 30n, charges }, settlementOf(25n));
    await scene.time.advance(500);
    const [before] = scene.books.part.entries();
    const [window] = charges;
    if (before === undefined || window === undefined) throw new Error('nothing was booked');
    scene.books.part.moved(window.scopeId, 'instance-2');
    await scene.books.part.book('instance-2', [{ ...before, id: idAt(scene.time.clock.now()), cost: 40n }]);
    await ended(one.tend());
    expect(await spent(one)).toMatchObject({ value: [{ spent: 65n }] });
    expect(scene.counted.get('gateway_operator_ledger_audit_differences_total')).toBeUndefined();
    expect(scene.log.lines.filter(({ message }) => message.includes('was repaired'))).toEqual([]);
  });
});
