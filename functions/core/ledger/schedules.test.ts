import { expect, test } from 'vitest';
import { searchByChance, tell } from '../../../test/ledger/schedules/search.ts';

// FAULT_SCHEDULES=100000 goes on; FAULT_SEED=7 begins there.
const count = Number(process.env.FAULT_SCHEDULES ?? 500);
const first = Number(process.env.FAULT_SEED ?? 1);

test(
  'calls, answers, timers and faults in random order, hundreds of times: what completed is charged, once, no limit is exceeded, and all headroom returns',
  async () => {
    expect(tell(await searchByChance(first, count))).toBe('');
  },
  30_000 + count * 50,
);

// A store that is silent while a restart recovers, and runs a call late that was repeated, booked and forgotten.
test('a schedule that went wrong once goes right', async () => {
  expect(tell(await searchByChance(13_404, 1))).toBe('');
});
