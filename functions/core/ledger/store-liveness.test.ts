import { beforeEach, describe, expect, test } from 'vitest';
import type { StoreCall } from '../ports/store.ts';
import type { StartableLedger } from './ledger.ts';
import { createStoreMemory } from './membership.ts';
import { createScene, heldOf, IMMORTAL, requestOf, type Scene, scopeOf } from './scene.promises.ts';

const key = scopeOf('key', 100n);
const other = scopeOf('other', 10n);
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = scene.process();
  await ledger.start();
});

interface Told {
  readonly outcome: string;
  readonly after: number;
}

/** Asks for so many at once; what they were told, and after how long, is there when they were. */
function rush(count: number, amount: bigint, scope = key): Told[] {
  const told: Told[] = [];
  const began = scene.time.clock.now();
  for (let index = 0; index < count; index += 1) {
    void ledger.hold(requestOf(amount, scope)).then((result) => {
      told.push({ outcome: result.ok ? 'held' : result.failure.reason, after: scene.time.clock.now() - began });
    });
  }
  return told;
}

const later = (millis: number): Promise<void> => new Promise((resolve) => scene.time.timer(millis, resolve));
const outcomes = (told: ReadonlyArray<Told>): string[] => [...new Set(told.map(({ outcome }) => outcome))].sort();
const last = (told: ReadonlyArray<Told>): number => Math.max(...told.map(({ after }) => after));

const namesKey = (holds: StoreCall['holds']): boolean =>
  holds.some(({ counters }) => counters.some(({ scopeId }) => scopeId === 'key'));

/** Before the store does a call. */
function beforeEachCall(wait: (call: StoreCall) => Promise<unknown>): void {
  const store = scene.store.part;
  scene.store.part = { ...store, call: (call) => wait(call).then(() => store.call(call)) };
}

/** One call after the other, each takes so long; answers how to stop it. */
function inTurn(millis: number): () => void {
  let before: Promise<unknown> = Promise.resolve();
  let isStopped = false;
  beforeEachCall(() => {
    before = before.then(() => later(isStopped ? 10_000 : millis));
    return before;
  });
  return () => {
    isStopped = true;
  };
}

describe('a store that is slow for many', () => {
  test('is not silent: a thousand at once are each told what it says, though the last are answered after a second', async () => {
    heldOf(await ledger.hold(requestOf(1n, key)));
    inTurn(62);
    const told = rush(1000, 7n);
    await scene.time.advance(2000);
    expect(told).toHaveLength(1000);
    expect(outcomes(told)).toEqual(['busy', 'held']);
    expect(told.filter(({ outcome }) => outcome === 'held')).toHaveLength(14);
  });

  test('and falls silent before all are answered: the others are told within a second', async () => {
    heldOf(await ledger.hold(requestOf(1n, key)));
    const stop = inTurn(62);
    const told = rush(1000, 7n);
    await scene.time.advance(250);
    stop();
    await scene.time.advance(700);
    expect(told).toHaveLength(1000);
    expect(outcomes(told)).toEqual(['held', 'unavailable']);
  });

  test('does not go on for ever: nobody waits for longer than 1.8 s', async () => {
    heldOf(await ledger.hold(requestOf(1n, key)));
    inTurn(150);
    const told = rush(1000, 7n);
    await scene.time.advance(1800);
    expect(told).toHaveLength(1000);
  });
});

describe('those who wait for live holds judge together', () => {
  beforeEach(async () => {
    heldOf(await ledger.hold(requestOf(100n, key)));
  });

  test('that the store is silent, also those who have not asked it again themselves', async () => {
    const told = rush(1000, 1n);
    await scene.time.advance(300);
    scene.store.behaviour = 'hangs';
    await scene.time.advance(700);
    expect(told).toHaveLength(1000);
    expect(outcomes(told)).toEqual(['unavailable']);
    expect(last(told)).toBeLessThanOrEqual(960);
  });

  test('that it is not, while it answers anybody: a question that is lost ends as busy, when everything else is known', async () => {
    heldOf(await ledger.hold(requestOf(1n, other)));
    const told = rush(1, 1n);
    await scene.time.advance(50);
    // What is asked for the key from here on is never answered.
    beforeEachCall(({ holds }) => (namesKey(holds) ? new Promise(() => undefined) : later(10)));
    for (let turn = 0; turn < 40 && told.length === 0; turn += 1) {
      void ledger.hold(requestOf(0n, other));
      await scene.time.advance(50);
    }
    expect(outcomes(told)).toEqual(['busy']);
    expect(last(told)).toBeLessThanOrEqual(1800);
  });

  test('also where each has a ledger of its own, as on Workers: what one is answered the others know of', async () => {
    const isolate = createStoreMemory('worker');
    const visit = async (): Promise<StartableLedger> => {
      const one = scene.process({ ...IMMORTAL, isolate }, { records: [] });
      await one.start();
      return one;
    };
    const answers: number[] = [];
    const began = scene.time.clock.now();
    const waits = (await visit()).hold(requestOf(1n, key)).then((result) => {
      answers.push(scene.time.clock.now() - began);
      return result;
    });
    await scene.time.advance(50);
    // From here on a hold of the key takes longer than a quarter of a second, others do not.
    beforeEachCall(({ holds }) => later(namesKey(holds) ? 600 : 10));
    for (let turn = 0; turn < 40 && answers.length === 0; turn += 1) {
      void (await visit()).hold(requestOf(0n, other));
      await scene.time.advance(50);
    }
    expect(await waits).toMatchObject({ failure: { reason: 'busy' } });
  });

  test('whatever budget each of them waits for', async () => {
    heldOf(await ledger.hold(requestOf(10n, other)));
    const [one, two] = [rush(10, 1n), rush(10, 1n, other)];
    await scene.time.advance(450);
    scene.store.behaviour = 'hangs';
    await scene.time.advance(500);
    expect([...one, ...two]).toHaveLength(20);
    expect(outcomes([...one, ...two])).toEqual(['unavailable']);
  });
});

test('a first question that was overtaken by others is not waited for: it is told within a second that it was lost', async () => {
  heldOf(await ledger.hold(requestOf(1n, key)));
  heldOf(await ledger.hold(requestOf(1n, other)));
  beforeEachCall(({ holds }) => (namesKey(holds) ? new Promise(() => undefined) : later(10)));
  const told = rush(1, 1n);
  for (let turn = 0; turn < 20; turn += 1) {
    await scene.time.advance(50);
    void ledger.hold(requestOf(0n, other));
  }
  expect(told).toEqual([{ outcome: 'unavailable', after: 900 }]);
});
