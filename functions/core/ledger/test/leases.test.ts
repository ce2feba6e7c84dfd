// Leases of accounts: they measure the silence of a process, not of the store.
import { expect, test } from 'vitest';
import type { StartableLedger } from '../ledger.ts';
import { IMMORTAL } from './processes.fixture.ts';
import { createScenario, scopeOf } from './scenario.promises.ts';

test('a store that was away for longer than leases last, without a loss, ends no stream: every process is back within a moment', async () => {
  const scenario = createScenario();
  const key = scopeOf('key', 100_000n);
  const [ledgers, closed]: [StartableLedger[], number[]] = [[], []];
  for (let index = 0; index < 4; index += 1) {
    const ledger = await scenario.start(IMMORTAL, { records: [] });
    ledgers.push(ledger);
    await scenario.time.advance(137 * (index + 1));
    const reservation = await scenario.take(ledger, 100n, key);
    ledger.trackStream(
      reservation,
      () => 5n,
      () => closed.push(index),
    );
  }
  await scenario.time.advance(2000);
  scenario.store.behaviour = 'refuses';
  await scenario.time.advance(25_000);
  scenario.store.behaviour = 'up';
  await scenario.time.advance(10_000);
  expect(closed).toEqual([]);
  expect(scenario.ledgerRows.all()).toEqual([]);
});
