import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import type { Nano } from '../../ports/money.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

let scenario: Scenario;
let ledger: StartableLedger;
let process: ReturnType<typeof createProcess>;

beforeEach(async () => {
  scenario = createScenario();
  process = createProcess();
  ledger = await scenario.start(process, scenario.folder);
});

async function grow(reservation: Reservation, by: Nano, of = ledger) {
  const { value, millis } = await scenario.ended(of.grow(reservation, by));
  return { outcome: value.ok ? 'grown' : value.failure.reason, value, millis };
}

/** Escrow in the store, of all accounts. */
async function heldIn({ scopeWindows }: Reservation): Promise<ReadonlyArray<Nano | undefined>> {
  return (await scenario.store.part.read(scopeWindows)).map((one) => one?.escrowOfAll);
}

const booked = () => scenario.ledgerRows.all().map(({ kind, cost }) => ({ kind, cost }));

/** Kills the process; its successor reads the disk. */
async function restart(): Promise<StartableLedger> {
  process.is.dead = true;
  const next = await scenario.start(createProcess(), scenario.folder);
  await scenario.time.advance(1000);
  return next;
}

describe('a reservation grows', () => {
  test('by the whole amount in all of its scopes, and that may be spent', async () => {
    const [key, team, open] = [scopeOf('key', 100n), scopeOf('team', 90n, { kind: 'team' }), scopeOf('open')];
    const reservation = await scenario.take(ledger, 60n, key, team, open);
    expect(await grow(reservation, 30n)).toMatchObject({ outcome: 'grown' });
    expect(reservation.amount).toBe(90n);
    expect(await heldIn(reservation)).toEqual([90n, 90n, 0n]);
    await scenario.ended(ledger.settle(reservation, settlementOf(90n)));
    await scenario.time.advance(500);
    expect(scenario.counted.get('gateway_operator_ledger_overruns_total')).toBe(0);
    expect(booked()).toEqual([{ kind: 'settled', cost: 90n }]);
  });

  test('never above a limit, in none of its scopes: all or none', async () => {
    const [key, team] = [scopeOf('key', 100n), scopeOf('team', 80n, { kind: 'team' })];
    const reservation = await scenario.take(ledger, 60n, key, team);
    const { value } = await grow(reservation, 21n);
    expect(value).toMatchObject({ ok: false, failure: { reason: 'held', scope: { scopeId: 'team' } } });
    expect(reservation.amount).toBe(60n);
    await scenario.time.advance(2000);
    expect(await heldIn(reservation)).toEqual([60n, 60n]);
    expect(await grow(reservation, 20n)).toMatchObject({ outcome: 'grown' });
  });

  test('not where spend has taken what is left', async () => {
    const key = scopeOf('key', 100n);
    const reservation = await scenario.take(ledger, 60n, key);
    await scenario.ended(ledger.settle(await scenario.take(ledger, 30n, key), settlementOf(31n)));
    const { value } = await grow(reservation, 71n);
    expect(value).toMatchObject({ ok: false, failure: { reason: 'exceeded', spent: 31n, limit: 100n } });
  });

  test('without waiting for others, whose reservations it is refused for immediately', async () => {
    const key = scopeOf('key', 100n);
    const reservation = await scenario.take(ledger, 60n, key);
    await scenario.take(await scenario.start(), 30n, key);
    expect(await grow(reservation, 20n)).toMatchObject({ outcome: 'held', millis: expect.closeTo(0, -1) });
  });

  test('before requests that wait in line', async () => {
    const key = scopeOf('key', 100n);
    const reservation = await scenario.take(ledger, 60n, key);
    const waiting = ledger.reserve(requestOf(50n, key));
    await scenario.time.advance(100);
    expect(await grow(reservation, 40n)).toMatchObject({ outcome: 'grown', millis: expect.closeTo(0, -1) });
    expect((await scenario.ended(waiting)).value).toMatchObject({ failure: { reason: 'held' } });
  });

  test('in memory where the escrow that is at hand suffices', async () => {
    const key = scopeOf('key', 100_000n);
    await scenario.ended(ledger.release(await scenario.take(ledger, 100n, key)));
    const reservation = await scenario.take(ledger, 100n, key);
    await scenario.time.advance(300);
    const asks = () => scenario.calls.reduce((sum, call) => sum + call.requests.length, 0);
    const before = asks();
    expect(await grow(reservation, 10n)).toMatchObject({ outcome: 'grown' });
    expect(asks()).toBe(before);
    await scenario.time.advance(2000);
    await scenario.ended(ledger.release(reservation));
    await scenario.time.advance(3000);
    expect(await heldIn(reservation)).toEqual([0n]);
  });

  test('not where a limit has fallen below it meanwhile', async () => {
    const reservation = await scenario.take(ledger, 60n, scopeOf('key', 1000n));
    await scenario.time.advance(300);
    await scenario.tryReservation(ledger, requestOf(1n, scopeOf('key', 65n)));
    expect(await grow(reservation, 10n)).toMatchObject({ outcome: 'held' });
  });

  test('not by nothing where it is free, and not after its end', async () => {
    const key = scopeOf('key', 100n);
    const [free, ended] = [await scenario.take(ledger, 0n, key), await scenario.take(ledger, 10n, key)];
    await scenario.take(ledger, 90n, key);
    expect(await grow(free, 0n)).toMatchObject({ outcome: 'grown' });
    await scenario.ended(ledger.release(ended));
    expect(await grow(ended, 1n)).toMatchObject({ outcome: 'unavailable' });
    await scenario.time.advance(2000);
    expect(await heldIn(ended)).toEqual([90n]);
  });

  test('in the window that it was made in, also when that is over', async () => {
    const month = 30 * 86_400_000;
    const key = scopeOf('key', 100n, { anchor: scenario.time.clock.now() + 400 - month });
    const reservation = await scenario.take(ledger, 60n, key);
    await scenario.time.advance(3000);
    const next = await scenario.take(ledger, 70n, key);
    expect(await grow(reservation, 41n)).toMatchObject({ outcome: 'held' });
    expect(await grow(reservation, 40n)).toMatchObject({ outcome: 'grown' });
    expect([await heldIn(reservation), await heldIn(next)]).toEqual([[100n], [70n]]);
    await scenario.ended(ledger.settle(reservation, settlementOf(95n)));
    await scenario.time.advance(3000);
    expect(await heldIn(reservation)).toEqual([0n]);
  });

  test('not where it ends meanwhile: what the store grants goes back', async () => {
    const key = scopeOf('key', 100n);
    const reservation = await scenario.take(ledger, 60n, key);
    await scenario.time.advance(3000);
    const growing = grow(reservation, 30n);
    const settled = ledger.settle(reservation, settlementOf(5n));
    expect(await growing).toMatchObject({ outcome: 'unavailable' });
    await scenario.ended(settled);
    await scenario.time.advance(3000);
    expect(await heldIn(reservation)).toEqual([0n]);
    expect(booked()).toEqual([{ kind: 'settled', cost: 5n }]);
  });

  test('not while the store is silent: refused in time, and what it grants later goes back', async () => {
    const key = scopeOf('key', 100n);
    const reservation = await scenario.take(ledger, 60n, key);
    await scenario.time.advance(3000);
    scenario.store.behaviour = 'hangs';
    const refused = await grow(reservation, 30n);
    expect(refused).toMatchObject({ outcome: 'unavailable', millis: 900 });
    scenario.store.behaviour = 'up';
    await scenario.time.advance(5000);
    expect([reservation.amount, await heldIn(reservation)]).toEqual([60n, [60n]]);
  });

  test('not when the ledger stops', async () => {
    const reservation = await scenario.take(ledger, 60n, scopeOf('key', 100n));
    const closing = ledger.close();
    expect((await ledger.grow(reservation, 1n)).ok).toBe(false);
    await scenario.ended(closing);
  });

  test('and is held whole again in a store that was wiped', async () => {
    const reservation = await scenario.take(ledger, 60n, scopeOf('key', 100n));
    await grow(reservation, 30n);
    scenario.wipe();
    await scenario.time.advance(5000);
    const key = scopeOf('key', 100n);
    expect((await scenario.tryReservation(ledger, requestOf(11n, key))).outcome).toBe('held');
    expect((await scenario.tryReservation(ledger, requestOf(10n, key))).outcome).toBe('reserved');
  });
});

