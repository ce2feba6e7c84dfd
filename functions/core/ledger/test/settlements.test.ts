import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import type { LedgerRow } from '../../ports/ledger-rows.ts';
import type { StartableLedger } from '../ledger.ts';
import { IMMORTAL, slow } from './processes.fixture.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const MINUTE = 60_000;
const key = scopeOf('key', 100n);
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start(IMMORTAL, scenario.folder);
});

const booked = (): Array<Pick<LedgerRow, 'kind' | 'cost'>> =>
  scenario.ledgerRows.all().map(({ kind, cost }) => ({ kind, cost }));
const recordsOfRequests = () => scenario.folder.records.filter(({ type }) => type !== 'account');

describe('a settlement', () => {
  test('is booked soon, with all its fields, and the journal forgets it', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    await ledger.settle(reservation, { ...settlementOf(30n), estimated: true });
    await scenario.time.advance(150);
    const { scopeWindows, id } = reservation;
    const tokens = { input: 1, output: 2, cachedInput: 0, cacheWrite: 0 };
    const fields = { cost: 30n, tokens, model: 'small', identifier: 'small-1', estimated: true };
    expect(scenario.ledgerRows.all()).toEqual([
      { id, kind: 'settled', scopeWindows, ...fields, settledAt: Date.UTC(2026, 0, 10) },
    ]);
    expect(recordsOfRequests()).toEqual([]);
  });

  test('has a time of whole milliseconds, which PostgreSQL demands', async () => {
    await scenario.time.advance(0.3);
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    await ledger.settle(reservation, settlementOf(30n));
    await scenario.time.advance(150);
    expect(scenario.ledgerRows.all()).toMatchObject([{ id: reservation.id, settledAt: Date.UTC(2026, 0, 10) }]);
  });

  test('is booked soon also while calls are under way all the time', async () => {
    const free = scopeOf('free');
    scenario.store.part = slow(scenario.store.part, scenario.time, () => 24);
    for (let turn = 0; turn < 200; turn += 1) {
      void ledger.reserve(requestOf(1n, scopeOf('other', 10_000n))).then((held) => ledger.release(heldOf(held)));
      void ledger.reserve(requestOf(1n, free)).then((held) => ledger.settle(heldOf(held), settlementOf(1n)));
      await scenario.time.advance(5);
    }
    expect(booked().length).toBeGreaterThan(100);
  });

  test('twice is once, and a release after it changes nothing', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    await Promise.all([
      ledger.settle(reservation, settlementOf(30n)),
      ledger.settle(reservation, settlementOf(50n)),
      ledger.release(reservation),
    ]);
    await scenario.time.advance(200);
    await ledger.settle(reservation, settlementOf(50n));
    await ledger.release(reservation);
    await scenario.time.advance(200);
    expect(booked()).toEqual([{ kind: 'settled', cost: 30n }]);
    expect(await scenario.spent(ledger, key)).toBe(30n);
  });

  test('is durable before it resolves: a process that dies right after it books it at its next start', async () => {
    await ledger.settle(heldOf(await ledger.reserve(requestOf(60n, key))), settlementOf(30n));
    expect(recordsOfRequests().map(({ type }) => type)).toEqual(['reserve', 'settle']);
    expect(booked()).toEqual([]);
    await scenario.start(IMMORTAL, scenario.folder);
    await scenario.time.advance(200);
    expect(booked().filter(({ kind }) => kind === 'settled')).toEqual([{ kind: 'settled', cost: 30n }]);
    expect(booked().reduce((sum, { cost }) => sum + cost, 0n)).toBe(30n);
  });

  test('above its reservation is booked in full and counts as an overrun', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    await scenario.ended(ledger.settle(reservation, settlementOf(75n)));
    await scenario.ended(ledger.flush());
    expect(booked()).toEqual([{ kind: 'settled', cost: 75n }]);
    expect(scenario.counted.get('gateway_operator_ledger_overruns_total')).toBe(1);
    expect(await scenario.spent(ledger, key)).toBe(75n);
  });

  test('counts for the very next request', async () => {
    await ledger.settle(heldOf(await ledger.reserve(requestOf(100n, key))), settlementOf(100n));
    expect(await ledger.reserve(requestOf(1n, key))).toMatchObject({ failure: { reason: 'exceeded', spent: 100n } });
  });

  test('below zero is refused as a bug', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    await expect(ledger.settle(reservation, settlementOf(-1n))).rejects.toThrow('-1');
  });

  test('that costs nothing is booked too', async () => {
    await ledger.settle(heldOf(await ledger.reserve(requestOf(0n, key))), settlementOf(0n));
    await scenario.time.advance(200);
    expect(booked()).toEqual([{ kind: 'settled', cost: 0n }]);
  });
});

