// Promises of closing an account: charged once, by one closer, and corrected once (LEDGER 3).
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { AccountFigures } from '../counter-store.ts';
import type { Millis, Nano } from '../money.ts';
import {
  accountScenario,
  figuresOf,
  type LedgerDatabaseUnderTest,
  openLedgerDatabase,
} from './ledger-database.scenario.promises.ts';
import { DAY, idAt, ledgerRowOf, NOON, scopeWindow, WINDOW } from './ledger-row.fixture.ts';
import { scopeWrite } from './registry.scenario.promises.ts';

const timeIn = (id: string): Millis => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

/** `make` as in `describeLedgerDatabase`, which runs this too. */
export function describeClosings(make: () => Promise<LedgerDatabaseUnderTest>): void {
  describe('a closing', () => {
    let under: LedgerDatabaseUnderTest;
    let account: string;
    beforeEach(async () => {
      under = await openLedgerDatabase(make);
      account = crypto.randomUUID();
    });
    const { batch, book, close, spent, spentOfOne, rowOf } = accountScenario(() => under);
    const CLOSED = { isClosed: true, isCharged: true, isClosing: false };

    test('charges each counter what was at risk, and the batches that PostgreSQL does not have', async () => {
      await book(account, 1, 1n);
      const figures = [figuresOf(scopeWindow(1), 5000n, 1n, 20n, 300n), figuresOf(scopeWindow(2), 0n, 7n, 40n)];
      const row = { bookedBatch: 1, callNumber: 10, ...CLOSED };
      expect(await close(account, figures)).toMatchObject({ outcome: 'closed', row });
      expect(await spent(scopeWindow(1), scopeWindow(2))).toEqual([5321n, 40n]);
      expect(await rowOf(account)).toEqual(row);
    });

    test('of an account that nobody has booked for charges all of it', async () => {
      expect(await close(account, [figuresOf(scopeWindow(1), 5n, 40n)])).toMatchObject({
        row: { bookedBatch: 0, ...CLOSED },
      });
      expect(await spentOfOne()).toBe(45n);
    });

    test('of figures from before a call that PostgreSQL knows of charges nothing: the store has gone back', async () => {
      await book(account, 1, 1n);
      expect(await close(account, [figuresOf(scopeWindow(1), 5n)], { callNumber: 9 })).toEqual({ outcome: 'wentBack' });
      expect(await rowOf(account)).toMatchObject({ isClosed: false });
      expect(await close(account, [figuresOf(scopeWindow(1), 5n)], { callNumber: 10 })).toMatchObject({ row: CLOSED });
    });

    test('is done once: other closers, with whatever figures, learn that it is closed', async () => {
      const closers = Array.from({ length: 6 }, (_, at) => close(account, [figuresOf(scopeWindow(1), BigInt(at + 1))]));
      const closed = await Promise.all(closers);
      expect(closed).toMatchObject(closed.map(() => ({ outcome: 'closed', row: CLOSED })));
      expect(closed.filter((one) => 'ledgerRows' in one && one.ledgerRows.length > 0)).toHaveLength(1);
      const charged = await spentOfOne();
      expect(charged).toBeGreaterThan(0n);
      await close(account, [figuresOf(scopeWindow(1), 100n)]);
      await close(account, []);
      expect(await spentOfOne()).toBe(charged);
      expect(await under.database.uncorrectedRows([account])).toHaveLength(1);
    });

    describe('in pages', () => {
      const page = (isLast: boolean, ...figures: ReadonlyArray<AccountFigures>) => close(account, figures, { isLast });
      const CLOSING = { isClosed: true, isCharged: false, isClosing: true };

      test('ends with its last page, and charges each counter once, whoever repeats a page', async () => {
        const of = [0, 1, 2, 3].map((place) => figuresOf(scopeWindow(place), 5n, 40n));
        expect(await page(false, ...of.slice(0, 2))).toMatchObject({ outcome: 'closed', row: CLOSING });
        expect(await rowOf(account)).toMatchObject(CLOSING);
        expect(await spent(...of)).toEqual([45n, 45n, 0n, 0n]);
        expect(await page(false, ...of.slice(1, 3))).toMatchObject({ row: CLOSING, ledgerRows: [{ cost: 45n }] });
        const both = await Promise.all([page(true, ...of), page(true, ...of)]);
        expect(both).toMatchObject(both.map(() => ({ outcome: 'closed', row: CLOSED })));
        expect(await page(false, figuresOf(scopeWindow(9), 5n))).toMatchObject({ row: CLOSED, ledgerRows: [] });
        expect(await spent(...of, scopeWindow(9))).toEqual([45n, 45n, 45n, 45n, 0n]);
        expect(await under.database.uncorrectedRows([account])).toHaveLength(4);
      });

      test('ends the bookings of the account with the first page', async () => {
        await book(account, 1, 1n);
        await page(false, figuresOf(scopeWindow(2), 5n));
        expect(await book(account, 2, 300n)).toBe('tooLate');
        expect((await batch(account, 2, [ledgerRowOf()], { closesAccount: true })).outcome).toBe('tooLate');
        await page(true, figuresOf(scopeWindow(1), 20n, 1n, 300n));
        expect(await spent(scopeWindow(1), scopeWindow(2))).toEqual([321n, 5n]);
      });

      test('ends if the process of the account closes it: no later page charges', async () => {
        await book(account, 1, 1n);
        await page(false, figuresOf(scopeWindow(2), 5n));
        expect((await batch(account, 0, [], { closesAccount: true })).outcome).toBe('booked');
        const row = { bookedBatch: 1, callNumber: 10, isClosed: true, isCharged: false, isClosing: false };
        expect(await rowOf(account)).toEqual(row);
        const closed = { outcome: 'closed', row, ledgerRows: [] };
        expect(await page(true, figuresOf(scopeWindow(1), 20n))).toEqual(closed);
        expect(await spent(scopeWindow(1), scopeWindow(2))).toEqual([1n, 5n]);
        expect(await under.database.uncorrectedRows([account])).toHaveLength(1);
      });

      test('is not in progress any more in the next epoch, in which no page charges', async () => {
        await page(false, figuresOf(scopeWindow(1), 5n));
        await under.epochs.raise(1, 1);
        await under.epochs.open(2);
        expect(await rowOf(account)).toMatchObject({ isClosed: true, isClosing: false });
        expect(await page(true, figuresOf(scopeWindow(2), 5n))).toEqual({ outcome: 'epoch' });
        expect(await spent(scopeWindow(1), scopeWindow(2))).toEqual([5n, 0n]);
      });
    });

    test('ends the bookings of the account; a batch that was booked before stays booked', async () => {
      const rows = [ledgerRowOf({ cost: 1n })];
      await batch(account, 1, rows);
      await close(account, [figuresOf(scopeWindow(1), 20n)]);
      expect(await book(account, 2, 300n)).toBe('tooLate');
      expect((await batch(account, 2, [ledgerRowOf()], { closesAccount: true })).outcome).toBe('tooLate');
      expect((await batch(account, 1, rows)).outcome).toBe('booked');
      expect(await spentOfOne()).toBe(21n);
      expect(await rowOf(account)).toEqual({ bookedBatch: 1, callNumber: 10, ...CLOSED });
    });

    test('after the clean end of an account charges nothing', async () => {
      await batch(account, 4, [ledgerRowOf()], { closesAccount: true });
      const row = { bookedBatch: 4, callNumber: 40, isClosed: true, isCharged: false, isClosing: false };
      expect(await close(account, [figuresOf(scopeWindow(1), 5n)])).toMatchObject({ outcome: 'closed', row });
      expect(await spentOfOne()).toBe(100n);
    });

    test('of an account that the store does not have charges nothing', async () => {
      expect(await close(account, [])).toMatchObject({ outcome: 'closed', row: CLOSED });
      expect(await close(account, [figuresOf(scopeWindow(1), 5n)])).toMatchObject({ outcome: 'closed', row: CLOSED });
      expect([await spentOfOne(), await book(account, 1, 1n)]).toEqual([0n, 'tooLate']);
    });

    test.each([0, 2])('of epoch %i does nothing while the epoch is 1', async (epoch) => {
      expect(await close(account, [figuresOf(scopeWindow(1), 5n)], { epoch })).toEqual({ outcome: 'epoch' });
      expect([await spentOfOne(), await rowOf(account)]).toEqual([0n, undefined]);
    });

    test('before an epoch is open charges what is in all sums that the store loads: the store does not charge it', async () => {
      const row = { isClosed: true, isCharged: false };
      await under.epochs.raise(1, 1);
      const closeEarly = () => close(account, [figuresOf(scopeWindow(1), 5n)], { epoch: 2, isRebuild: true });
      expect(await closeEarly()).toMatchObject({ outcome: 'closed', row });
      expect(await spentOfOne()).toBe(5n);
      await under.epochs.open(2);
      expect(await closeEarly()).toEqual({ outcome: 'epoch' });
      expect(await rowOf(account)).toMatchObject(row);
      expect(await under.database.uncorrectedRows([account])).toHaveLength(1);
    });

    test.each<[string, Nano, Nano, Nano]>([
      ['nothing at risk and nothing unbooked', 0n, 0n, 0n],
      ['risk that an unbooked correction takes back', 5n, -5n, 0n],
      ['an unbooked correction that is more than the risk', 5n, -45n, -40n],
    ])('with %s charges the total, which may be nothing or negative', async (_, risk, unbooked, total) => {
      await book(account, 1, 100n);
      expect(await close(account, [figuresOf(scopeWindow(1), risk, 0n, unbooked)])).toMatchObject({ row: CLOSED });
      expect(await spentOfOne()).toBe(100n + total);
      const expiredRows = (await under.database.uncorrectedRows([account])).map((row) => row.spent);
      expect(expiredRows).toEqual(total === 0n ? [] : [total]);
    });

    test.each([2n ** 53n + 1n, 10n ** 14n + 1n, 10n ** 17n + 1n, 2n ** 62n])('is exact: %s', async (risk) => {
      await close(account, [figuresOf(scopeWindow(1), risk, risk - 1n)]);
      expect(await spentOfOne()).toBe(2n * risk - 1n);
    });

    test.each([
      ['inside it, at the time of the closing', NOON, NOON],
      ['at its last millisecond where it is over', WINDOW.end + DAY, WINDOW.end - 1],
      ['at its start where the clock is behind it', WINDOW.start - DAY, WINDOW.start],
    ])('makes ledger rows of the charged window: %s', async (_, at, time) => {
      const counters = Array.from({ length: 30 }, (__, number) => figuresOf(scopeWindow(number), 5n));
      await close(account, counters, { at });
      const expiredRows = await under.database.uncorrectedRows([account]);
      expect(new Set(expiredRows.map(({ id }) => id)).size).toBe(30);
      expect(expiredRows.map(({ id }) => timeIn(id))).toEqual(expiredRows.map(() => time));
    });

    test('is seen by a recount where its window has the time of the charge', async () => {
      const team = scopeWrite('research', { kind: 'team' });
      const { scopeId } = team.policy;
      await close(account, [figuresOf({ scopeId, window: WINDOW }, 5n)], { at: WINDOW.end + DAY });
      const last = { start: WINDOW.end - DAY, end: WINDOW.end };
      const next = { start: WINDOW.end, end: WINDOW.end + DAY };
      for (const window of [next, last]) await under.registry.putScope({ ...team, recounts: [{ scopeId, window }] });
      expect(await spent({ scopeId, window: last }, { scopeId, window: next })).toEqual([5n, 0n]);
    });

    test('is taken back by corrections under the ids of its expired rows, once', async () => {
      const [one, other] = [scopeWindow(1), scopeWindow(2)];
      await close(account, [figuresOf(one, 5n, 40n), figuresOf(other, 0n, -7n)]);
      const expiredRows = await under.database.uncorrectedRows([account, crypto.randomUUID()]);
      expect(expiredRows.map(({ id: _, ...row }) => row)).toEqual(
        expect.arrayContaining([
          { ...one, spent: 45n },
          { ...other, spent: -7n },
        ]),
      );
      const corrections = expiredRows.map(({ id, spent: cost, ...of }) =>
        ledgerRowOf({ id, kind: 'correction', cost: -cost, scopeWindows: [of] }),
      );
      const next = crypto.randomUUID();
      await batch(next, 1, corrections.slice(0, 1));
      expect(await under.database.uncorrectedRows([account])).toEqual(expiredRows.slice(1));
      await batch(next, 2, corrections);
      expect(await under.database.uncorrectedRows([account])).toEqual([]);
      expect(await spent(one, other)).toEqual([0n, 0n]);
      expect(await under.database.uncorrectedRows([])).toEqual([]);
    });

    test('that races with a batch charges the batch, or finds it booked', async () => {
      for (let round = 0; round < 8; round += 1) {
        const [id, of] = [crypto.randomUUID(), scopeWindow(1000 + round)];
        const rows = [ledgerRowOf({ cost: 40n, scopeWindows: [of] })];
        const figures = [figuresOf(of, 5n, 40n)];
        await Promise.all([batch(id, 1, rows), close(id, figures), batch(id, 1, rows), close(id, figures)]);
        expect(await spent(of)).toEqual([45n]);
      }
    });

    test('of an account that is one request, on Workers, is done by its ledger row or charges it', async () => {
      for (let round = 0; round < 8; round += 1) {
        const [id, of] = [idAt(NOON), scopeWindow(1000 + round)];
        const rows = [ledgerRowOf({ id, cost: 40n, scopeWindows: [of] })];
        const steps = [
          () => close(id, [figuresOf(of, 90n)]),
          () => batch(id, 1, rows, { closesAccount: true }),
          () => batch(id, 1, rows, { closesAccount: true }),
        ];
        const [closed] = await Promise.all(steps.map((_, place) => steps[(place + round) % 3]?.()));
        const isCharged = (await under.database.uncorrectedRows([id])).length > 0;
        expect(await spent(of)).toEqual([isCharged ? 90n : 40n]);
        expect(await rowOf(id)).toMatchObject({ isClosed: true, isCharged });
        expect(await close(id, [figuresOf(of, 90n)])).toMatchObject({ row: { isClosed: true, isCharged } });
        expect(closed).toBeDefined();
      }
    });

    test('in any order with batches and repeats leaves each nano-dollar charged once', async () => {
      const step = fc.constantFrom('book', 'repeat', 'close', 'last');
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 7 }), async (steps) => {
          round += 1;
          const [id, of] = [crypto.randomUUID(), scopeWindow(2000 + round)];
          const costs = [1n, 20n, 300n, 4000n, 50_000n, 600_000n, 7_000_000n];
          const batches = costs.map((cost) => [ledgerRowOf({ cost, scopeWindows: [of] })]);
          let [bookedBatch, ending] = [0, ''];
          for (const name of steps) {
            if (name === 'repeat' && bookedBatch > 0) await batch(id, bookedBatch, batches[bookedBatch - 1] ?? []);
            if (name === 'close') await close(id, [figuresOf(of, 90_000_000n, ...costs)]);
            if (name === 'book' || name === 'last')
              await batch(id, bookedBatch + 1, batches[bookedBatch] ?? [], { closesAccount: name === 'last' });
            if (ending === '' && (name === 'book' || name === 'last')) bookedBatch += 1;
            if (ending === '' && (name === 'close' || name === 'last')) ending = name;
          }
          const all = costs
            .slice(0, ending === 'close' ? costs.length : bookedBatch)
            .reduce((sum, cost) => sum + cost, 0n);
          expect(await spent(of)).toEqual([all + (ending === 'close' ? 90_000_000n : 0n)]);
        }),
        { numRuns: runs(40) },
      );
    });
  });
}
