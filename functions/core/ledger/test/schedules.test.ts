import { expect, test } from 'vitest';
import { report, searchAtRandom } from '../../../../test/ledger/schedules/search.ts';
import { runs } from '../../../../test/support/runs.ts';

// FAULT_SCHEDULES=100000 runs that many; FAULT_SEED=7 starts at that seed.
const count = Number(process.env.FAULT_SCHEDULES ?? runs(1250));
const first = Number(process.env.FAULT_SEED ?? 1);

test(
  'calls, answers, timers and faults in random order, hundreds of times: completed replies are charged once, no limit is exceeded, and all headroom returns',
  async () => {
    expect(report(await searchAtRandom(first, count))).toBe('');
  },
  30_000 + count * 50,
);
