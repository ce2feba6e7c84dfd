import { beforeEach, describe, expect, test } from 'vitest';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, IMMORTAL } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start(IMMORTAL, scenario.folder);
});

const tryReservation = (amount: bigint) => scenario.tryReservation(ledger, requestOf(amount, key));
const settleOne = async (cost: bigint): Promise<void> =>
  (await scenario.ended(ledger.settle(await scenario.take(ledger, cost, key), settlementOf(cost)))).value;
const costs = (): bigint[] => scenario.ledgerRows.all().map(({ cost }) => cost);
const sum = (): bigint => costs().reduce((all, cost) => all + cost, 0n);
const requestsIn = () => scenario.folder.records.filter(({ type }) => type !== 'account');

describe('a store that', () => {
  beforeEach(async () => {
    await settleOne(10n);
    await scenario.time.advance(500);
  });

  test.each(['refuses', 'hangs', 'loses'] as const)(
    '%s: 503 within a second, and nothing stays held',
    async (behaviour) => {
      scenario.store.behaviour = behaviour;
      expect(await tryReservation(90n)).toMatchObject({ outcome: 'unavailable', millis: 900 });
      await scenario.time.advance(5000);
      scenario.store.behaviour = 'up';
      await scenario.time.advance(1500);
      expect(await tryReservation(90n)).toMatchObject({ outcome: 'reserved' });
    },
  );

  test('is silent for a moment only delays requests', async () => {
    scenario.store.behaviour = 'hangs';
    const held = scenario.tryReservation(ledger, requestOf(90n, key), {
      400: () => {
        scenario.store.behaviour = 'up';
      },
    });
    expect(await held).toMatchObject({ outcome: 'reserved' });
  });

  test('took a reservation without an answer and came back after the lease: nothing is charged for it', async () => {
    const other = await scenario.start();
    scenario.store.behaviour = 'loses';
    await tryReservation(90n);
    scenario.store.behaviour = 'refuses';
    await scenario.time.advance(70_000);
    scenario.store.behaviour = 'up';
    await scenario.time.advance(6000);
    expect(await scenario.spent(other, key)).toBe(10n);
    await scenario.ended(ledger.flush());
    expect(sum()).toBe(10n);
    expect(await tryReservation(90n)).toMatchObject({ outcome: 'reserved' });
  });

  test.each(['refuses', 'loses', 'hangs'] as const)(
    '%s while replies complete: each ends, is counted and is booked once',
    async (behaviour) => {
      const reservations = [];
      for (const cost of [20n, 30n]) reservations.push({ reservation: await scenario.take(ledger, cost, key), cost });
      scenario.store.behaviour = behaviour;
      for (const { reservation, cost } of reservations)
        await scenario.ended(ledger.settle(reservation, settlementOf(cost)));
      await scenario.time.advance(7000);
      expect(costs()).toEqual([10n]);
      scenario.store.behaviour = 'up';
      await scenario.time.advance(3000);
      expect(costs()).toEqual([10n, 20n, 30n]);
      expect(await scenario.spent(ledger, key)).toBe(60n);
    },
  );

  test('comes back to many settlements: a few calls find out, and all are booked soon', async () => {
    const free = scopeOf('free');
    const reservations = await scenario.ended(
      Promise.all(Array.from({ length: 1000 }, () => ledger.reserve(requestOf(1n, free)))),
    );
    scenario.store.behaviour = 'refuses';
    for (const held of reservations.value) if (held.ok) void ledger.settle(held.value, settlementOf(1n));
    await scenario.time.advance(5000);
    scenario.calls.length = 0;
    await scenario.time.advance(3000);
    expect(scenario.calls.length).toBeLessThanOrEqual(4);
    scenario.store.behaviour = 'up';
    await scenario.time.advance(1200);
    expect(costs()).toHaveLength(1001);
  });

  test('answers with an error (out of memory, say) is named by refusals, and by one line until it is back', async () => {
    scenario.store.behaviour = 'refuses';
    await scenario.time.advance(2000);
    const { value } = await scenario.tryReservation(ledger, requestOf(1n, key));
    expect(value).toMatchObject({ failure: { reason: 'unavailable', why: 'the counter store fails: refused' } });
    scenario.store.behaviour = 'up';
    await scenario.time.advance(2000);
    expect(scenario.log.lines.map(({ message }) => message)).toEqual([
      'ledger: a call to the counter store failed, and is repeated',
      'ledger: the counter store answers calls again',
    ]);
  });

  test('does not answer makes spend unavailable too, never zero', async () => {
    scenario.store.behaviour = 'hangs';
    const { value, millis } = await scenario.ended(ledger.spend([key]));
    expect(value).toMatchObject({ ok: false, failure: { reason: 'unavailable' } });
    expect(millis).toBe(900);
  });
});

