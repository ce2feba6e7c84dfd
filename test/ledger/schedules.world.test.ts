// Random schedules of the ledger on accounts, and mutants that the search must find.
import { describe, expect, test } from 'vitest';
import type { Fault } from './schedules/execution.ts';
import { MUTANTS, searchIn } from './schedules/mutants.ts';
import { SMALL, WITH_STREAMS } from './schedules/scenarios.ts';
import { report, searchAll, searchAtRandom } from './schedules/search.ts';

// FAULT_DEVIATIONS=2 tries every pair: some hundred times as many.
const deviations = Number(process.env.FAULT_DEVIATIONS ?? 1);

describe('the ledger on accounts of two processes, four requests and three scopes', () => {
  test.each<{ name: string; faults: ReadonlyArray<Fault>; min: number; small?: typeof SMALL }>([
    { name: 'nothing fails', faults: [], min: 80 },
    { name: 'a call or an answer is lost', faults: ['lose'], min: 100 },
    { name: 'the store comes back empty', faults: ['wipe'], min: 100 },
    { name: 'the store comes back with a snapshot of any of its last thirty steps', faults: ['restore'], min: 400 },
    { name: 'a process dies and starts again on its disk', faults: ['die'], min: 150 },
    { name: 'a process is gone for good, and its disk too', faults: ['vanish'], min: 150 },
    { name: 'a disk refuses writes, and its process is killed', faults: ['full'], min: 150, small: WITH_STREAMS },
    { name: 'a process sleeps for longer than a rebuild waits', faults: ['freeze'], min: 150 },
    { name: 'a process sleeps for longer than a lease', faults: ['sleep'], min: 150 },
    { name: 'the store or PostgreSQL hangs, and runs its calls late', faults: ['hang'], min: 150 },
    { name: 'a process stops cleanly', faults: ['stop'], min: 150 },
    { name: 'a clock is set', faults: ['clock'], min: 150 },
    { name: 'a limit falls', faults: ['lower'], min: 100 },
    { name: 'a process audits all counters', faults: ['audit'], min: 100 },
    { name: 'our own error stops the application of an answer', faults: ['error'], min: 150 },
  ])(
    'wherever $name, or one step happens out of turn, the money is right',
    async ({ faults, min, small = SMALL }) => {
      const scenario = { ...small, faults: Object.fromEntries(faults.map((fault) => [fault, 1])) };
      const { schedules, found } = await searchAll(scenario, deviations);
      expect(report(found)).toBe('');
      expect(schedules).toBeGreaterThan(min);
    },
    deviations > 1 ? 3_600_000 : 60_000,
  );
});

test.each([3817, 16555, 18649, 22339, 30713, 43071, 90285, 153846])(
  'the schedule of seed %i, which was wrong once, is right',
  async (seed) => {
    expect(report(await searchAtRandom(seed, 1))).toBe('');
  },
);

// FAULT_SCHEDULES of functions/core/ledger/test/schedules.test.ts tries any number of them.
test('three hundred more random schedules', async () => {
  expect(report(await searchAtRandom(1_000_000, 300))).toBe('');
});

describe('the search finds', () => {
  test.each(MUTANTS)('$name', async ({ edits, scenario, from = 1 }) => {
    const { search, remove } = await searchIn(edits);
    try {
      expect(await search.firstFailing(from, 2000, scenario)).toBeDefined();
    } finally {
      remove();
    }
  });
});
