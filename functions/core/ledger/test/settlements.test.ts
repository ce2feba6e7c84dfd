import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import type { LedgerRow } from '../../ports/ledger-rows.ts';
import type { StartableLedger } from '../ledger.ts';
import {
  createScene,
  heldOf,
  IMMORTAL,
  requestOf,
  type Scene,
  scopeOf,
  settlementOf,
  slow,
} from './scenario.promises.ts';

const MINUTE = 60_000;
const key = scopeOf('key', 100n);
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = await scene.start(IMMORTAL, scene.folder);
});

const booked = (): Array<Pick<LedgerRow, 'kind' | 'cost'>> =>
  scene.entries.entries().map(({ kind, cost }) => ({ kind, cost }));
const recordsOfRequests = () => scene.folder.records.filter(({ type }) => type !== 'account');

describe('a settlement', () => {
  test('is booked soon, with all its fields, and the journal forgets it', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    await ledger.settle(hold, { ...settlementOf(30n), estimated: true });
    await scene.time.advance(150);
    const { scopeWindows, id } = hold;
    const tokens = { input: 1, output: 2, cachedInput: 0, cacheWrite: 0 };
    const fields = { cost: 30n, tokens, model: 'small', identifier: 'small-1', estimated: true };
    expect(scene.entries.entries()).toEqual([
      { id, kind: 'settled', scopeWindows, ...fields, settledAt: Date.UTC(2026, 0, 10) },
    ]);
    expect(recordsOfRequests()).toEqual([]);
  });

  test('has a time of whole milliseconds, which PostgreSQL demands', async () => {
    await scene.time.advance(0.3);
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    await ledger.settle(hold, settlementOf(30n));
    await scene.time.advance(150);
    expect(scene.entries.entries()).toMatchObject([{ id: hold.id, settledAt: Date.UTC(2026, 0, 10) }]);
  });

  test('is booked soon also while calls are under way all the time', async () => {
    const free = scopeOf('free');
    scene.store.part = slow(scene.store.part, scene.time, () => 24);
    for (let turn = 0; turn < 200; turn += 1) {
      void ledger.reserve(requestOf(1n, scopeOf('other', 10_000n))).then((held) => ledger.release(heldOf(held)));
      void ledger.reserve(requestOf(1n, free)).then((held) => ledger.settle(heldOf(held), settlementOf(1n)));
      await scene.time.advance(5);
    }
    expect(booked().length).toBeGreaterThan(100);
  });

  test('twice is once, and a release after it changes nothing', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    await Promise.all([
      ledger.settle(hold, settlementOf(30n)),
      ledger.settle(hold, settlementOf(50n)),
      ledger.release(hold),
    ]);
    await scene.time.advance(200);
    await ledger.settle(hold, settlementOf(50n));
    await ledger.release(hold);
    await scene.time.advance(200);
    expect(booked()).toEqual([{ kind: 'settled', cost: 30n }]);
    expect(await scene.spent(ledger, key)).toBe(30n);
  });

  test('is durable before it resolves: a process that dies right after it books it at its next start', async () => {
    await ledger.settle(heldOf(await ledger.reserve(requestOf(60n, key))), settlementOf(30n));
    expect(recordsOfRequests().map(({ type }) => type)).toEqual(['hold', 'settle']);
    expect(booked()).toEqual([]);
    await scene.start(IMMORTAL, scene.folder);
    await scene.time.advance(200);
    expect(booked().filter(({ kind }) => kind === 'settled')).toEqual([{ kind: 'settled', cost: 30n }]);
    expect(booked().reduce((sum, { cost }) => sum + cost, 0n)).toBe(30n);
  });

  test('above its hold is booked in full and counts as an overrun', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    await scene.ended(ledger.settle(hold, settlementOf(75n)));
    await scene.ended(ledger.flush());
    expect(booked()).toEqual([{ kind: 'settled', cost: 75n }]);
    expect(scene.counted.get('gateway_operator_ledger_overruns_total')).toBe(1);
    expect(await scene.spent(ledger, key)).toBe(75n);
  });

  test('counts for the very next request', async () => {
    await ledger.settle(heldOf(await ledger.reserve(requestOf(100n, key))), settlementOf(100n));
    expect(await ledger.reserve(requestOf(1n, key))).toMatchObject({ failure: { reason: 'exceeded', spent: 100n } });
  });

  test('below zero is refused as a bug', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    await expect(ledger.settle(hold, settlementOf(-1n))).rejects.toThrow('-1');
  });

  test('that costs nothing is booked too', async () => {
    await ledger.settle(heldOf(await ledger.reserve(requestOf(0n, key))), settlementOf(0n));
    await scene.time.advance(200);
    expect(booked()).toEqual([{ kind: 'settled', cost: 0n }]);
  });
});

