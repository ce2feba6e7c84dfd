import { beforeEach, describe, expect, test } from 'vitest';
import type { Hold, HoldRefusal } from '../ports/ledger.ts';
import type { Result } from '../result.ts';
import type { StartableLedger } from './ledger.ts';
import { createScene, heldOf, IMMORTAL, requestOf, type Scene, scopeOf, settlementOf } from './scene.promises.ts';

const key = scopeOf('key', 100n);
let scene: Scene;
let ledger: StartableLedger;
let other: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = scene.process();
  other = scene.process(IMMORTAL, { records: [] });
  await Promise.all([ledger.start(), other.start()]);
});

const outcome = (result: Result<Hold, HoldRefusal>): string => (result.ok ? 'held' : result.failure.reason);
const asked = (): number => scene.calls.reduce((all, holds) => all + holds, 0);

interface Told {
  readonly who: number;
  readonly outcome: string;
  readonly after: number;
}

/** Asks for these at once, and notes who is told what, in the order in which they are. */
async function rush(amounts: ReadonlyArray<bigint>, scopes: ReadonlyArray<Parameters<typeof requestOf>[1]> = [key]) {
  const told: Told[] = [];
  const began = scene.time.clock.now();
  amounts.forEach((amount, who) => {
    void ledger.hold(requestOf(amount, ...scopes)).then((result) => {
      told.push({ who, outcome: outcome(result), after: scene.time.clock.now() - began });
    });
  });
  await scene.time.settle();
  scene.calls.length = 0;
  return told;
}

const manyOf = (amount: bigint, count: number): bigint[] => Array.from({ length: count }, () => amount);
const heldIn = (told: ReadonlyArray<Told>): number[] =>
  told.filter((each) => each.outcome === 'held').map(({ who }) => who);

describe('of those who wait for live holds', () => {
  test('only who is in front asks the store again, and everybody once more before being refused', async () => {
    await other.hold(requestOf(100n, key));
    const told = await rush(manyOf(7n, 1000));
    await scene.time.advance(990);
    expect(asked()).toBe(9);
    await scene.time.advance(20);
    expect(asked()).toBe(1009);
    expect(told).toHaveLength(1000);
    expect(told.every((each) => each.outcome === 'busy' && each.after === 1000)).toBe(true);
  });

  test('whoever fits when its second ends has its money, though nobody here knew that something was free', async () => {
    const first = heldOf(await other.hold(requestOf(100n, key)));
    const told = await rush(manyOf(7n, 1000));
    await scene.time.advance(950);
    await other.release(first);
    await scene.time.advance(100);
    expect(heldIn(told).sort((one, two) => one - two)).toEqual(Array.from({ length: 14 }, (_, who) => who));
    expect(told).toHaveLength(1000);
    expect(new Set(told.map((each) => each.outcome))).toEqual(new Set(['held', 'busy']));
  });

  test('what another process frees is found within 100 ms, and taken by all whom it suffices for', async () => {
    const first = heldOf(await other.hold(requestOf(100n, key)));
    const told = await rush(manyOf(7n, 1000));
    await scene.time.advance(250);
    await other.release(first);
    await scene.time.advance(100);
    expect(heldIn(told)).toEqual(Array.from({ length: 14 }, (_, who) => who));
    expect(asked()).toBe(2 + 15);
  });

  test('a small one takes at once what does not suffice for a larger one before it, and does not wait for its turn', async () => {
    const [first] = [heldOf(await ledger.hold(requestOf(40n, key))), heldOf(await ledger.hold(requestOf(60n, key)))];
    const told = await rush([90n, 50n, 95n, 30n, 35n, 10n, 10n]);
    await scene.time.advance(50);
    await ledger.release(first);
    await scene.time.advance(10);
    // 40 are free: the first two and the third do not fit, the fourth does, the fifth not any more, one small one does.
    expect(heldIn(told)).toEqual([3, 5]);
    await scene.time.advance(1000);
    expect(
      told
        .filter((each) => each.outcome === 'busy')
        .map(({ who }) => who)
        .sort(),
    ).toEqual([0, 1, 2, 4, 6]);
  });

  test('a small one behind a large one finds within 100 ms what another process freed for it', async () => {
    const [first] = [heldOf(await other.hold(requestOf(40n, key))), heldOf(await other.hold(requestOf(60n, key)))];
    const told = await rush([90n, 50n, 30n]);
    await scene.time.advance(250);
    await other.release(first);
    await scene.time.advance(100);
    expect(heldIn(told)).toEqual([2]);
  });

  test('all are told soon that spend has taken what they waited for, also by a store that is far away', async () => {
    const store = scene.store.part;
    const later = (): Promise<void> => new Promise((resolve) => scene.time.timer(10, resolve));
    scene.store.part = { ...store, call: (call) => later().then(() => store.call(call)) };
    const holding = ledger.hold(requestOf(100n, key));
    await scene.time.advance(100);
    const first = heldOf(await holding);
    const told = await rush(manyOf(7n, 1000));
    await scene.time.advance(350);
    scene.calls.length = 0;
    await ledger.settle(first, settlementOf(100n));
    await scene.time.advance(150);
    expect(told).toHaveLength(1000);
    expect(told.every((each) => each.outcome === 'exceeded')).toBe(true);
    expect(asked()).toBe(1000);
  });

  test('nobody is left behind by one that now waits for another scope', async () => {
    const [team, mine] = [scopeOf('team', 100n, { kind: 'team' }), scopeOf('mine', 10n)];
    const [first] = [heldOf(await ledger.hold(requestOf(100n, team))), heldOf(await ledger.hold(requestOf(10n, mine)))];
    // The team's counter is judged first; what is in the way of this one behind it is its own key.
    const told = await rush([10n], [team, mine]);
    const backlog = await rush([10n], [team]);
    await scene.time.advance(50);
    await ledger.release(first);
    await scene.time.advance(10);
    expect([heldIn(told), heldIn(backlog)]).toEqual([[], [0]]);
  });

  test('one that was refused leaves its place to those who came later, and does not disturb them', async () => {
    await other.hold(requestOf(100n, key));
    const first = await rush([1n]);
    await scene.time.advance(50);
    const second = await rush([1n]);
    await scene.time.advance(500);
    const late = await rush([50n, 40n]);
    await scene.time.advance(470);
    expect(first).toMatchObject([{ outcome: 'busy' }]);
    scene.calls.length = 0;
    await scene.time.advance(60);
    expect(second).toMatchObject([{ outcome: 'busy' }]);
    expect(asked()).toBe(1);
    await scene.time.advance(200);
    // Both ask for less than those before them, at two looks.
    expect(asked()).toBe(1 + 4);
    await scene.time.advance(300);
    expect(late).toMatchObject([{ outcome: 'busy' }, { outcome: 'busy' }]);
  });
});
