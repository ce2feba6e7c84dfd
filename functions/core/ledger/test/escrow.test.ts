import { beforeEach, describe, expect, test } from 'vitest';
import type { Nano } from '../../ports/money.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import { slow } from './processes.fixture.ts';
import {
  createScenario,
  heldOf,
  outcome,
  requestOf,
  type Scenario,
  scopeOf,
  settlementOf,
} from './scenario.promises.ts';

const [key, team] = [scopeOf('key', 1_000_000n), scopeOf('team', 2_000_000n, { kind: 'team' })];
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start();
});

/** Requests of this size, one after the other, so that there is escrow for the next second. */
async function warm(size: Nano = 100n, scopes: ReadonlyArray<ScopePolicy> = [key]): Promise<void> {
  for (let turn = 0; turn < 40; turn += 1) {
    await ledger.settle(await scenario.take(ledger, size, ...scopes), settlementOf(size));
    await scenario.time.advance(30);
  }
}

const now = async (amount: Nano, ...scopes: ReadonlyArray<ScopePolicy>): Promise<string> => {
  let found = 'waits';
  void ledger.reserve(requestOf(amount, ...scopes)).then((result) => {
    found = outcome(result);
  });
  await scenario.time.settle();
  return found;
};
const figures = async (scope: ScopePolicy = key) => {
  const { scopeWindows } = await scenario.take(ledger, 0n, scope);
  const [shown] = await scenario.store.part.read(scopeWindows);
  return shown ?? { spent: 0n, escrowOfAll: 0n };
};

describe('a request is admitted in memory', () => {
  test('where the escrow of all its counters covers it: the store is not in its way', async () => {
    await warm(100n, [key, team]);
    scenario.store.behaviour = 'hangs';
    expect(await now(100n, key, team)).toBe('reserved');
    expect(await now(100n, team)).toBe('reserved');
  });

  test('and hundreds of requests that follow share a few calls', async () => {
    await warm();
    scenario.calls.length = 0;
    for (let turn = 0; turn < 100; turn += 1) {
      heldOf(await ledger.reserve(requestOf(1n, key)));
      await scenario.time.advance(1);
    }
    expect(scenario.calls.length).toBeLessThanOrEqual(8);
  });

  test('only where one counter covers it and another does not: it asks for all of them', async () => {
    await warm();
    scenario.store.behaviour = 'hangs';
    expect(await now(100n, key)).toBe('reserved');
    expect(await now(100n, key, team)).toBe('waits');
  });

  test('not when the last answered call was sent a second ago', async () => {
    await warm();
    scenario.store.behaviour = 'hangs';
    await scenario.time.advance(1000);
    expect(await now(100n, key)).toBe('waits');
  });

  test('not after the process slept, and again as soon as the store has answered', async () => {
    await warm();
    scenario.store.behaviour = 'hangs';
    await scenario.time.jump(5000);
    expect(await now(100n, key)).toBe('waits');
    scenario.store.behaviour = 'up';
    await scenario.time.advance(300);
    scenario.store.behaviour = 'hangs';
    expect(await now(100n, key)).toBe('reserved');
  });

  test('not where its limit is lower than the one that the escrow was got under', async () => {
    await warm();
    scenario.store.behaviour = 'hangs';
    expect(await now(100n, scopeOf('key', 500_000n))).toBe('waits');
  });

  test('and a limit that falls while its call is under way is asked again under the new one', async () => {
    await scenario.take(ledger, 0n, key);
    scenario.store.part = slow(scenario.store.part, scenario.time, () => 100);
    const first = ledger.reserve(requestOf(900_000n, key));
    await scenario.time.advance(50);
    const second = ledger.reserve(requestOf(10n, scopeOf('key', 500_000n)));
    await scenario.time.advance(600);
    expect([outcome(await first), outcome(await second)]).toEqual(['exceeded', 'reserved']);
  });

  test('never by escrow that was got while the limit was higher', async () => {
    const [high, low] = [scopeOf('key', 2000n), scopeOf('key', 1500n)];
    const other = await scenario.start();
    await scenario.take(other, 1400n, high);
    const reservation = await scenario.take(ledger, 600n, high);
    expect((await scenario.tryReservation(ledger, requestOf(1n, low))).outcome).toBe('held');
    await ledger.settle(reservation, settlementOf(1n));
    expect((await scenario.tryReservation(ledger, requestOf(500n, low))).outcome).toBe('held');
    expect((await scenario.tryReservation(ledger, requestOf(99n, low))).outcome).toBe('reserved');
  });
});

