// Promises of a recount: the sum of another window, computed from the ledger rows inside it (LEDGER 5).
import { beforeEach, describe, expect, test } from 'vitest';
import type { Millis, Nano, Window } from '../money.ts';
import type { Recount } from '../registry.ts';
import { DAY, HOUR, idAt, ledgerRowOf, NOON, scopeNumber, scopeWindow, WINDOW } from './ledger-row.fixture.ts';
import { type LedgerRowsUnderTest, ledgerRowsScenario, openLedgerRows } from './ledger-rows.scenario.promises.ts';
import { scopeWrite } from './registry.scenario.promises.ts';

/** `make` as in `describeLedgerRows`, which runs this too. */
export function describeRecounts(make: () => Promise<LedgerRowsUnderTest>): void {
  describe('a recount', () => {
    let under: LedgerRowsUnderTest;
    beforeEach(async () => {
      under = await openLedgerRows(make);
    });
    const { book, spent } = ledgerRowsScenario(() => under);

    const team = scopeWrite('research', { kind: 'team' });
    const { scopeId } = team.policy;
    const recount = (...recounts: ReadonlyArray<Recount>) => under.registry.putScope({ ...team, recounts });
    const rowAt = (time: Millis, cost: Nano, window = WINDOW) =>
      ledgerRowOf({ id: idAt(time), cost, scopeWindows: [{ scopeId, window }, scopeWindow(1)] });

    test('makes the sum of the new window from the ledger rows reserved inside it: the start is included, the end is not', async () => {
      const day = { start: NOON - 5 * HOUR - 17_000, end: NOON + 3 * HOUR + 11_000 };
      const times = [day.start - 1, day.start, NOON - HOUR, NOON, NOON + 1, day.end - 1, day.end];
      await book(...times.map((time, place) => rowAt(time, 10n ** BigInt(place))));
      await recount({ scopeId, window: day });
      expect(await spent({ scopeId, window: day }, { scopeId, window: WINDOW })).toEqual([111_110n, 1_111_111n]);
    });

    test('is right for windows within an hour, on whole hours, and longer than anything booked', async () => {
      const times = [NOON - 2 * HOUR, NOON - HOUR, NOON - 1, NOON, NOON + 10_000, NOON + 59 * 60_000, NOON + HOUR];
      await book(...times.map((time, place) => rowAt(time, 10n ** BigInt(place))));
      const windows: ReadonlyArray<[Window, Nano]> = [
        [{ start: NOON, end: NOON + 10_000 }, 1_000n],
        [{ start: NOON + 1000, end: NOON + HOUR - 1000 }, 110_000n],
        [{ start: NOON - HOUR, end: NOON + HOUR }, 111_110n],
        [{ start: NOON - 1000, end: NOON + 1000 }, 1_100n],
        [{ start: NOON - 1000, end: NOON + HOUR }, 111_100n],
        [{ start: NOON - HOUR, end: NOON + 1000 }, 1_110n],
        [{ start: NOON - 36_525 * DAY, end: NOON + 36_525 * DAY }, 1_111_111n],
        [{ start: NOON + DAY, end: NOON + 2 * DAY }, 0n],
      ];
      for (const [window, expected] of windows) {
        await recount({ scopeId, window });
        expect(await spent({ scopeId, window })).toEqual([expected]);
      }
    });

    test('from 30 to 31 days and back neither refills nor loses a budget, with ledger rows booked in between', async () => {
      const thirty = { start: NOON - 10 * DAY, end: NOON + 20 * DAY };
      const thirtyOne = { start: NOON - 3 * DAY, end: NOON + 28 * DAY };
      await book(rowAt(NOON - 9 * DAY, 1n, thirty), rowAt(NOON - DAY, 20n, thirty));
      await recount({ scopeId, window: thirtyOne });
      expect(await spent({ scopeId, window: thirtyOne })).toEqual([20n]);
      await book(rowAt(NOON, 300n, thirtyOne));
      await recount({ scopeId, window: thirty });
      await recount({ scopeId, window: thirty });
      expect(await spent({ scopeId, window: thirty }, { scopeId, window: thirtyOne })).toEqual([321n, 320n]);
      await book(rowAt(NOON + 1, 4000n, thirty));
      expect(await spent({ scopeId, window: thirty })).toEqual([4321n]);
    });

    test('contains ledger rows of the old window that were reserved before the recount and booked after it', async () => {
      const day = { start: NOON - HOUR, end: NOON + HOUR };
      await book(rowAt(NOON, 1n));
      await recount({ scopeId, window: day });
      const late = rowAt(NOON - 1, 20n);
      await book(late, late, rowAt(day.start - 1, 300n), rowAt(day.end, 4000n));
      await book(late);
      expect(await spent({ scopeId, window: day }, { scopeId, window: WINDOW })).toEqual([21n, 4321n]);
    });

    test('counts the ledger rows of another scope where that is asked', async () => {
      const day = { start: NOON - HOUR, end: NOON + HOUR };
      const newScope = '0190a0b0-0000-8000-8000-00000000000f';
      await book(rowAt(NOON - HOUR - 1, 1n), rowAt(NOON, 20n), rowAt(NOON + HOUR, 300n));
      await recount({ scopeId: newScope, window: day, from: scopeId });
      expect(await spent({ scopeId: newScope, window: day }, { scopeId, window: WINDOW })).toEqual([20n, 321n]);
    });

    test('changes only its own scope', async () => {
      const day = { start: NOON - HOUR, end: NOON + HOUR };
      await book(rowAt(NOON, 5n));
      await recount({ scopeId, window: day });
      expect(await spent(scopeWindow(1, day), scopeWindow(1))).toEqual([0n, 5n]);
    });

    test('of several scopes goes with one policy, of unclaimed scopes too: a key and its model budgets', async () => {
      const [day, hours] = [
        { start: NOON - DAY, end: NOON },
        { start: NOON - HOUR, end: NOON + HOUR },
      ];
      const model = scopeWindow(1, hours);
      await book(rowAt(NOON - HOUR - 1, 1n), rowAt(NOON - 1, 20n), rowAt(NOON, 300n));
      await recount({ scopeId, window: day }, model);
      expect(await spent({ scopeId, window: day }, model)).toEqual([21n, 320n]);
      await book(rowAt(NOON - 2, 4000n));
      expect(await spent({ scopeId, window: day }, model)).toEqual([4021n, 4320n]);
    });

    test('of many windows that begin and end at different times of the same hours is right for each', async () => {
      const times = Array.from({ length: 40 }, (_, place) => NOON - HOUR + place * 180_000);
      await book(...times.map((time) => rowAt(time, BigInt(time - NOON + 2 * HOUR))));
      const windows = times.map((time, place) => ({ start: time + (place % 3) - 1, end: NOON + place * 60_001 + 1 }));
      const counters = windows.map((window, place) => ({ scopeId: scopeNumber(900 + place), window }));
      await recount(...counters.map((counter) => ({ ...counter, from: scopeId })));
      const sumOf = ({ start, end }: Window) =>
        times
          .filter((time) => time >= start && time < end)
          .reduce((sum, time) => sum + BigInt(time - NOON + 2 * HOUR), 0n);
      expect(await spent(...counters)).toEqual(windows.map(sumOf));
    });

    test('in the middle of bookings loses none of them and counts none twice', async () => {
      const [hours, days] = [{ start: NOON - HOUR, end: NOON + HOUR }, WINDOW];
      const writers = Array.from({ length: 6 }, async () => {
        for (let turn = 0; turn < 10; turn += 1) {
          await book(...Array.from({ length: 5 }, (_, place) => rowAt(NOON + place, 1n, turn % 2 ? hours : days)));
        }
      });
      for (let turn = 0; turn < 7; turn += 1) await recount({ scopeId, window: turn % 2 ? days : hours });
      await Promise.all(writers);
      expect(await spent({ scopeId, window: hours })).toEqual([300n]);
      await recount({ scopeId, window: days });
      expect(await spent({ scopeId, window: days })).toEqual([300n]);
    });
  });
}
