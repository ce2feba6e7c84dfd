import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import type { AuditReply, CounterStore } from '../../ports/counter-store.ts';
import { idAt } from '../../ports/test/ledger-row.fixture.ts';
import type { StoreContext } from '../context.ts';
import type { StartableLedger } from '../ledger.ts';
import { maintain } from '../maintenance.ts';
import { createScenario, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 100n);
const differences = 'gateway_operator_ledger_audit_differences_total';
let scenario: Scenario;
let one: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  one = await scenario.start();
});

const reports = () => scenario.log.lines.filter(({ message }) => message.includes('was repaired'));

describe('an audit', () => {
  test('finds nothing where every counter shows its ledger rows and what is not booked yet', async () => {
    const [booked, unbooked] = [await scenario.take(one, 30n, key), await scenario.take(one, 20n, key)];
    await one.settle(booked, settlementOf(25n));
    await scenario.time.advance(500);
    await one.settle(unbooked, settlementOf(10n));
    await scenario.time.advance(10);
    await scenario.ended(one.maintain());
    expect(scenario.counted.get(differences)).toBe(0);
    expect(await scenario.spent(one, key)).toBe(35n);
  });

  test('finds nothing while requests settle and batches are booked all the time', async () => {
    const wide = scopeOf('wide', 1_000_000n);
    const other = await scenario.start();
    for (let turn = 0; turn < 100; turn += 1) {
      const ledger = turn % 2 === 0 ? one : other;
      await ledger.settle(await scenario.take(ledger, 20n, wide), settlementOf(BigInt(turn % 20)));
      if (turn % 10 === 0) void other.maintain().catch(() => undefined);
      await scenario.time.advance(17);
    }
    await scenario.time.advance(3000);
    expect(scenario.counted.get(differences)).toBe(0);
    const sum = scenario.ledgerRows.all().reduce((all, { cost }) => all + cost, 0n);
    expect(await scenario.spent(one, wide)).toBe(sum);
  });

  /** An account with 25 booked and 10 unbooked, whose row changes with each reading. */
  const bookAtEachReading = async () => {
    const [settled, unbooked] = [await scenario.take(one, 30n, key), await scenario.take(one, 20n, key)];
    await one.settle(settled, settlementOf(25n));
    await scenario.time.advance(500);
    const { part } = scenario.database;
    scenario.database.part = { ...part, bookBatch: () => new Promise(() => undefined) };
    await one.settle(unbooked, settlementOf(10n));
    await scenario.time.advance(50);
    let booked = 0;
    const accountRows: typeof part.accountRows = async (accounts) => {
      booked += 1;
      return new Map(
        accounts.map((id) => [
          id,
          { bookedBatch: booked, callNumber: 1, isClosed: false, isCharged: false, isClosing: false },
        ]),
      );
    };
    scenario.database.part = { ...scenario.database.part, accountRows };
  };

  test('ends, although its counters are booked in during each attempt', async () => {
    await bookAtEachReading();
    await scenario.ended(one.maintain());
    expect(scenario.log.lines.filter(({ message }) => message.includes('audit'))).toEqual([]);
    expect(scenario.counted.get(differences)).toBe(0);
    expect(await scenario.spent(one, key)).toBe(35n);
  });

  test('raises a counter that is booked in during each attempt to its sum', async () => {
    await bookAtEachReading();
    const [entry] = scenario.ledgerRows.all();
    if (entry === undefined) throw new Error('nothing was booked');
    scenario.ledgerRows.insert([{ ...entry, id: idAt(scenario.time.clock.now()), cost: 30n }]);
    await scenario.ended(one.maintain());
    expect(scenario.counted.get(differences)).toBe(1);
    expect(await scenario.spent(one, key)).toBe(55n);
  });

  test('lowers a counter that is booked in during each attempt, if a ledger row is deleted', async () => {
    await bookAtEachReading();
    const { part } = scenario.database;
    scenario.database.part = {
      ...part,
      sums: async (counters) => (await part.sums(counters)).map((sum) => ({ ...sum, spent: 20n })),
    };
    await scenario.ended(one.maintain());
    expect(await scenario.spent(one, key)).toBe(30n);
  });

  test('that finds too many accounts with unbooked spend says so', async () => {
    const { part } = scenario.store;
    scenario.store.part = {
      ...part,
      audit: async (...args) =>
        ({ ...(await part.audit(...args)), changedAccounts: ['one'], minSums: [] }) as AuditReply,
    };
    await one.settle(await scenario.take(one, 30n, key), settlementOf(25n));
    await scenario.ended(one.maintain());
    expect(scenario.counted.get('gateway_operator_ledger_failures_total')).toBe(1);
    expect(scenario.log.lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('counters cannot be audited, because too many charges are not booked yet'),
    );
  });

  test('repairs a counter that differs from its ledger rows, and reports it', async () => {
    const settled = await scenario.take(one, 30n, key);
    await one.settle(settled, settlementOf(25n));
    await scenario.time.advance(500);
    const [entry] = scenario.ledgerRows.all();
    if (entry === undefined) throw new Error('nothing was booked');
    // A ledger row that was never reported to the store.
    scenario.ledgerRows.insert([{ ...entry, id: idAt(scenario.time.clock.now()), cost: 20n }]);
    expect(await scenario.spent(one, key)).toBe(25n);
    await scenario.ended(one.maintain());
    expect(await scenario.spent(one, key)).toBe(45n);
    expect(scenario.counted.get(differences)).toBe(1);
    expect(reports()).toHaveLength(1);
  });

  test('repairs the counter of a key that now spends in another instance without a report', async () => {
    await one.settle(await scenario.take(one, 30n, key), settlementOf(25n));
    await scenario.time.advance(500);
    const [entry] = scenario.ledgerRows.all();
    if (entry === undefined) throw new Error('nothing was booked');
    scenario.ledgerRows.moveScope('key', 'instance-2');
    scenario.ledgerRows.insert([{ ...entry, id: idAt(scenario.time.clock.now()), cost: 40n }]);
    await scenario.ended(one.maintain());
    expect(await scenario.spent(one, key)).toBe(65n);
    expect(scenario.counted.get(differences)).toBe(0);
    expect(reports()).toEqual([]);
  });
});

