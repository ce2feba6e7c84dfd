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

interface Answered {
  readonly outcome: string;
  readonly after: number;
}

/** Sends `count` concurrent requests; the list fills with their answers and durations. */
function rush(count: number, amount: bigint, scope = key): Answered[] {
  const answers: Answered[] = [];
  const began = scene.time.clock.now();
  for (let index = 0; index < count; index += 1) {
    void ledger.hold(requestOf(amount, scope)).then((result) => {
      answers.push({ outcome: result.ok ? 'held' : result.failure.reason, after: scene.time.clock.now() - began });
    });
  }
  return answers;
}

const later = (millis: number): Promise<void> => new Promise((resolve) => scene.time.timer(millis, resolve));
const outcomes = (answers: ReadonlyArray<Answered>): string[] =>
  [...new Set(answers.map(({ outcome }) => outcome))].sort();
const last = (answers: ReadonlyArray<Answered>): number => Math.max(...answers.map(({ after }) => after));

const namesKey = (holds: StoreCall['holds']): boolean =>
  holds.some(({ counters }) => counters.some(({ scopeId }) => scopeId === 'key'));

/** Runs `wait` before each store call. */
function beforeEachCall(wait: (call: StoreCall) => Promise<unknown>): void {
  const store = scene.store.part;
  scene.store.part = { ...store, call: (call) => wait(call).then(() => store.call(call)) };
}

/** Makes the store run one call after the other, each for `millis`; returns a function that stops it. */
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

describe('a store that is slow under load', () => {
  test('is not unresponsive: a thousand concurrent requests each get its answer, the last ones after a second', async () => {
    heldOf(await ledger.hold(requestOf(1n, key)));
    inTurn(62);
    const answers = rush(1000, 7n);
    await scene.time.advance(2000);
    expect(answers).toHaveLength(1000);
    expect(outcomes(answers)).toEqual(['busy', 'held']);
    expect(answers.filter(({ outcome }) => outcome === 'held')).toHaveLength(14);
  });

  test('and hangs before all are answered: the others are refused within a second', async () => {
    heldOf(await ledger.hold(requestOf(1n, key)));
    const stop = inTurn(62);
    const answers = rush(1000, 7n);
    await scene.time.advance(250);
    stop();
    await scene.time.advance(700);
    expect(answers).toHaveLength(1000);
    expect(outcomes(answers)).toEqual(['held', 'unavailable']);
  });

  test('delays no request for longer than 1.8 s', async () => {
    heldOf(await ledger.hold(requestOf(1n, key)));
    inTurn(150);
    const answers = rush(1000, 7n);
    await scene.time.advance(1800);
    expect(answers).toHaveLength(1000);
  });
});

describe('requests that wait for live holds share one verdict:', () => {
  beforeEach(async () => {
    heldOf(await ledger.hold(requestOf(100n, key)));
  });

  test('the store is unresponsive, also for those that have not asked it again', async () => {
    const answers = rush(1000, 1n);
    await scene.time.advance(300);
    scene.store.behaviour = 'hangs';
    await scene.time.advance(700);
    expect(answers).toHaveLength(1000);
    expect(outcomes(answers)).toEqual(['unavailable']);
    expect(last(answers)).toBeLessThanOrEqual(960);
  });

  test('the store is responsive while it answers others: a lost question ends as busy', async () => {
    heldOf(await ledger.hold(requestOf(1n, other)));
    const answers = rush(1, 1n);
    await scene.time.advance(50);
    // Questions about the key are never answered from now on.
    beforeEachCall(({ holds }) => (namesKey(holds) ? new Promise(() => undefined) : later(10)));
    for (let turn = 0; turn < 40 && answers.length === 0; turn += 1) {
      void ledger.hold(requestOf(0n, other));
      await scene.time.advance(50);
    }
    expect(outcomes(answers)).toEqual(['busy']);
    expect(last(answers)).toBeLessThanOrEqual(1800);
  });

  test('also with a ledger per request, as on Workers: they share the last answer', async () => {
    const isolate = createStoreMemory('worker');
    const requestLedger = async (): Promise<StartableLedger> => {
      const one = scene.process({ ...IMMORTAL, isolate }, { records: [] });
      await one.start();
      return one;
    };
    const answers: number[] = [];
    const began = scene.time.clock.now();
    const waits = (await requestLedger()).hold(requestOf(1n, key)).then((result) => {
      answers.push(scene.time.clock.now() - began);
      return result;
    });
    await scene.time.advance(50);
    // From now on a hold of the key takes longer than a quarter of a second, others do not.
    beforeEachCall(({ holds }) => later(namesKey(holds) ? 600 : 10));
    for (let turn = 0; turn < 40 && answers.length === 0; turn += 1) {
      void (await requestLedger()).hold(requestOf(0n, other));
      await scene.time.advance(50);
    }
    expect(await waits).toMatchObject({ failure: { reason: 'busy' } });
  });

  test('whichever budget each of them waits for', async () => {
    heldOf(await ledger.hold(requestOf(10n, other)));
    const [one, two] = [rush(10, 1n), rush(10, 1n, other)];
    await scene.time.advance(450);
    scene.store.behaviour = 'hangs';
    await scene.time.advance(500);
    expect([...one, ...two]).toHaveLength(20);
    expect(outcomes([...one, ...two])).toEqual(['unavailable']);
  });
});

test('a first question that later ones overtook is refused within a second', async () => {
  heldOf(await ledger.hold(requestOf(1n, key)));
  heldOf(await ledger.hold(requestOf(1n, other)));
  beforeEachCall(({ holds }) => (namesKey(holds) ? new Promise(() => undefined) : later(10)));
  const answers = rush(1, 1n);
  for (let turn = 0; turn < 20; turn += 1) {
    await scene.time.advance(50);
    void ledger.hold(requestOf(0n, other));
  }
  expect(answers).toEqual([{ outcome: 'unavailable', after: 900 }]);
});