describe('a database that', () => {
  test.each(['refuses', 'hangs'] as const)(
    '%s while a budget is unknown: 503 within a second, never an admission, and holds work again when it does',
    async (behaviour) => {
      scenario.database.behaviour = behaviour;
      scenario.calls.length = 0;
      expect(await tryReservation(1n)).toMatchObject({ outcome: 'unavailable', millis: 900 });
      // A counter that is being loaded is not asked for again and again.
      expect(scenario.calls.length).toBeLessThanOrEqual(8);
      scenario.database.behaviour = 'up';
      await scenario.time.advance(3000);
      expect(await tryReservation(1n)).toMatchObject({ outcome: 'reserved' });
    },
  );

  test('is away while one budget is unknown delays no request of another', async () => {
    await settleOne(1n);
    scenario.database.behaviour = 'hangs';
    const unknown = ledger.reserve(requestOf(1n, scopeOf('unknown', 10n)));
    await scenario.time.advance(50);
    expect((await tryReservation(1n)).millis).toBeLessThanOrEqual(10);
    expect((await scenario.ended(unknown)).value.ok).toBe(false);
  });

  test('is away for a while: known budgets work for 30 s, then 503, then everything is booked once', async () => {
    await settleOne(1n);
    await scenario.ended(ledger.flush());
    scenario.database.behaviour = 'refuses';
    for (let second = 0; second < 20; second += 1) {
      await settleOne(1n);
      await scenario.time.advance(1000);
    }
    expect(await tryReservation(1n)).toMatchObject({ outcome: 'reserved' });
    await scenario.time.advance(11_000);
    expect(await tryReservation(1n)).toMatchObject({ outcome: 'unavailable', millis: 0 });
    scenario.database.behaviour = 'up';
    await scenario.time.advance(6000);
    expect(await tryReservation(1n)).toMatchObject({ outcome: 'reserved' });
    expect(costs()).toHaveLength(21);
  });

  test.each(['refuses', 'hangs'] as const)(
    '%s for a while: gauges show how many entries wait, and for how long the oldest has waited',
    async (behaviour) => {
      const gauges = () =>
        ['unbooked', 'unbooked_age_seconds'].map((name) => scenario.gauges.get(`gateway_operator_ledger_${name}`) ?? 0);
      await settleOne(1n);
      await scenario.ended(ledger.flush());
      expect(gauges()).toEqual([0, 0]);
      scenario.database.behaviour = behaviour;
      await settleOne(1n);
      await settleOne(1n);
      await scenario.time.advance(20_000);
      const [depth, age = 0] = gauges();
      expect(depth).toBe(2);
      expect(age).toBeGreaterThanOrEqual(19);
      expect(age).toBeLessThanOrEqual(20);
      scenario.database.behaviour = 'up';
      await scenario.time.advance(6000);
      expect(gauges()).toEqual([0, 0]);
    },
  );

  test('is up while the store is away: what the store has not counted shows in the gauges too', async () => {
    const held = await scenario.take(ledger, 1n, key);
    scenario.store.behaviour = 'refuses';
    await scenario.ended(ledger.settle(held, settlementOf(1n)));
    await scenario.time.advance(20_000);
    expect(scenario.gauges.get('gateway_operator_ledger_unbooked')).toBe(1);
    expect(scenario.gauges.get('gateway_operator_ledger_unbooked_age_seconds')).toBeGreaterThanOrEqual(19);
  });

  test.each(['loses', 'hangs'] as const)('%s answers: no entry is there twice, none is missing', async (behaviour) => {
    await settleOne(1n);
    scenario.database.behaviour = behaviour;
    for (let each = 0; each < 5; each += 1) {
      await settleOne(2n);
      await scenario.time.advance(3000);
    }
    scenario.database.behaviour = 'up';
    await scenario.time.advance(11_000);
    expect(costs()).toEqual([1n, 2n, 2n, 2n, 2n, 2n]);
    const { scopeWindows } = await scenario.take(ledger, 1n, key);
    expect(await scenario.database.part.sums(scopeWindows)).toMatchObject([{ spent: 11n }]);
  });

  test('may have booked a batch whose answer was lost: a counter loaded then counts it once', async () => {
    const longer = scopeOf('key', 100n, { budget: { limit: '100', duration: '31d', alignment: 'Rolling' } });
    await settleOne(40n);
    scenario.database.behaviour = 'loses';
    await scenario.time.advance(150);
    expect(costs()).toHaveLength(1);
    scenario.database.behaviour = 'up';
    const start = Date.UTC(2026, 0, 1);
    scenario.ledgerRows.recount({ scopeId: 'key', window: { start, end: start + 31 * 86_400_000 } });
    await scenario.take(ledger, 1n, longer);
    expect(await scenario.spent(ledger, longer)).toBe(40n);
  });

  test('rejects a ledger row: the rest is booked, the ledger continues, and the log reports it', async () => {
    const { insert } = scenario.ledgerRows;
    Object.assign(scenario.ledgerRows, {
      insert: (entries: Parameters<typeof insert>[0]) => {
        insert(entries.slice(1));
        return entries.slice(0, 1).map(({ id }) => id);
      },
    });
    await settleOne(1n);
    await settleOne(2n);
    await scenario.ended(ledger.flush());
    expect(costs()).toEqual([2n]);
    expect(scenario.log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(scenario.counted.get('gateway_operator_ledger_rejected_total')).toBe(1);
    expect(requestsIn()).toEqual([]);
  });

  test('is away makes a flush fail with a message', async () => {
    await settleOne(1n);
    scenario.database.behaviour = 'refuses';
    await expect(ledger.flush()).rejects.toThrow('booking ledger rows in PostgreSQL');
  });

  test('closes the account while a flush is under way makes the flush wait, or fail: it never says what is not true', async () => {
    await settleOne(1n);
    const { bookBatch } = scenario.database.part;
    Object.assign(scenario.database.part, { bookBatch: async () => ({ outcome: 'tooLate', rejected: [] }) });
    const flushed = ledger.flush().then(
      () => 'flushed',
      () => 'failed',
    );
    await scenario.time.advance(10);
    Object.assign(scenario.database.part, { bookBatch });
    const outcome = (await scenario.ended(flushed)).value;
    expect(outcome === 'failed' || sum() === 1n).toBe(true);
    await scenario.time.advance(1000);
    expect(sum()).toBe(1n);
  });
});

describe('a journal that cannot be written', () => {
  const wide = scopeOf('wide', 10_000n);

  test('lets a reply end only when PostgreSQL has its settlement', async () => {
    const reservation = await scenario.take(ledger, 100n, key);
    scenario.journal.behaviour = 'refuses';
    await scenario.ended(ledger.settle(reservation, settlementOf(30n)));
    expect(costs()).toEqual([30n]);
  });

  test('breaks off the reply when PostgreSQL is away too, and books it later', async () => {
    const reservation = await scenario.take(ledger, 100n, key);
    scenario.journal.behaviour = 'refuses';
    scenario.database.behaviour = 'refuses';
    const settled = ledger.settle(reservation, settlementOf(30n)).then(
      () => 'ended',
      () => 'broken',
    );
    expect((await scenario.ended(settled)).value).toBe('broken');
    scenario.database.behaviour = 'up';
    await scenario.time.advance(2000);
    expect(costs()).toEqual([30n]);
  });

  test('is discarded, so that a killed process is charged for all that it had in flight', async () => {
    const process = createProcess();
    const streaming = scenario.process(process);
    await scenario.ended(streaming.start());
    streaming.trackStream(await scenario.take(streaming, 100n, wide), () => 60n);
    scenario.journal.behaviour = 'refuses';
    streaming.trackStream(await scenario.take(streaming, 200n, wide), () => 70n);
    await scenario.take(streaming, 200n, wide);
    await scenario.time.advance(1500);
    process.is.dead = true;
    scenario.journal.behaviour = 'up';
    const successor = scenario.process();
    await scenario.ended(successor.start());
    await scenario.time.advance(25_000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(60n + 70n + 200n);
    expect(await scenario.spent(successor, wide)).toBe(330n);
    expect(scenario.log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });

  test('does not keep the process from a new account when its own was closed', async () => {
    scenario.journal.behaviour = 'refuses';
    await scenario.ended(ledger.settle(await scenario.take(ledger, 100n, wide), settlementOf(30n)));
    scenario.wipe();
    await scenario.time.advance(3000);
    expect(await scenario.tryReservation(ledger, requestOf(100n, wide))).toMatchObject({ outcome: 'reserved' });
    expect(await scenario.spent(ledger, wide)).toBe(30n);
  });
});

test('requests are refused until the start has succeeded', async () => {
  scenario.setPostgres('refuses');
  const another = scenario.process();
  void another.start().catch(() => undefined);
  expect(await scenario.tryReservation(another, requestOf(1n, key))).toMatchObject({ outcome: 'unavailable' });
});

test('more than a hundred thousand unbooked ledger rows mean that PostgreSQL is away', async () => {
  const free = scopeOf('free');
  await settleOne(1n);
  scenario.database.behaviour = 'refuses';
  for (let done = 0; done < 100_000; done += 2000) {
    const reservations = await scenario.ended(
      Promise.all(Array.from({ length: 2000 }, () => ledger.reserve(requestOf(0n, free)))),
    );
    for (const held of reservations.value) if (held.ok) void ledger.settle(held.value, settlementOf(0n));
    await scenario.time.advance(5);
  }
  expect(await tryReservation(0n)).toMatchObject({ outcome: 'unavailable', millis: 0 });
});
