import { beforeEach, describe, expect, test } from 'vitest';
import { MAX_COUNTERS, MAX_REQUESTS } from '../../ports/counter-store.ts';
import type { StartableLedger } from '../ledger.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start();
});

const maxChanges = (): number => Math.max(...scenario.calls.map(({ changes }) => changes.length));

describe('two thousand counters in a tick', () => {
  const team = scopeOf('team', 1_000_000n, { kind: 'team' });
  const keys = Array.from({ length: 2000 }, (_, index) => scopeOf(`key-${index}`, 1000n));

  test('are split into calls of at most 256, and every request keeps all its counters', async () => {
    const held = await scenario.ended(Promise.all(keys.map((key) => ledger.reserve(requestOf(10n, key, team)))));
    expect(held.value.every(({ ok }) => ok)).toBe(true);
    await scenario.time.advance(200);
    for (const result of held.value) void ledger.settle(heldOf(result), settlementOf(7n));
    await scenario.time.advance(2000);
    expect(maxChanges()).toBeLessThanOrEqual(MAX_COUNTERS);
    expect(Math.max(...scenario.calls.map(({ requests }) => requests.length))).toBeLessThanOrEqual(MAX_REQUESTS);
    expect(scenario.ledgerRows.all()).toHaveLength(2000);
    expect(await scenario.spent(ledger, team)).toBe(14_000n);
    for (const key of [0, 999, 1999]) expect(await scenario.spent(ledger, keys[key] ?? team)).toBe(7n);
  });

  test('each ask names its counters once, where many share them', async () => {
    await scenario.ended(Promise.all(keys.slice(0, 60).map((key) => ledger.reserve(requestOf(10n, key, team)))));
    for (const { changes } of scenario.calls) {
      const names = changes.map(({ scopeId, window }) => `${scopeId} ${window.start}`);
      expect(new Set(names).size).toBe(names.length);
    }
  });
});

describe('a process without requests', () => {
  test('renews its lease rarely, and tells nothing', async () => {
    scenario.calls.length = 0;
    await scenario.time.advance(60_000);
    expect(scenario.calls.length).toBeLessThanOrEqual(35);
    expect(scenario.calls.length).toBeGreaterThanOrEqual(6);
    expect(maxChanges()).toBe(0);
  });

  test('forgets counters that nothing is in: memory does not grow with the keys that were served', async () => {
    for (let index = 0; index < 300; index += 1) {
      const held = await scenario.take(ledger, 10n, scopeOf(`key-${index}`, 1000n));
      await ledger.settle(held, settlementOf(1n));
    }
    await scenario.time.advance(20_000);
    scenario.wipe();
    scenario.calls.length = 0;
    await scenario.time.advance(3000);
    expect(scenario.calls.flatMap(({ changes }) => changes)).toEqual([]);
  });
});

test('a counter that is forgotten while a free request runs is one and the same afterwards', async () => {
  const key = scopeOf('key', 1000n);
  const free = await scenario.take(ledger, 0n, key);
  await scenario.time.advance(60_000);
  const paid = await scenario.take(ledger, 900n, key);
  await ledger.settle(free, settlementOf(0n));
  await scenario.time.advance(1000);
  expect((await scenario.tryReservation(ledger, requestOf(101n, key))).outcome).toBe('held');
  await ledger.settle(paid, settlementOf(900n));
  await scenario.time.advance(1000);
  expect(await scenario.spent(ledger, key)).toBe(900n);
});
