import { beforeEach, describe, expect, test } from 'vitest';
import type { Batch } from '../../ports/ledger-database.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, IMMORTAL, type Process } from './processes.fixture.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

/** More than two transactions of 20,000 additions, and less than four. */
const ROWS = 2600;
const scopes = Array.from({ length: 19 }, (_, place) => scopeOf(`scope-${place}`, 1_000_000_000n));
let scenario: Scenario;
let batches: Batch[];

beforeEach(() => {
  scenario = createScenario();
  batches = [];
  const { part } = scenario.database;
  const { bookBatch } = part;
  part.bookBatch = (batch) => {
    batches.push(batch);
    return bookBatch(batch);
  };
});

const largest = (): number =>
  Math.max(...batches.map(({ rows }) => rows.reduce((sum, { scopeWindows }) => sum + scopeWindows.length, 0)));
const booked = (): number => scenario.ledgerRows.all().filter(({ kind }) => kind === 'settled').length;
const charged = (): bigint => scenario.ledgerRows.all().reduce((sum, { cost }) => sum + cost, 0n);

/** A process with unbooked requests: PostgreSQL refuses. */
async function startWithBacklog(process: Process = IMMORTAL): Promise<StartableLedger> {
  const ledger = await scenario.start(process, scenario.folder);
  const requests = Array.from({ length: ROWS }, () => ledger.reserve(requestOf(10n, ...scopes)));
  const { value } = await scenario.ended(Promise.all(requests));
  scenario.setPostgres('refuses');
  await scenario.ended(Promise.all(value.map((each) => ledger.settle(heldOf(each), settlementOf(1n)))));
  await scenario.time.advance(1000);
  return ledger;
}

describe('a backlog of more additions than one transaction takes', () => {
  test('is booked by batches of bounded size', async () => {
    const ledger = await startWithBacklog();
    scenario.setPostgres('up');
    await scenario.time.advance(8000);
    expect([booked(), charged()]).toEqual([ROWS, BigInt(ROWS)]);
    expect(largest()).toBeLessThan(20_019);
    expect(await scenario.spent(ledger, scopeOf('scope-3', 1_000_000_000n))).toBe(BigInt(ROWS));
  });

  test('is charged in full, once, if process and disk are lost before, between or after its batches', async () => {
    for (const after of [0, 400, 900, 1500]) {
      scenario = createScenario();
      const process = createProcess();
      await startWithBacklog(process);
      scenario.setPostgres('up');
      await scenario.time.advance(after);
      process.is.dead = true;
      const next = await scenario.start();
      await scenario.time.advance(30_000);
      expect(await scenario.spent(next, scopeOf('scope-3', 1_000_000_000n))).toBe(BigInt(ROWS));
    }
  });

  test('is booked by a stop within its grace period, and the last transaction closes the account', async () => {
    const ledger = await startWithBacklog();
    scenario.setPostgres('up');
    batches.length = 0;
    const { millis } = await scenario.ended(ledger.close());
    expect(millis).toBeLessThanOrEqual(5000);
    expect([booked(), charged()]).toEqual([ROWS, BigInt(ROWS)]);
    expect(largest()).toBeLessThan(20_019);
    expect(batches.map(({ closesAccount = false }) => closesAccount).indexOf(true)).toBe(batches.length - 1);
    expect(await scenario.store.part.accounts(false, 100)).toEqual([]);
    expect(scenario.folder.records).toEqual([]);
  });

  test.each(['refuses', 'hangs'] as const)('is booked by a stop while the store %s', async (behaviour) => {
    const ledger = await startWithBacklog();
    scenario.store.behaviour = behaviour;
    scenario.setPostgres('up');
    await scenario.ended(ledger.close());
    expect([booked(), charged()]).toEqual([ROWS, BigInt(ROWS)]);
    expect(largest()).toBeLessThan(20_019);
    expect(scenario.folder.records).toEqual([]);
    scenario.store.behaviour = 'up';
    await scenario.start();
    await scenario.time.advance(30_000);
    expect(charged()).toBe(BigInt(ROWS));
  });

  test('in the journal of an earlier process is booked by batches of bounded size', async () => {
    const process = createProcess();
    await startWithBacklog(process);
    process.is.dead = true;
    scenario.setPostgres('up');
    batches.length = 0;
    const next = await scenario.start(IMMORTAL, scenario.folder);
    expect(await scenario.spent(next, scopeOf('scope-3', 1_000_000_000n))).toBe(BigInt(ROWS));
    await scenario.ended(next.flush());
    expect([booked(), charged()]).toEqual([ROWS, BigInt(ROWS)]);
    expect(largest()).toBeLessThan(20_019);
    await scenario.ended(next.maintain());
    expect(scenario.counted.get('gateway_operator_ledger_audit_differences_total')).toBe(0);
    expect(scenario.folder.records.filter(({ type }) => type !== 'account')).toEqual([]);
  });

  test('in the journal of an earlier process is charged once, if process and disk are lost between its batches', async () => {
    for (const after of [150, 300]) {
      scenario = createScenario();
      const [first, second] = [createProcess(), createProcess()];
      await startWithBacklog(first);
      first.is.dead = true;
      scenario.setPostgres('up');
      await scenario.start(second, scenario.folder);
      await scenario.time.advance(after);
      second.is.dead = true;
      const next = await scenario.start();
      await scenario.time.advance(30_000);
      await scenario.ended(next.maintain());
      expect(scenario.counted.get('gateway_operator_ledger_audit_differences_total')).toBe(0);
      expect(await scenario.spent(next, scopeOf('scope-3', 1_000_000_000n))).toBe(BigInt(ROWS));
    }
  });

  test('is booked by several transactions when the store is rebuilt', async () => {
    await startWithBacklog();
    batches.length = 0;
    scenario.wipe();
    scenario.setPostgres('up');
    await scenario.time.advance(8000);
    expect([booked(), charged()]).toEqual([ROWS, BigInt(ROWS)]);
    expect(largest()).toBeLessThan(20_019);
  });
});
