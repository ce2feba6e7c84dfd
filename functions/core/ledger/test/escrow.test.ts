import { beforeEach, describe, expect, test } from 'vitest';
import type { Nano } from '../../ports/money.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import {
  createScene,
  heldOf,
  outcome,
  requestOf,
  type Scene,
  scopeOf,
  settlementOf,
  slow,
} from './scenario.promises.ts';

const [key, team] = [scopeOf('key', 1_000_000n), scopeOf('team', 2_000_000n, { kind: 'team' })];
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = await scene.start();
});

/** Requests of this size, one after the other, so that there is escrow for the next second. */
async function warm(size: Nano = 100n, scopes: ReadonlyArray<ScopePolicy> = [key]): Promise<void> {
  for (let turn = 0; turn < 40; turn += 1) {
    await ledger.settle(await scene.take(ledger, size, ...scopes), settlementOf(size));
    await scene.time.advance(30);
  }
}

const now = async (amount: Nano, ...scopes: ReadonlyArray<ScopePolicy>): Promise<string> => {
  let found = 'waits';
  void ledger.reserve(requestOf(amount, ...scopes)).then((result) => {
    found = outcome(result);
  });
  await scene.time.settle();
  return found;
};
const figures = async (scope: ScopePolicy = key) => {
  const { scopeWindows } = await scene.take(ledger, 0n, scope);
  const [shown] = await scene.store.part.read(scopeWindows);
  return shown ?? { spent: 0n, reserved: 0n };
};

describe('a request is admitted in memory', () => {
  test('where the escrow of all its counters covers it: the store is not in its way', async () => {
    await warm(100n, [key, team]);
    scene.store.behaviour = 'hangs';
    expect(await now(100n, key, team)).toBe('reserved');
    expect(await now(100n, team)).toBe('reserved');
  });

  test('and hundreds of requests that follow share a few calls', async () => {
    await warm();
    scene.calls.length = 0;
    for (let turn = 0; turn < 100; turn += 1) {
      heldOf(await ledger.reserve(requestOf(1n, key)));
      await scene.time.advance(1);
    }
    expect(scene.calls.length).toBeLessThanOrEqual(8);
  });

  test('only where one counter covers it and another does not: it asks for all of them', async () => {
    await warm();
    scene.store.behaviour = 'hangs';
    expect(await now(100n, key)).toBe('reserved');
    expect(await now(100n, key, team)).toBe('waits');
  });

  test('not when the last answered call was sent a second ago', async () => {
    await warm();
    scene.store.behaviour = 'hangs';
    await scene.time.advance(1000);
    expect(await now(100n, key)).toBe('waits');
  });

  test('not after the process slept, and again as soon as the store has answered', async () => {
    await warm();
    scene.store.behaviour = 'hangs';
    await scene.time.jump(5000);
    expect(await now(100n, key)).toBe('waits');
    scene.store.behaviour = 'up';
    await scene.time.advance(300);
    scene.store.behaviour = 'hangs';
    expect(await now(100n, key)).toBe('reserved');
  });

  test('not where its limit is lower than the one that the escrow was got under', async () => {
    await warm();
    scene.store.behaviour = 'hangs';
    expect(await now(100n, scopeOf('key', 500_000n))).toBe('waits');
  });

  test('and a limit that falls while its call is under way is asked again under the new one', async () => {
    await scene.take(ledger, 0n, key);
    scene.store.part = slow(scene.store.part, scene.time, () => 100);
    const first = ledger.reserve(requestOf(900_000n, key));
    await scene.time.advance(50);
    const second = ledger.reserve(requestOf(10n, scopeOf('key', 500_000n)));
    await scene.time.advance(600);
    expect([outcome(await first), outcome(await second)]).toEqual(['exceeded', 'reserved']);
  });

  test('never by escrow that was got while the limit was higher', async () => {
    const [high, low] = [scopeOf('key', 2000n), scopeOf('key', 1500n)];
    const other = await scene.start();
    await scene.take(other, 1400n, high);
    const hold = await scene.take(ledger, 600n, high);
    expect((await scene.tryHold(ledger, requestOf(1n, low))).outcome).toBe('busy');
    await ledger.settle(hold, settlementOf(1n));
    expect((await scene.tryHold(ledger, requestOf(500n, low))).outcome).toBe('busy');
    expect((await scene.tryHold(ledger, requestOf(99n, low))).outcome).toBe('reserved');
  });
});

