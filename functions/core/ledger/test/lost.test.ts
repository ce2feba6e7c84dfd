import { beforeEach, describe, expect, test } from 'vitest';
import { createProcess } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const SECOND = 1000;
const key = scopeOf('key', 100n);
let scenario: Scenario;

beforeEach(() => {
  scenario = createScenario();
});

/** A stream that has cost 10 of its reservation of 100, and the times at which it was ended. */
async function streaming() {
  const sleeper = createProcess();
  const ledger = await scenario.start(sleeper);
  const reservation = await scenario.take(ledger, 100n, key);
  const endedAt: number[] = [];
  ledger.trackStream(
    reservation,
    () => 10n,
    () => void endedAt.push(scenario.time.clock.now()),
  );
  await scenario.time.advance(3 * SECOND);
  return { ledger, reservation, endedAt, sleeper };
}

describe('a stream whose account another process has closed is ended', () => {
  test('once: others may hold the money, and the stream spends no more', async () => {
    const other = await scenario.start();
    const { ledger, reservation, endedAt, sleeper } = await streaming();
    sleeper.is.frozen = true;
    await scenario.time.advance(25 * SECOND);
    await other.settle(await scenario.take(other, 90n, key), settlementOf(90n));
    sleeper.is.frozen = false;
    await scenario.time.advance(3 * SECOND);
    expect(endedAt).toHaveLength(1);
    await ledger.settle(reservation, settlementOf(10n));
    await scenario.time.advance(3 * SECOND);
    expect(await scenario.spent(ledger, key)).toBe(100n);
    expect(endedAt).toHaveLength(1);
  });
});

describe('a stream continues', () => {
  test('for minutes, and while the store is away', async () => {
    const { endedAt } = await streaming();
    await scenario.time.advance(300 * SECOND);
    scenario.store.behaviour = 'refuses';
    await scenario.time.advance(15 * SECOND);
    scenario.store.behaviour = 'up';
    await scenario.time.advance(60 * SECOND);
    expect(endedAt).toEqual([]);
  });

  test('when a store comes back empty: its reservation is registered again', async () => {
    const { ledger, endedAt } = await streaming();
    scenario.store.behaviour = 'refuses';
    await scenario.time.advance(15 * SECOND);
    scenario.wipe();
    scenario.store.behaviour = 'up';
    await scenario.time.advance(10 * SECOND);
    expect(endedAt).toEqual([]);
    expect(await scenario.tryReservation(ledger, requestOf(1n, key))).toMatchObject({ outcome: 'held' });
  });

  test('to its end: after it has settled it is not ended', async () => {
    await scenario.start();
    const { ledger, reservation, endedAt, sleeper } = await streaming();
    await ledger.settle(reservation, settlementOf(20n));
    sleeper.is.frozen = true;
    await scenario.time.advance(25 * SECOND);
    sleeper.is.frozen = false;
    await scenario.time.advance(3 * SECOND);
    expect(endedAt).toEqual([]);
  });
});
