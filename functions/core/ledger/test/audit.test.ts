import { beforeEach, describe, expect, test } from 'vitest';
import { idAt } from '../../ports/test/ledger-row.fixture.ts';
import type { StartableLedger } from '../ledger.ts';
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

  test('that finds its counters booked in at each attempt says so', async () => {
    await one.settle(await scenario.take(one, 30n, key), settlementOf(25n));
    await scenario.time.advance(500);
    const { part } = scenario.database;
    let booked = 0;
    const rows: typeof part.rows = async (accounts) => {
      booked += 1;
      return new Map(accounts.map((id) => [id, { bookedBatch: booked, number: 1, isClosed: false, isCharged: false }]));
    };
    scenario.database.part = { ...part, rows };
    await scenario.ended(one.maintain());
    expect(scenario.counted.get('gateway_operator_ledger_failures_total')).toBe(1);
    expect(scenario.log.lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('changed during every audit'),
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