describe('escrow', () => {
  test('is at most a sixteenth of what is left', async () => {
    for (let turn = 0; turn < 40; turn += 1) {
      await scene.take(ledger, 10_000n, key);
      await scene.time.advance(10);
    }
    await scene.time.advance(30);
    const { spent, reserved } = await figures();
    expect(spent).toBe(0n);
    expect((reserved - 400_000n) * 16n).toBeLessThanOrEqual(1_000_000n - 400_000n);
    expect(reserved).toBeGreaterThan(400_000n);
  });

  test('is none near the limit: a request asks for exactly its hold', async () => {
    const small = scopeOf('small', 1000n);
    for (let turn = 0; turn < 9; turn += 1) {
      await ledger.settle(await scene.take(ledger, 100n, small), settlementOf(100n));
      await scene.time.advance(30);
    }
    await scene.time.advance(30);
    expect(await figures(small)).toEqual({ spent: 900n, reserved: 0n });
  });

  test.each([0, 130, 260, 390, 520, 650, 780, 910])(
    'goes back within a second when no request follows, wherever in a second that begins (%i ms)',
    async (later) => {
      await scene.time.advance(later);
      await warm();
      const { scopeWindows } = await scene.take(ledger, 100n, key);
      const held = async () => (await scene.store.part.read(scopeWindows))[0]?.reserved;
      expect(await held()).toBeGreaterThan(100n);
      await scene.time.advance(1000);
      expect(await held()).toBe(100n);
    },
  );

  test('of a settled hold goes back where little is left, and another process gets it', async () => {
    const small = scopeOf('small', 100n);
    const other = await scene.start();
    await ledger.settle(await scene.take(ledger, 90n, small), settlementOf(1n));
    await scene.time.advance(50);
    expect(await scene.tryHold(other, requestOf(99n, small))).toMatchObject({ outcome: 'reserved' });
  });

  test('of one process refuses no other: it goes back where another waits', async () => {
    const other = await scene.start();
    await warm();
    const { reserved } = await figures();
    expect(reserved).toBeGreaterThan(0n);
    const rest = 1_000_000n - (await figures()).spent;
    const { outcome: came, millis } = await scene.tryHold(other, requestOf(rest, key));
    expect(came).toBe('reserved');
    expect(millis).toBeLessThanOrEqual(400);
  });

  test('that a request no longer waits for goes back at once', async () => {
    const small = scopeOf('small', 100n);
    const other = await scene.start();
    await scene.take(ledger, 0n, small);
    scene.store.behaviour = 'hangs';
    expect(await scene.tryHold(ledger, requestOf(90n, small))).toMatchObject({ outcome: 'unavailable' });
    scene.store.behaviour = 'up';
    await scene.time.advance(200);
    expect((await scene.tryHold(other, requestOf(90n, small))).outcome).toBe('reserved');
  });

  test('of a window that is over goes back', async () => {
    const edge = Date.UTC(2026, 0, 1) + 30 * 86_400_000;
    await scene.time.jump(edge - scene.time.clock.now() - 1500);
    await warm();
    const before = { scopeId: 'key', window: { start: Date.UTC(2026, 0, 1), end: edge } };
    await scene.time.advance(1500);
    expect((await scene.store.part.read([before]))[0]?.reserved).toBe(0n);
  });
});

test('a free request is admitted while spend is below the limit, and asks for nothing', async () => {
  await warm();
  scene.store.behaviour = 'hangs';
  expect(await now(0n, key)).toBe('reserved');
});

test('two processes never hold more than the limit together, down to the last cent', async () => {
  const small = scopeOf('small', 1000n);
  const other = await scene.start();
  let held = 0n;
  for (let turn = 0; turn < 300; turn += 1) {
    for (const one of [ledger, other]) {
      void one.reserve(requestOf(7n, small)).then((result) => {
        if (result.ok) held += result.value.amount;
      });
    }
    await scene.time.advance(3);
    expect(held).toBeLessThanOrEqual(1000n);
  }
  await scene.time.advance(2000);
  expect(held).toBe(994n);
});
