import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryStore } from '#adapters/memory/store.ts';
import { createMemoryEpochs } from '../../../test/doubles/epochs.ts';
import type { HoldRequest } from '../ports/ledger.ts';
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
});

async function start(process: Process = IMMORTAL): Promise<StartableLedger> {
  const ledger = scene.process(process, { records: [] });
  await ended(ledger.start());
  return ledger;
}

/** Advances the clock until the promise has settled; returns how long that took. `meanwhile`: events by instant. */
async function ended<T>(promise: Promise<T>, meanwhile: Readonly<Record<number, () => unknown>> = {}) {
  const began = scene.time.clock.now();
  let done: { readonly value: T; readonly millis: number } | undefined;
  void promise.then((value) => {
    done = { value, millis: scene.time.clock.now() - began };
  });
  for (let waited = 0; done === undefined && waited < 10_000; waited += 10) {
    meanwhile[waited]?.();
    await scene.time.advance(10);
  }
  if (done === undefined) throw new Error('nothing came in 10 s');
  return done;
}

async function answerTo(
  ledger: StartableLedger,
  request: HoldRequest,
  meanwhile?: Readonly<Record<number, () => unknown>>,
) {
  const { value, millis } = await ended(ledger.hold(request), meanwhile);
  return { outcome: value.ok ? 'held' : value.failure.reason, millis };
}

const later = (millis: number): Promise<void> => new Promise((resolve) => scene.time.timer(millis, resolve));

/** A part whose every answer takes `millis`. */
function slow<T extends object>(part: T, millis: () => number): T {
  return new Proxy(part, {
    get(_, name) {
      const method: unknown = Reflect.get(part, name);
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        await later(millis() / 2);
        const answer: unknown = await method.apply(part, args);
        await later(millis() / 2);
        return answer;
      };
    },
  });
}

describe('a request is refused within a second of its arrival when a part does not answer', () => {
  test('the store, the database or the disk', async () => {
    const ledger = await start();
    const unavailable = { outcome: 'unavailable', millis: 900 };
    scene.books.behaviour = 'hangs';
    expect(await answerTo(ledger, requestOf(1n, key))).toEqual(unavailable);
    scene.books.behaviour = 'up';
    await scene.time.advance(3000);
    expect(await answerTo(ledger, requestOf(1n, key))).toMatchObject({ outcome: 'held' });
    scene.store.behaviour = 'hangs';
    expect(await answerTo(ledger, requestOf(1n, key))).toEqual(unavailable);
    expect(await ended(ledger.spend([key]))).toMatchObject({ value: { ok: false }, millis: 900 });
    scene.store.behaviour = 'up';
    await scene.time.advance(3000);
    scene.outbox.behaviour = 'hangs';
    expect(await answerTo(ledger, requestOf(1n, key))).toEqual(unavailable);
  });

  test('the time that authentication took counts too', async () => {
    const ledger = await start();
    scene.store.behaviour = 'hangs';
    expect(await answerTo(ledger, { ...requestOf(1n, key), waited: 300 })).toEqual({
      outcome: 'unavailable',
      millis: 600,
    });
    expect(await ended(ledger.spend([key], 300))).toMatchObject({ value: { ok: false }, millis: 600 });
  });

  test('a part that is asked after others have answered has half a second all the same', async () => {
    const ledger = await start();
    scene.store.behaviour = 'hangs';
    expect(await answerTo(ledger, { ...requestOf(1n, key), waited: 800 })).toEqual({
      outcome: 'unavailable',
      millis: 500,
    });
  });

  test('one call after the other, each on its own', async () => {
    const ledger = await start();
    scene.books.behaviour = 'hangs';
    let began = 0;
    let second = 0;
    const first = ended(ledger.hold(requestOf(1n, key)), {
      500: () => {
        void ledger.hold(requestOf(1n, key)).then(() => {
          second = scene.time.clock.now();
        });
        began = scene.time.clock.now();
      },
    });
    expect((await first).millis).toBe(900);
    await scene.time.advance(600);
    expect(second - began).toBe(900);
  });
});