describe('a reservation that has grown is charged', () => {
  const key = scopeOf('key', 100n);
  const spentOf = async (of: StartableLedger, scope: ScopePolicy) => scenario.spent(of, scope);

  test('at its whole size when its process dies: the journal has the growth before it counts', async () => {
    const reservation = await scenario.take(ledger, 60n, key);
    await grow(reservation, 30n);
    expect(await spentOf(await restart(), key)).toBe(90n);
    expect(booked()).toContainEqual({ kind: 'settled', cost: 90n });
  });

  test('at its size before, when its process dies before the journal has the growth', async () => {
    const reservation = await scenario.take(ledger, 60n, key);
    scenario.journal.behaviour = 'hangs';
    let isGrown = false;
    void ledger.grow(reservation, 30n).then(() => (isGrown = true));
    await scenario.time.advance(500);
    expect(isGrown).toBe(false);
    process.is.dead = true;
    scenario.journal.behaviour = 'up';
    expect(await spentOf(await restart(), key)).toBe(60n);
  });

  test('at its whole size, in whichever order a folder has its records', async () => {
    await grow(await scenario.take(ledger, 60n, key), 30n);
    scenario.folder.records.reverse();
    expect(await spentOf(await restart(), key)).toBe(90n);
  });

  test('at what it has streamed since, where that is known', async () => {
    const reservation = await scenario.take(ledger, 60n, key);
    await grow(reservation, 30n);
    ledger.trackStream(reservation, () => 35n);
    await scenario.time.advance(1500);
    expect(await spentOf(await restart(), key)).toBe(35n);
  });

  test('at its whole size when process and disk are gone', async () => {
    const reservation = await scenario.take(ledger, 60n, key);
    await grow(reservation, 30n);
    await scenario.time.advance(1000);
    process.is.dead = true;
    const other = await scenario.start();
    await scenario.time.advance(30_000);
    expect(await spentOf(other, key)).toBe(90n);
    expect(booked()).toEqual([{ kind: 'expired', cost: 90n }]);
  });

  test('nothing where it is released, whatever died after that', async () => {
    const reservation = await scenario.take(ledger, 60n, key);
    await grow(reservation, 30n);
    await scenario.ended(ledger.release(reservation));
    expect(await spentOf(await restart(), key)).toBe(0n);
  });
});
