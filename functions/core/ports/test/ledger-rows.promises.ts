// Promises of ledger rows, in memory or in PostgreSQL.
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { LedgerReader, LedgerRow } from '../ledger-rows.ts';
import type { Nano } from '../money.ts';
import type { ScopeWindow } from '../policy.ts';
import { DAY, HOUR, idAt, ledgerRowOf, NOON, scopeWindow, WINDOW } from './ledger-row.fixture.ts';
import { describeRecounts } from './ledger-rows.recount.promises.ts';
import {
  INSTANCE,
  type LedgerRowsUnderTest,
  ledgerRowsScenario,
  openLedgerRows,
} from './ledger-rows.scenario.promises.ts';
import { scopeWrite } from './registry.scenario.promises.ts';

/** `make` returns empty ledger rows; it is called once per test. */
export function describeLedgerRows(name: string, make: () => Promise<LedgerRowsUnderTest>): void {
  describe(`the ledger rows in ${name}`, () => {
    let under: LedgerRowsUnderTest;
    let ledgerRows: LedgerReader;
    beforeEach(async () => {
      under = await openLedgerRows(make);
      ({ ledgerRows } = under);
    });
    const { book, spent } = ledgerRowsScenario(() => under);

    test('a ledger row is charged to every charged scope, each in its own window', async () => {
      const tomorrow = { start: NOON, end: NOON + DAY };
      await book(ledgerRowOf({ cost: 7n, scopeWindows: [scopeWindow(1), scopeWindow(2, tomorrow), scopeWindow(3)] }));
      await book(ledgerRowOf({ cost: 5n, scopeWindows: [scopeWindow(3)] }));
      expect(await spent(scopeWindow(1), scopeWindow(2, tomorrow), scopeWindow(3))).toEqual([7n, 7n, 12n]);
    });

    test('a key that moved to another instance takes its scope and its model budgets with it, and no other scope', async () => {
      const [uid, hash, model] = ['instance-2', 'a'.repeat(64), '00000000-0000-8000-8000-00000000000a'];
      const { registry } = under;
      await registry.openInstance({ uid, namespace: 'apps', name: 'other' });
      const [own, moving] = [scopeWrite('own'), scopeWrite('billing', { value: { hash } })];
      const { scopeId } = moving.policy;
      const scopes = [scopeId, model, own.policy.scopeId, scopeWindow(7).scopeId];
      const ofModel = { scopeId: model, model: 'gpt', limit: '1', duration: '1d' };
      const policy = { ...moving.policy, furtherBudgets: [ofModel], retained: 'billing-key' };
      for (const write of [own, { ...moving, policy }]) expect(await registry.putScope(write)).toBe('written');
      expect(await ledgerRows.scopesOfOtherInstances(INSTANCE, scopes)).toEqual(new Set());
      const movedWrite = { ...moving, policy, instanceUid: uid, alias: 'brought', proof: hash };
      expect(await registry.putScope(movedWrite)).toBe('written');
      expect(await ledgerRows.scopesOfOtherInstances(INSTANCE, scopes)).toEqual(new Set([scopeId, model]));
      expect(await ledgerRows.scopesOfOtherInstances(uid, [scopeId])).toEqual(new Set());
      expect(await ledgerRows.scopesOfOtherInstances(INSTANCE, [])).toEqual(new Set());
    });

    test('sums answer in the order of the question, and a window without ledger rows is zero', async () => {
      await book(ledgerRowOf());
      const counters = [scopeWindow(9), scopeWindow(1), scopeWindow(1, { start: 0, end: 1 }), scopeWindow(1)];
      expect(await ledgerRows.sums(counters)).toEqual(
        counters.map((of, place) => ({ ...of, spent: place % 2 ? 100n : 0n })),
      );
      expect(await ledgerRows.sums([])).toEqual([]);
    });

    test('windows are distinguished by both edges', async () => {
      const longer = { ...WINDOW, end: WINDOW.end + 1 };
      await book(ledgerRowOf({ cost: 1n }), ledgerRowOf({ cost: 2n, scopeWindows: [scopeWindow(1, longer)] }));
      expect(await spent(scopeWindow(1), scopeWindow(1, longer))).toEqual([1n, 2n]);
    });

    test('a ledger row counts once: in one batch, in the next, and in concurrent batches', async () => {
      const row = ledgerRowOf();
      await book(row, { ...row, cost: 999n }, row);
      await book(row, ledgerRowOf());
      await Promise.all(Array.from({ length: 8 }, () => book(row, ledgerRowOf({ cost: 1n }))));
      expect(await spent(scopeWindow(1))).toEqual([208n]);
    });

    test('the cost of a reservation is the sum of its ledger rows, negative corrections included', async () => {
      const id = idAt(NOON);
      await book(ledgerRowOf({ id, kind: 'expired', cost: 90n }));
      await book(
        ledgerRowOf({ id, kind: 'correction', cost: -60n }),
        ledgerRowOf({ id, kind: 'correction', cost: -60n }),
      );
      expect(await spent(scopeWindow(1))).toEqual([30n]);
      expect(await ledgerRows.bookedOf([id])).toEqual(
        new Map([
          [
            id,
            [
              { kind: 'correction', cost: -60n },
              { kind: 'expired', cost: 90n },
            ],
          ],
        ]),
      );
    });

    test('the ledger rows of many ids are read together, unknown ids left out', async () => {
      const [one, other] = [ledgerRowOf(), ledgerRowOf({ id: idAt(NOON - 400 * DAY), kind: 'expired' })];
      await book(one, other);
      expect(await ledgerRows.bookedOf([one.id, other.id, idAt(NOON)])).toEqual(
        new Map([
          [one.id, [{ kind: 'settled', cost: 100n }]],
          [other.id, [{ kind: 'expired', cost: 100n }]],
        ]),
      );
      expect(await ledgerRows.bookedOf([])).toEqual(new Map());
    });

    test('a ledger row without scopes is kept all the same', async () => {
      const row = ledgerRowOf({ scopeWindows: [] });
      expect(await book(row)).toEqual({ rejected: [] });
      expect((await ledgerRows.bookedOf([row.id])).get(row.id)).toEqual([{ kind: 'settled', cost: 100n }]);
    });

    test('an empty batch is nothing', async () => {
      expect(await book()).toEqual({ rejected: [] });
    });

    test.each([
      0n,
      2n ** 53n - 1n,
      2n ** 53n + 1n,
      10n ** 14n - 1n,
      10n ** 14n + 1n,
      10n ** 17n + 1n,
      10n ** 18n + 1n,
      2n ** 63n - 1n,
    ])('sums are exact to the nano-dollar: a hundred and one times %s', async (cost) => {
      await book(...Array.from({ length: 100 }, () => ledgerRowOf({ cost })));
      await book(ledgerRowOf({ cost }));
      expect(await spent(scopeWindow(1))).toEqual([cost * 101n]);
    });

    test('ledger rows of any month are booked, the distant past and future too', async () => {
      const times = [0, Date.UTC(1999, 11, 31, 23, 59, 59, 999), Date.UTC(2000, 0, 1), NOON, Date.UTC(2101, 1, 1)];
      const rows = times.map((time) => ledgerRowOf({ id: idAt(time) }));
      expect(await book(...rows)).toEqual({ rejected: [] });
      expect(await spent(scopeWindow(1))).toEqual([500n]);
      expect((await ledgerRows.bookedOf(rows.map(({ id }) => id))).size).toBe(times.length);
    });

    test.each<[string, Partial<LedgerRow>]>([
      ['a negative cost that a request settled', { cost: -1n }],
      ['a cost beyond 64 bits', { cost: 2n ** 63n }],
      ['a text that PostgreSQL cannot store', { model: 'a\u0000b' }],
    ])('%s is rejected and reported, the rest of its batch is booked, and it counts as spent', async (_, bad) => {
      const rest = Array.from({ length: 20 }, () => ledgerRowOf());
      const refused = ledgerRowOf(bad);
      const [before, after] = [rest.slice(0, 13), rest.slice(13)];
      expect(await book(...before, refused, ...after)).toEqual({ rejected: [refused.id] });
      expect(await spent(scopeWindow(1))).toEqual([2000n + refused.cost]);
      expect(await book(refused)).toEqual({ rejected: [refused.id] });
      expect(await spent(scopeWindow(1))).toEqual([2000n + refused.cost]);
    });

    test('a rejected row counts in the window that an edit has put in the place of the one that it charged', async () => {
      const refused = ledgerRowOf({ model: 'a\u0000b' });
      await book(refused);
      const time = NOON;
      const windows = [
        { start: time, end: time + 1 },
        { start: time - HOUR, end: time },
        { start: time + 1, end: time + HOUR },
      ];
      expect(await spent(...windows.map((window) => scopeWindow(1, window)))).toEqual([refused.cost, 0n, 0n]);
      expect(await spent(scopeWindow(2, windows[0]))).toEqual([0n]);
    });

    test('concurrent batches over the same scopes, in any order, lose nothing and do not deadlock', async () => {
      const scopes = Array.from({ length: 30 }, (_, number) => scopeWindow(number));
      const batches = Array.from({ length: 12 }, (_, turn) =>
        scopes.map((_, place) => {
          const first = (place * 7 + turn * 11) % scopes.length;
          return ledgerRowOf({
            cost: 1n,
            scopeWindows: turn % 2 ? scopes.slice(first) : scopes.slice(first).reverse(),
          });
        }),
      );
      await Promise.all(batches.map((batch) => book(...batch)));
      const expected = scopes.map(({ scopeId }) =>
        batches
          .flat()
          .reduce((sum, { scopeWindows }) => sum + (scopeWindows.some((of) => of.scopeId === scopeId) ? 1n : 0n), 0n),
      );
      expect(await spent(...scopes)).toEqual(expected);
    });

    test('concurrent batches with the same ledger rows in opposite orders do not deadlock', async () => {
      for (let round = 1; round <= 4; round += 1) {
        const rows = Array.from({ length: 1000 }, () => ledgerRowOf({ cost: 1n }));
        await Promise.all(Array.from({ length: 4 }, (_, turn) => book(...(turn % 2 ? rows : rows.toReversed()))));
        expect(await spent(scopeWindow(1))).toEqual([BigInt(round) * 1000n]);
      }
    });

    test('a sum is the sum of its ledger rows after any batches and repeats', async () => {
      const amount = fc.oneof(fc.bigInt(0n, 2n ** 63n - 1n), fc.constantFrom(0n, 1n, 2n ** 53n + 1n, 10n ** 17n + 1n));
      const windows = [WINDOW, { start: NOON, end: NOON + DAY }];
      const of = fc.record({ scope: fc.nat(3), window: fc.constantFrom(...windows) });
      const rowShape = fc.record({
        cost: amount,
        scopeWindows: fc.uniqueArray(of, { selector: ({ scope }) => scope, maxLength: 4 }),
      });
      const batches = fc.array(fc.array(fc.nat(9), { maxLength: 8 }), { maxLength: 6 });
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(rowShape, { minLength: 10, maxLength: 10 }), batches, async (all, plan) => {
          round += 1000;
          const rows = all.map(({ cost, scopeWindows }) =>
            ledgerRowOf({
              cost,
              scopeWindows: scopeWindows.map(({ scope, window }) => scopeWindow(round + scope, window)),
            }),
          );
          for (const places of plan) await book(...places.flatMap((place) => rows[place] ?? []));
          const bookedRows = [...new Set(plan.flat())].flatMap((place) => rows[place] ?? []);
          const counters = [0, 1, 2, 3].flatMap((scope) => windows.map((window) => scopeWindow(round + scope, window)));
          expect(await spent(...counters)).toEqual(counters.map((each) => naiveSum(bookedRows, each)));
        }),
        { numRuns: runs(30) },
      );
    });

    describeRecounts(make);
  });
}

function naiveSum(rows: ReadonlyArray<LedgerRow>, { scopeId, window }: ScopeWindow): Nano {
  return rows
    .filter(({ scopeWindows }) => scopeWindows.some((of) => of.scopeId === scopeId && of.window.end === window.end))
    .reduce((sum, { cost }) => sum + cost, 0n);
}