describe('a distant store, 200 ms a call, is not unresponsive', () => {
  test('a hold of an unloaded budget takes four calls and a query', async () => {
    scene.store.part = slow(scene.store.part, () => 200);
    scene.books.part = slow(scene.books.part, () => 200);
    const ledger = await start();
    const { outcome, millis } = await answerTo(ledger, { ...requestOf(1n, key), waited: 50 });
    expect(outcome).toBe('held');
    expect(millis).toBeGreaterThan(850);
  });

  test('when it hangs after such an answer, the request is refused half a second after the next question', async () => {
    let pace = 600;
    scene.store.part = slow(scene.store.part, () => pace);
    const ledger = await start();
    const { outcome, millis } = await answerTo(ledger, requestOf(1n, key), {
      610: () => {
        pace = 100_000;
      },
    });
    expect(outcome).toBe('unavailable');
    expect(millis).toBeLessThanOrEqual(1150);
  });

  test('a budget that another process loads meanwhile does not wait for its own load', async () => {
    const [one, two] = [await start(), await start()];
    const { withLedgerLock } = scene.books.part;
    let asked = 0;
    Object.assign(scene.books.part, {
      withLedgerLock: async (...of: Parameters<typeof withLedgerLock>) => {
        asked += 1;
        // The other loads queue for longer than any request waits.
        if (asked > 1) await later(5000);
        return withLedgerLock(...of);
      },
    });
    const first = ended(one.hold(requestOf(1n, key)));
    expect(await answerTo(two, requestOf(1n, key))).toEqual({ outcome: 'held', millis: 250 });
    expect((await first).value.ok).toBe(true);
    expect(asked).toBe(2);
  });

  test('a request waits at most 1.8 s, however slowly the store answers', async () => {
    scene.store.part = slow(scene.store.part, () => 460);
    const ledger = await start();
    const { outcome, millis } = await answerTo(ledger, requestOf(1n, key));
    expect(outcome).toBe('unavailable');
    expect(millis).toBeLessThanOrEqual(1800);
    // The load continues: the next request finds it done.
    await scene.time.advance(2000);
    expect(await answerTo(ledger, requestOf(1n, key))).toMatchObject({ outcome: 'held' });
  });
});

describe('a request that waits for live holds', () => {
  let ledger: StartableLedger;
  beforeEach(async () => {
    ledger = await start();
    heldOf((await ended(ledger.hold(requestOf(100n, key)))).value);
  });

  const freezesAt = (millis: number) => ({
    [millis]: () => {
      scene.store.behaviour = 'hangs';
    },
  });

  test('is refused as busy after a second', async () => {
    expect(await answerTo(ledger, requestOf(1n, key))).toEqual({ outcome: 'busy', millis: 1000 });
  });

  test.each([0, 100, 300, 500, 650])(
    'is refused within a second when the store hangs %i ms after its arrival',
    async (at) => {
      const { outcome, millis } = await answerTo(ledger, requestOf(1n, key), freezesAt(at));
      expect(outcome).toBe('unavailable');
      expect(millis).toBeLessThanOrEqual(1000);
    },
  );

  test.each([700, 800, 990])(
    'is refused as busy when the store hangs after %i ms, near the end of the wait',
    async (at) => {
      const { outcome, millis } = await answerTo(ledger, requestOf(1n, key), freezesAt(at));
      expect(outcome).toBe('busy');
      expect(millis).toBeLessThanOrEqual(1300);
      // The last question takes nothing, whenever the store runs it.
      scene.store.behaviour = 'up';
      await scene.time.advance(100);
      expect(await ledger.spend([key])).toMatchObject({ value: [{ spent: 0n }] });
    },
  );

  test('is refused as busy by a distant store too', async () => {
    scene.store.part = slow(scene.store.part, () => 200);
    const { outcome, millis } = await answerTo(ledger, requestOf(1n, key));
    expect(outcome).toBe('busy');
    expect(millis).toBeLessThanOrEqual(1600);
  });

  test('takes what they leave, also with its last question', async () => {
    const other = scopeOf('other', 100n);
    const first = heldOf((await ended(ledger.hold(requestOf(100n, other)))).value);
    scene.store.part = slow(scene.store.part, () => 100);
    const { outcome } = await answerTo(ledger, requestOf(60n, other), {
      850: () => void ledger.settle(first, settlementOf(40n)),
    });
    expect(outcome).toBe('held');
  });
});

