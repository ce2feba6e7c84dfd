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

interface Answered {
  readonly who: number;
  readonly outcome: string;
  readonly after: number;
}

/** Sends these requests concurrently, and records the answers in order of arrival. */
async function rush(amounts: ReadonlyArray<bigint>, scopes: ReadonlyArray<Parameters<typeof requestOf>[1]> = [key]) {
  const answers: Answered[] = [];
  const began = scene.time.clock.now();
  amounts.forEach((amount, who) => {
    void ledger.hold(requestOf(amount, ...scopes)).then((result) => {
      answers.push({ who, outcome: outcome(result), after: scene.time.clock.now() - began });
    });
  });
  await scene.time.settle();
  scene.calls.length = 0;
  return answers;
}

const manyOf = (amount: bigint, count: number): bigint[] => Array.from({ length: count }, () => amount);
const heldIn = (answers: ReadonlyArray<Answered>): number[] =>
  answers.filter((each) => each.outcome === 'held').map(({ who }) => who);

describe('requests that wait for live holds', () => {
  test('only the request in front asks the store again, and each one once more before it is refused', async () => {
    await other.hold(requestOf(100n, key));
    const answers = await rush(manyOf(7n, 1000));
    await scene.time.advance(990);
    expect(asked()).toBe(9);
    await scene.time.advance(20);
    expect(asked()).toBe(1009);
    expect(answers).toHaveLength(1000);
    expect(answers.every((each) => each.outcome === 'busy' && each.after === 1000)).toBe(true);
  });

  test('a request that fits when its second ends gets its money, though this process did not see it freed', async () => {
    const first = heldOf(await other.hold(requestOf(100n, key)));
    const answers = await rush(manyOf(7n, 1000));
    await scene.time.advance(950);
    await other.release(first);
    await scene.time.advance(100);
    expect(heldIn(answers).sort((one, two) => one - two)).toEqual(Array.from({ length: 14 }, (_, who) => who));
    expect(answers).toHaveLength(1000);
    expect(new Set(answers.map((each) => each.outcome))).toEqual(new Set(['held', 'busy']));
  });

  test('money that another process frees is found within 100 ms, and taken by every request that it suffices for', async () => {
    const first = heldOf(await other.hold(requestOf(100n, key)));
    const answers = await rush(manyOf(7n, 1000));
    await scene.time.advance(250);
    await other.release(first);
    await scene.time.advance(100);
    expect(heldIn(answers)).toEqual(Array.from({ length: 14 }, (_, who) => who));
    expect(asked()).toBe(2 + 15);
  });

  test('a small request immediately takes what is too little for a larger one before it', async () => {
    const [first] = [heldOf(await ledger.hold(requestOf(40n, key))), heldOf(await ledger.hold(requestOf(60n, key)))];
    const answers = await rush([90n, 50n, 95n, 30n, 35n, 10n, 10n]);
    await scene.time.advance(50);
    await ledger.release(first);
    await scene.time.advance(10);
    // 40 are free: the first three do not fit, the fourth does, the fifth no longer does, one small request does.
    expect(heldIn(answers)).toEqual([3, 5]);
    await scene.time.advance(1000);
    expect(
      answers
        .filter((each) => each.outcome === 'busy')
        .map(({ who }) => who)
        .sort(),
    ).toEqual([0, 1, 2, 4, 6]);
  });

  test('a small request behind a large one finds within 100 ms what another process freed', async () => {
    const [first] = [heldOf(await other.hold(requestOf(40n, key))), heldOf(await other.hold(requestOf(60n, key)))];
    const answers = await rush([90n, 50n, 30n]);
    await scene.time.advance(250);
    await other.release(first);
    await scene.time.advance(100);
    expect(heldIn(answers)).toEqual([2]);
  });

  test('all are refused soon after spend takes what they waited for, also with a distant store', async () => {
    const store = scene.store.part;
    const later = (): Promise<void> => new Promise((resolve) => scene.time.timer(10, resolve));
    scene.store.part = { ...store, call: (call) => later().then(() => store.call(call)) };
    const holding = ledger.hold(requestOf(100n, key));
    await scene.time.advance(100);
    const first = heldOf(await holding);
    const answers = await rush(manyOf(7n, 1000));
    await scene.time.advance(350);
    scene.calls.length = 0;
    await ledger.settle(first, settlementOf(100n));
    await scene.time.advance(150);
    expect(answers).toHaveLength(1000);
    expect(answers.every((each) => each.outcome === 'exceeded')).toBe(true);
    expect(asked()).toBe(1000);
  });

  test('a request that moves to the queue of another scope wakes the next one in its old queue', async () => {
    const [team, mine] = [scopeOf('team', 100n, { kind: 'team' }), scopeOf('mine', 10n)];
    const [first] = [heldOf(await ledger.hold(requestOf(100n, team))), heldOf(await ledger.hold(requestOf(10n, mine)))];
    // The team's counter is checked first; this request, behind it, waits for its own key.
    const answers = await rush([10n], [team, mine]);
    const backlog = await rush([10n], [team]);
    await scene.time.advance(50);
    await ledger.release(first);
    await scene.time.advance(10);
    expect([heldIn(answers), heldIn(backlog)]).toEqual([[], [0]]);
  });

  test('a refused request leaves its place to later ones, and does not disturb them', async () => {
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
    // Both ask for less than those before them, in two checks.
    expect(asked()).toBe(1 + 4);
    await scene.time.advance(300);
    expect(late).toMatchObject([{ outcome: 'busy' }, { outcome: 'busy' }]);
  });
});
