import { beforeEach, describe, expect, test } from 'vitest';
import type { ReservationParams } from '../../ports/ledger.ts';
import type { StartableLedger } from '../ledger.ts';
import { slow } from './processes.fixture.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const team = scopeOf('team', 1_000_000n, { kind: 'team' });
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  const other = await scenario.start();
  ledger = await scenario.start();
  // Reservations of another process leave nothing in the budget of the Team.
  await scenario.take(other, 1_000_000n, team);
  scenario.store.part = slow(scenario.store.part, scenario.time, () => 5);
});

/** A request with 15 counters of its own. Each asks for less than the previous one, so that all of them call again. */
function crowdedRequest(index: number): ReservationParams {
  const own = Array.from({ length: 15 }, (_, at) => scopeOf(`crowd-${index}-${at}`, 1_000_000n));
  return { ...requestOf(BigInt(100_000 - index), ...own, team), namespace: 'crowd' };
}

async function crowd(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) void ledger.reserve(crowdedRequest(index));
  await scenario.time.advance(300);
}

describe('while hundreds of requests of one namespace wait for a budget', () => {
  test('a request of another namespace is in one of the next calls', async () => {
    await crowd(400);
    const request = { ...requestOf(5n, scopeOf('key', 100n)), namespace: 'other' };
    const { outcome, millis } = await scenario.tryReservation(ledger, request);
    expect(outcome).toBe('reserved');
    // The pending call, one that finds the counter absent, its loading, and one that reserves.
    expect(millis).toBeLessThanOrEqual(50);
  });

  test('the cost of another request is reported with one of the next calls', async () => {
    const key = scopeOf('key', 100n);
    const reservation = heldOf((await scenario.ended(ledger.reserve(requestOf(5n, key)))).value);
    await crowd(400);
    scenario.calls.length = 0;
    // More than was reserved, so that the reply waits until the cost is reported.
    const { millis } = await scenario.ended(ledger.settle(reservation, settlementOf(50n)));
    expect(millis).toBeLessThanOrEqual(50);
    expect(
      scenario.calls.some(({ changes }) => changes.some(({ scopeId, spend }) => scopeId === 'key' && spend === 50n)),
    ).toBe(true);
  });

  test('requests have the room that reports leave', async () => {
    await crowd(400);
    scenario.calls.length = 0;
    await scenario.time.advance(200);
    const full = scenario.calls.filter(({ requests }) => requests.length > 1);
    expect(full.length).toBeGreaterThan(5);
    // 15 requests with 15 counters of their own and one that they share.
    expect(Math.max(...full.map(({ requests }) => requests.length))).toBeGreaterThanOrEqual(15);
  });
});

test('a request with a new counter is admitted, although more requests than a call can have wait all the time', async () => {
  const shared = scopeOf('shared', 1_000_000_000n);
  let isFlooding = true;
  const flood = async (): Promise<void> => {
    while (isFlooding)
      await ledger.reserve({
        ...requestOf(1000n, shared),
        tokens: 1,
        namespace: 'flood',
        modelEntryLimits: [undefined],
      });
  };
  for (let client = 0; client < 130; client += 1) void flood();
  await scenario.time.advance(100);
  const request = { ...requestOf(5n, scopeOf('new', 100n)), namespace: 'new' };
  const { outcome, millis } = await scenario.tryReservation(ledger, request);
  isFlooding = false;
  expect(outcome).toBe('reserved');
  expect(millis).toBeLessThanOrEqual(60);
  await scenario.time.advance(100);
});