describe('a process that was paused', () => {
  test('reads the answers that arrived meanwhile before its timeouts count', async () => {
    let isFrozen = false;
    const ledger = await start({ ...IMMORTAL, isFrozen: () => isFrozen });
    await ended(ledger.hold(requestOf(1n, key)));
    scene.store.part = slow(scene.store.part, () => 20);
    const freeze = () => {
      isFrozen = true;
    };
    const thaw = () => {
      isFrozen = false;
    };
    expect(await answerTo(ledger, requestOf(1n, key), { 10: freeze, 1400: thaw })).toMatchObject({ outcome: 'held' });
  });
});

describe('a call that a store runs late', () => {
  test('takes nothing, also when its process is gone', async () => {
    let isDead = false;
    const liveHolds = () => !isDead;
    const [mortal, other] = [await start({ before: liveHolds, after: liveHolds, isDead: () => isDead }), await start()];
    await ended(other.hold(requestOf(1n, key)));
    scene.store.behaviour = 'hangs';
    const refused = await answerTo(mortal, requestOf(99n, key));
    expect(refused).toEqual({ outcome: 'unavailable', millis: 900 });
    isDead = true;
    scene.store.behaviour = 'up';
    await scene.time.advance(20);
    expect(await answerTo(other, requestOf(99n, key))).toMatchObject({ outcome: 'held' });
  });
});

describe('while the store is rebuilt', () => {
  let epochs: ReturnType<typeof createMemoryEpochs>;
  beforeEach(() => {
    epochs = createMemoryEpochs(scene.time);
    scene.epochs = { part: epochs, behaviour: 'up' };
    scene.store.part = createMemoryStore({ ...scene.time, epoch: 0 });
  });
  const wipe = (): void => {
    scene.store.part = createMemoryStore({ ...scene.time, epoch: 0 });
  };

  test('a request waits up to two seconds, and gets its hold after the rebuild', async () => {
    const ledger = await start();
    await ended(ledger.hold(requestOf(1n, key)));
    wipe();
    scene.epochs = { part: epochs, behaviour: 'up' };
    let pace = 300;
    scene.store.part = slow(scene.store.part, () => pace);
    const { outcome, millis } = await answerTo(ledger, requestOf(1n, key), {
      1200: () => {
        pace = 10;
      },
    });
    expect(outcome).toBe('held');
    expect(millis).toBeGreaterThan(900);
    expect(millis).toBeLessThan(1800);
  });

  test('and the database hangs, a request is refused within two seconds', async () => {
    const ledger = await start();
    await ended(ledger.hold(requestOf(1n, key)));
    wipe();
    if (scene.epochs !== undefined) scene.epochs.behaviour = 'hangs';
    scene.books.behaviour = 'hangs';
    const { outcome, millis } = await answerTo(ledger, requestOf(1n, key));
    expect(outcome).toBe('unavailable');
    expect(millis).toBeLessThanOrEqual(1800);
    // The next request does not wait for it again.
    await scene.time.advance(500);
    expect(await answerTo(ledger, requestOf(1n, key))).toMatchObject({ outcome: 'unavailable', millis: 0 });
  });

  test('only: with a shared store that hangs without forgetting, a request is refused within one second', async () => {
    const ledger = await start();
    await ended(ledger.hold(requestOf(1n, key)));
    scene.store.behaviour = 'hangs';
    expect(await answerTo(ledger, requestOf(1n, key))).toEqual({ outcome: 'unavailable', millis: 900 });
  });

  test('a request that arrives after the rebuild has one second like any other', async () => {
    const ledger = await start();
    await ended(ledger.hold(requestOf(1n, key)));
    wipe();
    expect(await answerTo(ledger, requestOf(1n, key))).toMatchObject({ outcome: 'held' });
    scene.store.behaviour = 'hangs';
    expect(await answerTo(ledger, requestOf(1n, key))).toEqual({ outcome: 'unavailable', millis: 900 });
  });
});
