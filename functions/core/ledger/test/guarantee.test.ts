import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, slow } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 1_000_000n);
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start();
});

/** The time from the settlement to the reply's last byte. */
const settle = async (reservation: Reservation, cost: bigint, one = ledger): Promise<number> =>
  (await scenario.ended(one.settle(reservation, settlementOf(cost)))).millis;

describe('a reply ends', () => {
  test('immediately where the store knows its reservation', async () => {
    const reservation = await scenario.take(ledger, 100n, key);
    scenario.store.behaviour = 'hangs';
    expect(await settle(reservation, 90n)).toBe(0);
  });

  test('immediately where the reservation was admitted in memory, and the store has been told of it since', async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      await settle(await scenario.take(ledger, 100n, key), 100n);
      await scenario.time.advance(30);
    }
    scenario.store.part = slow(scenario.store.part, scenario.time, () => 20);
    const reservation = await scenario.take(ledger, 100n, key);
    await scenario.time.advance(60);
    expect(await settle(reservation, 90n)).toBe(0);
  });

  test('only when a call has told what no risk in the store covers', async () => {
    const reservation = await scenario.take(ledger, 100n, key);
    scenario.store.part = slow(scenario.store.part, scenario.time, () => 200);
    const millis = await settle(reservation, 150n);
    expect(millis).toBeGreaterThanOrEqual(200);
    expect(millis).toBeLessThanOrEqual(250);
  });

  test('after 2 s where the store is silent', async () => {
    const reservation = await scenario.take(ledger, 100n, key);
    scenario.store.behaviour = 'hangs';
    expect(await settle(reservation, 150n)).toBe(2000);
  });

  test('of a stream with what it produced since its last second told later', async () => {
    const reservation = await scenario.take(ledger, 100n, key);
    ledger.trackStream(reservation, () => 10n);
    await scenario.time.advance(2000);
    scenario.store.behaviour = 'hangs';
    expect(await settle(reservation, 90n)).toBe(0);
  });
});

test('one risk covers one reply: the second of two waits for the report to the store', async () => {
  const [first, second] = [await scenario.take(ledger, 100n, key), await scenario.take(ledger, 10n, key)];
  scenario.store.part = slow(scenario.store.part, scenario.time, () => 200);
  expect(await settle(first, 100n)).toBe(0);
  expect(await settle(second, 40n)).toBeGreaterThan(0);
});

describe('process and disk are lost together: what was charged covers every completed reply', () => {
  test.each([0, 1, 5, 10, 24, 25, 26, 50, 100, 150, 300])('%i ms after the last of many replies', async (after) => {
    const process = createProcess();
    const [mortal, other] = [await scenario.start(process), ledger];
    let completed = 0n;
    scenario.store.part = slow(scenario.store.part, scenario.time, () => 8);
    for (let turn = 0; turn < 30; turn += 1) {
      const cost = BigInt(50 + ((turn * 37) % 60));
      void mortal.reserve(requestOf(100n, key)).then(async (held) => {
        if (!held.ok) return;
        await new Promise<void>((resolve) => scenario.time.timer(turn % 7, resolve));
        if (process.is.dead) return;
        await mortal.settle(held.value, settlementOf(cost));
        completed += cost;
      });
      await scenario.time.advance(4);
    }
    await scenario.time.advance(after);
    process.is.dead = true;
    const owed = completed;
    await scenario.time.advance(25_000);
    const booked = scenario.ledgerRows.all().reduce((sum, { cost }) => sum + cost, 0n);
    expect(booked).toBeGreaterThanOrEqual(owed);
    expect(await scenario.spent(other, key)).toBe(booked);
  });
});
