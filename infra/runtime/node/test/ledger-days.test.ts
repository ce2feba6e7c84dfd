import { expect, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { maintainDays } from '../ledger-days.ts';

/** The calls of a resync, of which the failing ones reject. */
async function callsOf(kept: number | 'forever' | undefined, ...failing: ReadonlyArray<string>) {
  const calls: string[] = [];
  const log = createMemoryLog();
  const add = async (call: string, name = call) => {
    calls.push(call);
    if (failing.includes(name)) throw new Error(`${name} takes too long`);
  };
  const database = {
    ensureDays: () => add('ensureDays'),
    dropDays: async (days: number | 'forever') => {
      await add(`dropDays ${days}`, 'dropDays');
      return [];
    },
    sumUpUsage: () => add('sumUpUsage'),
  };
  await maintainDays(kept, database, { clock: { now: () => 0 }, log });
  return { calls, warnings: log.lines.map(({ message, fields }) => `${message}: ${fields?.why}`) };
}

test.each([
  [60, ['ensureDays', 'dropDays 60', 'sumUpUsage']],
  ['forever', ['ensureDays', 'dropDays forever', 'sumUpUsage']],
  [undefined, ['ensureDays', 'sumUpUsage']],
] as const)('with RETAIN_DAYS %s (undefined: an archive) a resync calls %j', async (kept, calls) => {
  expect(await callsOf(kept)).toEqual({ calls, warnings: [] });
});

test('days are dropped if usage cannot be summed up, and usage is summed up if days cannot be dropped', async () => {
  const { calls, warnings } = await callsOf(60, 'dropDays', 'sumUpUsage');
  expect(calls).toEqual(['ensureDays', 'dropDays 60', 'sumUpUsage']);
  expect(warnings).toEqual([
    'cannot make or drop days of ledger rows: dropDays takes too long',
    'cannot sum up usage: sumUpUsage takes too long',
  ]);
});
