// Schedules of the ledger by chance, and mutants of it that the search must find.
import { describe, expect, test } from 'vitest';
import type { Fault } from './schedules/course.ts';
import { MUTANTS, searchIn } from './schedules/mutants.ts';
import { SMALL } from './schedules/scenes.ts';
import { searchAll, searchByChance, tell } from './schedules/search.ts';

// FAULT_DEVIATIONS=2 tries every two: some hundred times as many.
const deviations = Number(process.env.FAULT_DEVIATIONS ?? 1);

describe('the real ledger of two processes, three requests and two scopes', () => {
  test.each<{ name: string; faults: ReadonlyArray<Fault>; least: number }>([
    { name: 'nothing fails', faults: [], least: 80 },
    { name: 'a call or an answer is lost', faults: ['lose'], least: 100 },
    { name: 'the store comes back empty', faults: ['wipe'], least: 100 },
    { name: 'the store comes back with a snapshot of any of its last thirty steps', faults: ['restore'], least: 400 },
    { name: 'a process dies and starts again on its disk', faults: ['die'], least: 150 },
    { name: 'a process is gone for good, and its disk too', faults: ['vanish'], least: 150 },
    { name: 'a process sleeps for longer than a rebuild waits', faults: ['freeze'], least: 150 },
    { name: 'a process sleeps for longer than a lease', faults: ['sleep'], least: 150 },
    { name: 'the store or PostgreSQL is silent, and does late what it was asked', faults: ['silence'], least: 150 },
  ])(
    'wherever $name, or one thing happens out of turn, the money is right',
    async ({ faults, least }) => {
      const scene = { ...SMALL, faults: Object.fromEntries(faults.map((fault) => [fault, 1])) };
      const { schedules, found } = await searchAll(scene, deviations);
      expect(tell(found)).toBe('');
      expect(schedules).toBeGreaterThan(least);
    },
    deviations > 1 ? 3_600_000 : 60_000,
  );
});

test('a thousand more schedules by chance', async () => {
  expect(tell(await searchByChance(1_000_000, 1000))).toBe('');
});

describe('the check would notice', () => {
  test.each(MUTANTS)('$name', async ({ edits, faults }) => {
    const { search, remove } = await searchIn(edits);
    try {
      expect(search.tell(await search.searchByChance(1, 4000, faults))).not.toBe('');
    } finally {
      remove();
    }
  });
});