test.each([1, 2, 3])(
  'audits that are cut after %i pages of counters continue where the previous one was cut',
  async (pages) => {
    const counters = Array.from({ length: 3200 }, (_, place) => ({
      scopeId: `${place}`,
      window: { start: 0, end: 1 },
    }));
    const audited = new Set<string>();
    let left = 0;
    const counterStore: Partial<CounterStore> = {
      accounts: async () => [],
      loaded: async (from, max) => ({ counters: counters.slice(from, from + max), total: counters.length }),
      audit: async (_, sums) => {
        for (const { scopeId } of sums) audited.add(scopeId);
        return { outcome: 'done', now: 0, storeCalls: 1, differences: [], changedAccounts: [], minSums: [] };
      },
    };
    const database: Partial<StoreContext['database']> = {
      accountRows: async () => new Map(),
      sums: async (of) => {
        if (left === 0) throw new Error('the time of the flush is over');
        left -= 1;
        return of.map((counter) => ({ ...counter, spent: 0n }));
      },
    };
    const context = {
      counterStore,
      database,
      knownStore: { epoch: 1, storeCalls: 0 },
      now: () => 0,
    } as unknown as StoreContext;
    let from = 0.6;
    const move = (to: number) => {
      from = to;
    };
    for (let run = 0; run < Math.ceil(7 / pages); run += 1) {
      left = pages;
      await maintain(context, 1, { from, move }).catch(() => undefined);
      // Counters come and go between audits.
      counters.pop();
    }
    expect(counters.filter(({ scopeId }) => !audited.has(scopeId))).toEqual([]);
  },
);

test('a page of counters that no audit can end in its time keeps back no other page', async () => {
  const counters = Array.from({ length: 3200 }, (_, place) => ({ scopeId: `${place}`, window: { start: 0, end: 1 } }));
  const audited = new Set<string>();
  const context = {
    counterStore: {
      accounts: async () => [],
      loaded: async (from: number, max: number) => ({ counters: counters.slice(from, from + max), total: 3200 }),
      audit: async (_: number, sums: ReadonlyArray<{ scopeId: string }>) => {
        for (const { scopeId } of sums) audited.add(scopeId);
        return { outcome: 'done', now: 0, storeCalls: 1, differences: [], changedAccounts: [], minSums: [] };
      },
    },
    database: {
      accountRows: async () => new Map(),
      sums: async (of: ReadonlyArray<{ scopeId: string }>) => {
        if (of.some(({ scopeId }) => scopeId === '700')) throw new Error('the time of the flush is over');
        return of.map((counter) => ({ ...counter, spent: 0n }));
      },
    },
    knownStore: { epoch: 1, storeCalls: 0 },
    now: () => 0,
  } as unknown as StoreContext;
  let from = 0;
  const move = (to: number) => {
    from = to;
  };
  for (let run = 0; run < 3; run += 1) await maintain(context, 1, { from, move }).catch(() => undefined);
  expect(audited.size).toBe(2700);
});

test('a store that lists repairs of counters that nobody asked for, or without end, fills no log', async () => {
  const window = { start: 0, end: 1 };
  const counters = Array.from({ length: 5000 }, (_, place) => ({ scopeId: `${place}`, window }));
  const foreign = Array.from({ length: 10_000 }, () => ({ scopeId: 'foreign', window, by: 1n }));
  const log = createMemoryLog();
  let audited = 0;
  const counted: number[] = [];
  const context = {
    counterStore: {
      accounts: async () => [],
      // More than it was asked for.
      loaded: async () => ({ counters, total: 500 }),
      audit: async (_: number, sums: ReadonlyArray<object>) => {
        audited += sums.length;
        const repeated = [...counters, ...counters].map((counter) => ({ ...counter, by: 1n }));
        const done = { outcome: 'done', now: 0, storeCalls: 1, changedAccounts: [], minSums: [] };
        return { ...done, differences: [...foreign, ...repeated] };
      },
    },
    database: {
      accountRows: async () => new Map(),
      scopesOfOtherInstances: async () => new Set(),
      sums: async (of: ReadonlyArray<object>) => of.map((counter) => ({ ...counter, spent: 0n })),
    },
    instanceUid: 'i',
    knownStore: { epoch: 1, storeCalls: 0 },
    metrics: { add: () => counted.push(1) },
    log,
    now: () => 0,
  } as unknown as StoreContext;
  await maintain(context, 1);
  expect(audited).toBe(500);
  expect(counted).toHaveLength(500);
  expect(log.lines.map(({ fields }) => fields?.others)).toEqual([undefined, undefined, undefined, undefined, 495]);
});