describe('a release', () => {
  test('frees everything and books nothing', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(100n, key)));
    await ledger.release(hold);
    await ledger.release(hold);
    await ledger.settle(hold, settlementOf(50n));
    expect((await scene.tryHold(ledger, requestOf(100n, key))).outcome).toBe('reserved');
    await scene.ended(ledger.flush());
    expect(booked()).toEqual([]);
  });

  test('leaves nothing of its hold in the journal', async () => {
    await ledger.release(heldOf(await ledger.reserve(requestOf(100n, key))));
    await scene.time.advance(10);
    expect(recordsOfRequests()).toEqual([]);
  });
});

describe('a hold', () => {
  test('lasts while its request runs, however long it streams', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    await scene.time.advance(20 * MINUTE);
    await ledger.settle(hold, settlementOf(30n));
    await scene.ended(ledger.flush());
    expect(booked()).toEqual([{ kind: 'settled', cost: 30n }]);
  });

  test('that is never ended is charged after an hour: headroom returns even after a bug', async () => {
    await ledger.reserve(requestOf(60n, key));
    await scene.time.advance(59 * MINUTE);
    expect(booked()).toEqual([]);
    await scene.time.advance(2 * MINUTE);
    expect(scene.entries.entries()).toMatchObject([{ kind: 'settled', cost: 60n, estimated: true }]);
    expect(await scene.store.part.read(scene.entries.entries()[0]?.scopeWindows ?? [])).toEqual([
      { spent: 60n, reserved: 0n },
    ]);
  });

  test('of a stream that is never ended is charged what it has produced', async () => {
    ledger.trackStream(heldOf(await ledger.reserve(requestOf(60n, key))), () => 7n);
    await scene.time.advance(61 * MINUTE);
    expect(scene.entries.entries()).toMatchObject([{ kind: 'settled', cost: 7n, estimated: true }]);
  });

  test('that was never ended may be settled later without an effect', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    await scene.time.advance(61 * MINUTE);
    await ledger.settle(hold, settlementOf(10n));
    await ledger.release(hold);
    await scene.time.advance(500);
    expect(booked()).toEqual([{ kind: 'settled', cost: 60n }]);
  });
});

describe('a stream', () => {
  test('is in the journal within a second of what it produced, once per second and only when it changed', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    let known = 1n;
    let asked = 0;
    ledger.trackStream(hold, () => {
      asked += 1;
      return known;
    });
    for (; known < 20n; known += 1n) await scene.time.advance(100);
    await scene.time.advance(5000);
    const written = scene.folder.records.filter(({ type }) => type === 'progress');
    expect(written.length).toBeLessThanOrEqual(3);
    expect(written.at(-1)).toEqual({ type: 'progress', id: hold.id, cost: 20n });
    expect(asked).toBeLessThanOrEqual(8);
  });

  test('is at risk in the store with what it produced, never less than before', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    let known = 9n;
    ledger.trackStream(hold, () => known);
    await scene.time.advance(1500);
    expect(scene.calls.at(-1)?.changes).toMatchObject([{ risk: 9n }]);
    known = 5n;
    await scene.time.advance(1500);
    expect(scene.calls.at(-1)?.changes ?? []).not.toMatchObject([{ risk: 5n }]);
    known = 12n;
    await scene.time.advance(1500);
    const risks = scene.calls.flatMap(({ changes }) => changes.map(({ risk }) => risk));
    expect(risks.at(-1)).toBe(12n);
  });

  test('is not asked again after it has settled', async () => {
    const hold = heldOf(await ledger.reserve(requestOf(60n, key)));
    let asked = 0;
    ledger.trackStream(hold, () => {
      asked += 1;
      return 50n;
    });
    await ledger.settle(hold, settlementOf(30n));
    await scene.time.advance(3000);
    expect(asked).toBe(0);
  });
});

test.each([
  ['settlement', (hold: Reservation) => ledger.settle(hold, settlementOf(1n))],
  ['release', (hold: Reservation) => ledger.release(hold)],
])('a %s frees money only when it is on disk: a restart without it charges the whole hold', async (_, end) => {
  const hold = await scene.take(ledger, 60n, key);
  const other = await scene.start(IMMORTAL);
  scene.journal.behaviour = 'hangs';
  void end(hold);
  await scene.time.advance(500);
  expect(await scene.tryHold(other, requestOf(60n, key))).toMatchObject({ outcome: 'busy' });
  scene.journal.behaviour = 'up';
  await scene.time.advance(500);
  expect(await scene.tryHold(other, requestOf(60n, key))).toMatchObject({ outcome: 'reserved' });
});
