import { beforeEach, describe, expect, test } from 'vitest';
import { STOPPED_REASON } from '../account.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, IMMORTAL } from './processes.fixture.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start(IMMORTAL, scenario.folder);
});

const costs = (): bigint[] => scenario.ledgerRows.all().map(({ cost }) => cost);
const leftIn = async (): Promise<unknown> => scenario.store.part.accounts(false, 100);

describe('a stop', () => {
  test('books every settlement, returns all escrow, and leaves nothing in store and journal', async () => {
    const reservation = await scenario.take(ledger, 60n, key);
    await ledger.settle(reservation, settlementOf(5n));
    await scenario.ended(ledger.close());
    expect(costs()).toEqual([5n]);
    expect(await leftIn()).toEqual([]);
    expect(await scenario.store.part.read(reservation.scopeWindows)).toEqual([{ spent: 5n, escrowOfAll: 0n }]);
    expect(scenario.folder.records).toEqual([]);
  });

  test('refuses new reservations, and leaves requests in flight to the next start', async () => {
    const [first, second] = [await scenario.take(ledger, 10n, key), await scenario.take(ledger, 20n, key)];
    await ledger.settle(first, settlementOf(5n));
    await scenario.ended(ledger.close());
    expect(costs()).toEqual([5n]);
    expect(await ledger.reserve(requestOf(1n, key))).toMatchObject({ failure: { reason: 'unavailable' } });
    expect(scenario.folder.records.filter(({ type }) => type === 'reserve')).toMatchObject([{ id: second.id }]);
    const next = await scenario.start(IMMORTAL, scenario.folder);
    await scenario.time.advance(1000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(25n);
    expect(await scenario.spent(next, key)).toBe(25n);
  });

  test.each(['refuses', 'hangs', 'loses'] as const)(
    'books the rest and closes the account together also while the store %s: nobody is charged twice',
    async (behaviour) => {
      const other = await scenario.start();
      const reservation = await scenario.take(ledger, 60n, key);
      await scenario.time.advance(50);
      scenario.store.behaviour = behaviour;
      void ledger.settle(reservation, settlementOf(30n));
      const { millis } = await scenario.ended(ledger.close());
      expect(millis).toBeLessThanOrEqual(5000);
      expect(costs()).toEqual([30n]);
      scenario.store.behaviour = 'up';
      await scenario.time.advance(30_000);
      expect(costs()).toEqual([30n]);
      expect(await scenario.spent(other, key)).toBe(30n);
      expect((await scenario.tryReservation(other, requestOf(70n, key))).outcome).toBe('reserved');
    },
  );

  test.each(['refuses', 'hangs'] as const)(
    'of a process that has left its account, since another process raised the epoch, books what has ended (the store %s)',
    async (behaviour) => {
      const reservation = await scenario.take(ledger, 60n, key);
      await scenario.time.advance(500);
      scenario.store.behaviour = behaviour;
      await scenario.epochs.part.raise(scenario.epochs.part.current().epoch, 0);
      await scenario.time.advance(3000);
      void ledger.settle(reservation, settlementOf(30n));
      await scenario.time.advance(3000);
      expect((await scenario.ended(ledger.close())).millis).toBeLessThanOrEqual(5000);
      expect(costs()).toEqual([30n]);
      expect(scenario.folder.records).toEqual([]);
      scenario.wipe();
      scenario.store.behaviour = 'up';
      const next = await scenario.start(IMMORTAL, { records: [] });
      await scenario.time.advance(60_000);
      expect(await scenario.spent(next, key)).toBe(30n);
      expect(costs()).toEqual([30n]);
    },
  );

  test('of a process whose account another process has closed and charged books its requests, and corrects the charge', async () => {
    const process = createProcess();
    const suspended = await scenario.start(process);
    const other = await scenario.start();
    const reservation = await scenario.take(suspended, 60n, key);
    await scenario.time.advance(500);
    process.is.frozen = true;
    await scenario.time.advance(25_000);
    await scenario.tryReservation(other, requestOf(1n, scopeOf('other', 100n)));
    await scenario.time.advance(5000);
    expect(costs()).toEqual([60n]);
    scenario.store.behaviour = 'refuses';
    process.is.frozen = false;
    void suspended.settle(reservation, settlementOf(30n));
    await scenario.ended(suspended.close());
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(30n);
    scenario.store.behaviour = 'up';
    await scenario.time.advance(60_000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(30n);
  });

  test('of a process whose account a dead process has begun to close books its requests, and corrects the charges', async () => {
    const reservations = [
      await scenario.take(ledger, 60n, key),
      await scenario.take(ledger, 20n, scopeOf('other', 100n)),
    ];
    await scenario.time.advance(500);
    const [first] = reservations[0]?.scopeWindows ?? [];
    const account = scenario.calls.at(-1)?.account ?? '';
    if (first === undefined) throw new Error('nothing is reserved');
    // The first of two pages.
    const figures = [{ ...first, escrow: 60n, risk: 60n, unbookedSpend: [] }];
    const { epoch } = scenario.epochs.part.current();
    const now = scenario.time.clock.now();
    await scenario.database.part.close({ epoch, account, figures, isLast: false, storeCalls: 0, at: now });
    scenario.store.behaviour = 'refuses';
    for (const reservation of reservations) void ledger.settle(reservation, settlementOf(5n));
    expect((await scenario.ended(ledger.close())).millis).toBeLessThan(2000);
    expect(costs().toSorted()).toEqual([-60n, 5n, 5n, 60n]);
    expect(scenario.folder.records).toEqual([]);
    scenario.store.behaviour = 'up';
    const other = await scenario.start();
    await scenario.time.advance(30_000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(10n);
    expect(await scenario.spent(other, key)).toBe(5n);
  });

  test('of a process that could not join books what its journal has', async () => {
    const reservation = await scenario.take(ledger, 60n, key);
    await scenario.time.advance(500);
    const records = [...scenario.folder.records];
    scenario.store.behaviour = 'refuses';
    const folder = { records };
    const next = scenario.process(IMMORTAL, folder);
    await scenario.ended(next.start().catch(() => undefined));
    await scenario.ended(next.close());
    expect(reservation.scopeWindows).toHaveLength(1);
    expect(costs()).toEqual([60n]);
    expect(folder.records).toEqual([]);
  });

  test('books with the next attempt what PostgreSQL refused for a moment', async () => {
    const reservation = await scenario.take(ledger, 10n, key);
    await ledger.settle(reservation, settlementOf(5n));
    scenario.setPostgres('refuses');
    const { millis } = await scenario.ended(ledger.close(), { 300: () => scenario.setPostgres('up') });
    expect(millis).toBeLessThan(1500);
    expect(costs()).toEqual([5n]);
    expect(await leftIn()).toEqual([]);
  });

  test('ends within its grace period when PostgreSQL does not answer, and the next start books the rest', async () => {
    const reservation = await scenario.take(ledger, 10n, key);
    await ledger.settle(reservation, settlementOf(5n));
    scenario.setPostgres('hangs');
    expect((await scenario.ended(ledger.close())).millis).toBeLessThanOrEqual(7500);
    scenario.setPostgres('up');
    const next = await scenario.start(IMMORTAL, scenario.folder);
    await scenario.time.advance(1000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(5n);
    expect(await scenario.spent(next, key)).toBe(5n);
  });

  test.each(['hangs', 'refuses'] as const)(
    'with live requests ends in the time it is given when PostgreSQL and the store are both away (the store %s)',
    async (behaviour) => {
      const reservations = [await scenario.take(ledger, 10n, key), await scenario.take(ledger, 20n, key)];
      await ledger.settle(await scenario.take(ledger, 5n, key), settlementOf(5n));
      scenario.setPostgres('hangs');
      scenario.store.behaviour = behaviour;
      const charged = await scenario.ended(ledger.chargeLive().catch(() => undefined));
      expect(charged.millis).toBeLessThanOrEqual(2500);
      expect((await scenario.ended(ledger.close(3000))).millis).toBeLessThanOrEqual(5100);
      // What could not be booked is in the journal.
      scenario.setPostgres('up');
      scenario.store.behaviour = 'up';
      await scenario.start(IMMORTAL, scenario.folder);
      await scenario.time.advance(1000);
      expect(reservations).toHaveLength(2);
      expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(35n);
    },
  );

  test('returns the escrow of thousands of counters', async () => {
    const keys = Array.from({ length: 700 }, (_, index) => scopeOf(`key-${index}`, 1_000_000n));
    const reservations = await Promise.all(keys.map((scope) => scenario.take(ledger, 100n, scope)));
    await scenario.time.advance(500);
    for (const reservation of reservations) void ledger.settle(reservation, settlementOf(1n));
    await scenario.ended(ledger.close());
    const shown = await scenario.store.part.read(reservations.flatMap(({ scopeWindows }) => scopeWindows));
    expect(new Set(shown.map((one) => one?.escrowOfAll))).toEqual(new Set([0n]));
    expect(Math.max(...scenario.calls.map(({ changes }) => changes.length))).toBeLessThanOrEqual(256);
  });

  test('of a process whose requests nobody ends any more charges them first, as if it had died', async () => {
    const [plain, stream] = [await scenario.take(ledger, 10n, key), await scenario.take(ledger, 20n, key)];
    ledger.trackStream(stream, () => 7n);
    await scenario.ended(ledger.chargeLive());
    await scenario.ended(ledger.settle(plain, settlementOf(1n)));
    await scenario.ended(ledger.close());
    expect(costs().toSorted()).toEqual([10n, 7n]);
    expect(await leftIn()).toEqual([]);
    expect(scenario.folder.records).toEqual([]);
  });

  test('refuses settlements that come after it and that the journal does not take; the next start charges their reservations', async () => {
    const reservation = await scenario.take(ledger, 20n, key);
    await scenario.ended(ledger.close());
    scenario.journal.behaviour = 'refuses';
    await expect(scenario.ended(ledger.settle(reservation, settlementOf(5n)))).rejects.toThrow(STOPPED_REASON);
    expect(scenario.folder.records.filter(({ type }) => type === 'reserve')).toMatchObject([{ id: reservation.id }]);
    scenario.journal.behaviour = 'up';
    const next = await scenario.start(IMMORTAL, scenario.folder);
    await scenario.time.advance(1000);
    expect(await scenario.spent(next, key)).toBe(20n);
  });

  test('refuses what waits for the store, and what asks afterwards', async () => {
    const reservation = await scenario.take(ledger, 20n, key);
    const moving = heldOf(
      await scenario
        .ended(ledger.reserve({ ...requestOf(1n, key), modelEntryLimits: [undefined] }))
        .then(({ value }) => value),
    );
    await ledger.settle(reservation, settlementOf(5n));
    scenario.store.behaviour = 'refuses';
    const flushed = ledger.flush().catch(String);
    await scenario.ended(ledger.close());
    expect((await scenario.ended(flushed)).value).toMatch(/refused|the ledger stops/);
    const full = { id: 'entry', requests: 1, tokens: undefined };
    expect((await scenario.ended(ledger.moveToModelEntry(moving, full))).value).toMatchObject({
      failure: { why: STOPPED_REASON },
    });
    expect((await scenario.ended(ledger.spend([key]))).value).toMatchObject({ failure: { reason: 'unavailable' } });
  });

  test.each([
    ['hangs', 'up', 'ledger: a step of the stop failed; another process closes the account when its lease ends'],
    [
      'up',
      'hangs',
      'ledger: stopped with unbooked requests; a start on the same disk books them, else another process charges them',
    ],
  ] as const)(
    'that does not end in time logs unbooked requests only if there are any (store: %s, PostgreSQL: %s)',
    async (store, postgres, message) => {
      await ledger.settle(await scenario.take(ledger, 10n, key), settlementOf(5n));
      if (postgres === 'up') await scenario.time.advance(1000);
      scenario.store.behaviour = store;
      scenario.setPostgres(postgres);
      await scenario.ended(ledger.close(1000));
      const warnings = scenario.log.lines.filter(({ message: text }) => text.startsWith('ledger: '));
      expect(warnings.map((line) => line.message)).toContain(message);
      expect(warnings.filter(({ fields }) => fields?.unbooked === 0)).toEqual([]);
    },
  );

  test('twice is once', async () => {
    await scenario.ended(Promise.all([ledger.close(), ledger.close()]));
    await scenario.ended(ledger.close());
    expect(await leftIn()).toEqual([]);
  });

  test('while the store is being rebuilt books what has ended', async () => {
    await ledger.settle(await scenario.take(ledger, 10n, key), settlementOf(5n));
    scenario.wipe();
    const holding = ledger.reserve(requestOf(1n, key));
    await scenario.time.settle();
    await scenario.ended(ledger.close());
    await holding;
    expect(costs()).toEqual([5n]);
  });
});
