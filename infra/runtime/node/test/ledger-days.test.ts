import { expect, test } from 'vitest';
import { silentLog } from '../../../../test/support/silent-log.ts';
import { maintainDays } from '../ledger-days.ts';

test.each([
  [60, ['ensureDays', 'dropDays 60']],
  ['forever', ['ensureDays', 'dropDays forever']],
  [undefined, ['ensureDays']],
] as const)('with RETAIN_DAYS %s (undefined: an archive) a resync calls %j', async (kept, expected) => {
  const calls: string[] = [];
  const database = {
    ensureDays: async () => void calls.push('ensureDays'),
    dropDays: async (days: number | 'forever') => {
      calls.push(`dropDays ${days}`);
      return [];
    },
  };
  await maintainDays(kept, database, { clock: { now: () => 0 }, log: silentLog });
  expect(calls).toEqual(expected);
});