describe('escrow', () => {
  test('is at most a sixteenth of what is left', async () => {
    for (let turn = 0; turn < 40; turn += 1) {
      await scenario.take(ledger, 10_000n, key);
      await scenario.time.advance(10);
    }
    await scenario.time.advance(30);
    const { spent, escrowOfAll } = await figures();
    expect(spent).toBe(0n);
    expect((escrowOfAll - 400_000n) * 16n).toBeLessThanOrEqual(1_000_000n - 400_000n);
    expect(escrowOfAll).toBeGreaterThan(400_000n);
  });

  test('is none near the limit: a request asks for exactly its reservation', async () => {
    const small = scopeOf('small', 1000n);
    for (let turn = 0; turn < 9; turn += 1) {
      await ledger.settle(await scenario.take(ledger, 100n, small), settlementOf(100n));
      await scenario.time.advance(30);
    }
    await scenario.time.advance(30);
    expect(await figures(small)).toEqual({ spent: 900n, escrowOfAll: 0n });
  });

  test.each([0, 130, 260, 390, 520, 650, 780, 910])(
    'goes back within a second when no request follows, wherever in a second that begins (%i ms)',
    async (later) => {
      await scenario.time.advance(later);
      await warm();
      const { scopeWindows } = await scenario.take(ledger, 100n, key);
      const held = async () => (await scenario.store.part.read(scopeWindows))[0]?.escrowOfAll;
      expect(await held()).toBeGreaterThan(100n);
      await scenario.time.advance(1000);
      expect(await held()).toBe(100n);
    },
  );

  test('of a settled reservation goes back where little is left, and another process gets it', async () => {
    const small = scopeOf('small', 100n);
    const other = await scenario.start();
    await ledger.settle(await scenario.take(ledger, 90n, small), settlementOf(1n));
    await scenario.time.advance(50);
    expect(await scenario.tryReservation(other, requestOf(99n, small))).toMatchObject({ outcome: 'reserved' });
  });

  test('of one process refuses no other: it goes back where another waits', async () => {
    const other = await scenario.start();
    await warm();
    const { escrowOfAll } = await figures();
    expect(escrowOfAll).toBeGreaterThan(0n);
    const rest = 1_000_000n - (await figures()).spent;
    const { outcome: came, millis } = await scenario.tryReservation(other, requestOf(rest, key));
    expect(came).toBe('reserved');
    expect(millis).toBeLessThanOrEqual(400);
  });

  test('that a request no longer waits for goes back immediately', async () => {
    const small = scopeOf('small', 100n);
    const other = await scenario.start();
    await scenario.take(ledger, 0n, small);
    scenario.store.behaviour = 'hangs';
    expect(await scenario.tryReservation(ledger, requestOf(90n, small))).toMatchObject({ outcome: 'unavailable' });
    scenario.store.behaviour = 'up';
    await scenario.time.advance(200);
    expect((await scenario.tryReservation(other, requestOf(90n, small))).outcome).toBe('reserved');
  });

  test('of a window that is over goes back', async () => {
    const edge = Date.UTC(2026, 0, 1) + 30 * 86_400_000;
    await scenario.time.jump(edge - scenario.time.clock.now() - 1500);
    await warm();
    const before = { scopeId: 'key', window: { start: Date.UTC(2026, 0, 1), end: edge } };
    await scenario.time.advance(1500);
    expect((await scenario.store.part.read([before]))[0]?.escrowOfAll).toBe(0n);
  });
});

test('a free request is admitted while spend is below the limit, and asks for nothing', async () => {
  await warm();
  scenario.store.behaviour = 'hangs';
  expect(await now(0n, key)).toBe('reserved');
});

test('two processes never hold more than the limit together, down to the last cent', async () => {
  const small = scopeOf('small', 1000n);
  const other = await scenario.start();
  let held = 0n;
  for (let turn = 0; turn < 300; turn += 1) {
    for (const one of [ledger, other]) {
      void one.reserve(requestOf(7n, small)).then((result) => {
        if (result.ok) held += result.value.amount;
      });
    }
    await scenario.time.advance(3);
    expect(held).toBeLessThanOrEqual(1000n);
  }
  await scenario.time.advance(2000);
  expect(held).toBe(994n);
});

describe('a key with one request', () => {
  test('leaves no escrow when that has ended', async () => {
    await ledger.settle(await scenario.take(ledger, 100n, key, team), settlementOf(40n));
    await scenario.time.advance(30);
    expect(await figures()).toEqual({ spent: 40n, escrowOfAll: 0n });
    expect(await figures(team)).toEqual({ spent: 40n, escrowOfAll: 0n });
  });

  test('is named when it reserves and when it has ended, and in no other call', async () => {
    const reservation = await scenario.take(ledger, 100n, key, team);
    scenario.calls.length = 0;
    await scenario.time.advance(5000);
    expect(scenario.calls.flatMap(({ changes }) => changes)).toEqual([]);
    await ledger.settle(reservation, settlementOf(40n));
    await scenario.time.advance(5000);
    expect(scenario.calls.flatMap(({ changes }) => changes.map(({ scopeId }) => scopeId))).toEqual(['key', 'team']);
  });
});
