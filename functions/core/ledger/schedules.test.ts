import { expect, test } from 'vitest';
import { report, searchAtRandom } from '../../../test/ledger/schedules/search.ts';
import { runs } from '../../../test/runs.ts';

// FAULT_SCHEDULES=100000 runs that many; FAULT_SEED=7 starts at that seed.
const count = Number(process.env.FAULT_SCHEDULES ?? runs(500));
const first = Number(process.env.FAULT_SEED ?? 1);

test(
  'calls, answers, timers and faults in random order, hundreds of times: completed replies are charged once, no limit is exceeded, and all headroom returns',
  async () => {
    expect(report(await searchAtRandom(first, count))).toBe('');
  },
  30_000 + count * 50,
);

test.each([
  // A store that hangs during recovery, and runs a call late that was repeated, booked and forgotten.
  13_404,
  // A settlement whose answer was lost, from a process that then slept while another booked it.
  19_129,
])('a schedule that went wrong once goes right (seed %i)', async (seed) => {
  expect(report(await searchAtRandom(seed, 1))).toBe('');
});