describe('a release', () => {
  test('frees everything and books nothing', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(100n, key)));
    await ledger.release(reservation);
    await ledger.release(reservation);
    await ledger.settle(reservation, settlementOf(50n));
    expect((await scenario.tryReservation(ledger, requestOf(100n, key))).outcome).toBe('reserved');
    await scenario.ended(ledger.flush());
    expect(booked()).toEqual([]);
  });

  test('leaves nothing of its reservation in the journal', async () => {
    await ledger.release(heldOf(await ledger.reserve(requestOf(100n, key))));
    await scenario.time.advance(10);
    expect(recordsOfRequests()).toEqual([]);
  });
});

describe('a reservation', () => {
  test('lasts while its request runs, however long it streams', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    await scenario.time.advance(20 * MINUTE);
    await ledger.settle(reservation, settlementOf(30n));
    await scenario.ended(ledger.flush());
    expect(booked()).toEqual([{ kind: 'settled', cost: 30n }]);
  });

  test('that is never ended is charged after an hour: headroom returns even after a bug', async () => {
    await ledger.reserve(requestOf(60n, key));
    await scenario.time.advance(59 * MINUTE);
    expect(booked()).toEqual([]);
    await scenario.time.advance(2 * MINUTE);
    expect(scenario.ledgerRows.all()).toMatchObject([{ kind: 'settled', cost: 60n, estimated: true }]);
    expect(await scenario.store.part.read(scenario.ledgerRows.all()[0]?.scopeWindows ?? [])).toEqual([
      { spent: 60n, escrowOfAll: 0n },
    ]);
  });

  test('of a stream that is never ended is charged what it has produced', async () => {
    ledger.trackStream(heldOf(await ledger.reserve(requestOf(60n, key))), () => 7n);
    await scenario.time.advance(61 * MINUTE);
    expect(scenario.ledgerRows.all()).toMatchObject([{ kind: 'settled', cost: 7n, estimated: true }]);
  });

  test('that was never ended may be settled later without an effect', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    await scenario.time.advance(61 * MINUTE);
    await ledger.settle(reservation, settlementOf(10n));
    await ledger.release(reservation);
    await scenario.time.advance(500);
    expect(booked()).toEqual([{ kind: 'settled', cost: 60n }]);
  });
});

describe('a stream', () => {
  test('is in the journal within a second of what it produced, once per second and only when it changed', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    let known = 1n;
    let costReads = 0;
    ledger.trackStream(reservation, () => {
      costReads += 1;
      return known;
    });
    for (; known < 20n; known += 1n) await scenario.time.advance(100);
    await scenario.time.advance(5000);
    const written = scenario.folder.records.filter(({ type }) => type === 'progress');
    expect(written.length).toBeLessThanOrEqual(3);
    expect(written.at(-1)).toEqual({ type: 'progress', id: reservation.id, cost: 20n });
    expect(costReads).toBeLessThanOrEqual(8);
  });

  test('is at risk in the store with what it produced, never less than before', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    let known = 9n;
    ledger.trackStream(reservation, () => known);
    await scenario.time.advance(1500);
    expect(scenario.calls.at(-1)?.changes).toMatchObject([{ risk: 9n }]);
    known = 5n;
    await scenario.time.advance(1500);
    expect(scenario.calls.at(-1)?.changes ?? []).not.toMatchObject([{ risk: 5n }]);
    known = 12n;
    await scenario.time.advance(1500);
    const risks = scenario.calls.flatMap(({ changes }) => changes.map(({ risk }) => risk));
    expect(risks.at(-1)).toBe(12n);
  });

  test('is not asked again after it has settled', async () => {
    const reservation = heldOf(await ledger.reserve(requestOf(60n, key)));
    let costReads = 0;
    ledger.trackStream(reservation, () => {
      costReads += 1;
      return 50n;
    });
    await ledger.settle(reservation, settlementOf(30n));
    await scenario.time.advance(3000);
    expect(costReads).toBe(0);
  });
});

test.each([
  ['settlement', (reservation: Reservation) => ledger.settle(reservation, settlementOf(1n))],
  ['release', (reservation: Reservation) => ledger.release(reservation)],
])('a %s frees money only when it is on disk: a restart without it charges the whole reservation', async (_, end) => {
  const reservation = await scenario.take(ledger, 60n, key);
  const other = await scenario.start(IMMORTAL);
  scenario.journal.behaviour = 'hangs';
  void end(reservation);
  await scenario.time.advance(500);
  expect(await scenario.tryReservation(other, requestOf(60n, key))).toMatchObject({ outcome: 'held' });
  scenario.journal.behaviour = 'up';
  await scenario.time.advance(500);
  expect(await scenario.tryReservation(other, requestOf(60n, key))).toMatchObject({ outcome: 'reserved' });
});
