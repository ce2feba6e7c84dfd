// What do all books promise, in memory or in PostgreSQL?
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Books, Entry } from './books.ts';
import type { Millis, Nano, Window } from './money.ts';
import type { ScopeId, ScopeWindow } from './policy.ts';
import type { Registry } from './registry.ts';

export interface BooksUnderTest {
  readonly books: Books;
  /** Over the same books: recounts are written with a policy. */
  readonly registry: Registry;
}

const INSTANCE = 'instance-1';
const HOUR: Millis = 3_600_000;
const DAY = 24 * HOUR;
const NOON = Date.UTC(2026, 10, 15, 12);
const WINDOW: Window = { start: NOON - 10 * DAY, end: NOON + 20 * DAY };

let made = 0;
/** A UUIDv7 of that instant, never the same twice. */
export function idAt(time: Millis): string {
  made += 1;
  const head = time.toString(16).padStart(12, '0');
  return `${head.slice(0, 8)}-${head.slice(8)}-7000-8000-${made.toString(16).padStart(12, '0')}`;
}

export function scopeNumber(number: number): ScopeId {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

const scopeWindow = (number: number, window = WINDOW): ScopeWindow => ({ scopeId: scopeNumber(number), window });

export function entryOf(more: Partial<Entry> = {}): Entry {
  return {
    id: idAt(NOON),
    kind: 'settled',
    charges: [scopeWindow(1)],
    cost: 100n,
    tokens: { input: 10, output: 20, cachedInput: 3, cacheWrite: 4 },
    model: 'small',
    identifier: 'small-1',
    estimated: false,
    settledAt: NOON + 1500,
    ...more,
  };
}

/** `make` answers empty books; it is called once per test. */
export function describeBooks(name: string, make: () => Promise<BooksUnderTest>): void {
  describe(`the books in ${name}`, () => {
    let books: Books;
    let registry: Registry;

    beforeEach(async () => {
      ({ books, registry } = await make());
      await registry.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
    });

    const book = (...entries: ReadonlyArray<Entry>) => books.book(INSTANCE, entries);
    const spent = async (...of: ReadonlyArray<ScopeWindow>) => (await books.sums(of)).map((sum) => sum.spent);

    test('an entry is charged to every scope that pays it, each in its own window', async () => {
      const tomorrow = { start: NOON, end: NOON + DAY };
      await book(entryOf({ cost: 7n, charges: [scopeWindow(1), scopeWindow(2, tomorrow), scopeWindow(3)] }));
      await book(entryOf({ cost: 5n, charges: [scopeWindow(3)] }));
      expect(await spent(scopeWindow(1), scopeWindow(2, tomorrow), scopeWindow(3))).toEqual([7n, 7n, 12n]);
    });

    test('sums answer in the order of the question, and a window without entries is zero', async () => {
      await book(entryOf());
      const asked = [scopeWindow(9), scopeWindow(1), scopeWindow(1, { start: 0, end: 1 }), scopeWindow(1)];
      expect(await books.sums(asked)).toEqual(asked.map((of, place) => ({ ...of, spent: place % 2 ? 100n : 0n })));
      expect(await books.sums([])).toEqual([]);
    });

    test('windows are told apart by both edges', async () => {
      const longer = { ...WINDOW, end: WINDOW.end + 1 };
      await book(entryOf({ cost: 1n }), entryOf({ cost: 2n, charges: [scopeWindow(1, longer)] }));
      expect(await spent(scopeWindow(1), scopeWindow(1, longer))).toEqual([1n, 2n]);
    });

    test('an entry counts once: in one batch, in the next, and in batches at the same time', async () => {
      const entry = entryOf();
      await book(entry, { ...entry, cost: 999n }, entry);
      await book(entry, entryOf());
      await Promise.all(Array.from({ length: 8 }, () => book(entry, entryOf({ cost: 1n }))));
      expect(await spent(scopeWindow(1))).toEqual([208n]);
    });

    test('what a hold cost in the end is the sum of its kinds, corrections below zero included', async () => {
      const id = idAt(NOON);
      await book(entryOf({ id, kind: 'expired', cost: 90n }));
      await book(entryOf({ id, kind: 'correction', cost: -60n }), entryOf({ id, kind: 'correction', cost: -60n }));
      expect(await spent(scopeWindow(1))).toEqual([30n]);
      expect(await books.bookedOf([id])).toEqual(
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

    test('the entries of many ids are told at once, unknown ids left out', async () => {
      const [one, other] = [entryOf(), entryOf({ id: idAt(NOON - 400 * DAY), kind: 'expired' })];
      await book(one, other);
      expect(await books.bookedOf([one.id, other.id, idAt(NOON)])).toEqual(
        new Map([
          [one.id, [{ kind: 'settled', cost: 100n }]],
          [other.id, [{ kind: 'expired', cost: 100n }]],
        ]),
      );
      expect(await books.bookedOf([])).toEqual(new Map());
    });

    test('an entry that nobody pays is kept all the same', async () => {
      const entry = entryOf({ charges: [] });
      expect(await book(entry)).toEqual({ rejected: [] });
      expect((await books.bookedOf([entry.id])).get(entry.id)).toEqual([{ kind: 'settled', cost: 100n }]);
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
      await book(...Array.from({ length: 100 }, () => entryOf({ cost })));
      await book(entryOf({ cost }));
      expect(await spent(scopeWindow(1))).toEqual([cost * 101n]);
    });

    test('entries of any month are booked, the ages before and after this one too', async () => {
      const times = [0, Date.UTC(1999, 11, 31, 23, 59, 59, 999), Date.UTC(2000, 0, 1), NOON, Date.UTC(2101, 1, 1)];
      const entries = times.map((time) => entryOf({ id: idAt(time) }));
      expect(await book(...entries)).toEqual({ rejected: [] });
      expect(await spent(scopeWindow(1))).toEqual([500n]);
      expect((await books.bookedOf(entries.map(({ id }) => id))).size).toBe(times.length);
    });

    test.each<[string, Partial<Entry>]>([
      ['a negative cost that is no correction', { cost: -1n }],
      ['a cost beyond 64 bits', { cost: 2n ** 63n }],
      ['a text that no database holds', { model: 'a\u0000b' }],
    ])('%s is put aside and told, and never stops the rest of its batch', async (_, bad) => {
      const rest = Array.from({ length: 20 }, () => entryOf());
      const refused = entryOf(bad);
      const [before, after] = [rest.slice(0, 13), rest.slice(13)];
      expect(await book(...before, refused, ...after)).toEqual({ rejected: [refused.id] });
      expect(await spent(scopeWindow(1))).toEqual([2000n]);
      expect(await book(refused)).toEqual({ rejected: [refused.id] });
      expect(await spent(scopeWindow(1))).toEqual([2000n]);
    });

    test('batches at the same time over the same scopes, in any order, lose nothing and do not wait for ever', async () => {
      const scopes = Array.from({ length: 30 }, (_, number) => scopeWindow(number));
      const batches = Array.from({ length: 12 }, (_, turn) =>
        scopes.map((_, place) => {
          const first = (place * 7 + turn * 11) % scopes.length;
          return entryOf({ cost: 1n, charges: turn % 2 ? scopes.slice(first) : scopes.slice(first).reverse() });
        }),
      );
      await Promise.all(batches.map((batch) => book(...batch)));
      const expected = scopes.map(({ scopeId }) =>
        batches.flat().reduce((sum, { charges }) => sum + (charges.some((of) => of.scopeId === scopeId) ? 1n : 0n), 0n),
      );
      expect(await spent(...scopes)).toEqual(expected);
    });

    test('batches with the same entries in opposite orders at the same time do not wait for ever', async () => {
      for (let round = 1; round <= 4; round += 1) {
        const entries = Array.from({ length: 1000 }, () => entryOf({ cost: 1n }));
        await Promise.all(Array.from({ length: 4 }, (_, turn) => book(...(turn % 2 ? entries : entries.toReversed()))));
        expect(await spent(scopeWindow(1))).toEqual([BigInt(round) * 1000n]);
      }
    });

    test('whatever is booked, in whatever batches and repeats: a sum is the sum of its entries', async () => {
      const amount = fc.oneof(fc.bigInt(0n, 2n ** 63n - 1n), fc.constantFrom(0n, 1n, 2n ** 53n + 1n, 10n ** 17n + 1n));
      const windows = [WINDOW, { start: NOON, end: NOON + DAY }];
      const of = fc.record({ scope: fc.nat(3), window: fc.constantFrom(...windows) });
      const drawn = fc.record({
        cost: amount,
        charges: fc.uniqueArray(of, { selector: ({ scope }) => scope, maxLength: 4 }),
      });
      const batches = fc.array(fc.array(fc.nat(9), { maxLength: 8 }), { maxLength: 6 });
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(drawn, { minLength: 10, maxLength: 10 }), batches, async (all, plan) => {
          round += 1000;
          const entries = all.map(({ cost, charges }) =>
            entryOf({ cost, charges: charges.map(({ scope, window }) => scopeWindow(round + scope, window)) }),
          );
          for (const places of plan) await book(...places.flatMap((place) => entries[place] ?? []));
          const booked = [...new Set(plan.flat())].flatMap((place) => entries[place] ?? []);
          const asked = [0, 1, 2, 3].flatMap((scope) => windows.map((window) => scopeWindow(round + scope, window)));
          expect(await spent(...asked)).toEqual(asked.map((each) => naiveSum(booked, each)));
        }),
        { numRuns: 30 },
      );
    });

    describe('a recount', () => {
      const claimed = async () => {
        const outcome = await registry.claim(INSTANCE, 'team', 'research', {
          uid: 'u',
          namespace: 'apps',
          name: 'team',
        });
        if (!outcome.won) throw new Error('the only claim was lost');
        return outcome.claim;
      };
      const recount = async (window: Window) => {
        const { scopeId, anchor, alias } = await claimed();
        const policy = { scopeId, kind: 'team' as const, name: alias, blocked: false, models: [], anchor };
        await registry.writePolicies(INSTANCE, [{ policy, recounts: [{ scopeId: policy.scopeId, window }] }]);
      };
      const paidAt = (scopeId: ScopeId, time: Millis, cost: Nano, window = WINDOW) =>
        entryOf({ id: idAt(time), cost, charges: [{ scopeId, window }, scopeWindow(1)] });

      test('makes the sum of the new window from the entries held inside it: its start belongs to it, its end does not', async () => {
        const { scopeId } = await claimed();
        const day = { start: NOON - 5 * HOUR - 17_000, end: NOON + 3 * HOUR + 11_000 };
        const times = [day.start - 1, day.start, NOON - HOUR, NOON, NOON + 1, day.end - 1, day.end];
        await book(...times.map((time, place) => paidAt(scopeId, time, 10n ** BigInt(place))));
        await recount(day);
        expect(await spent({ scopeId, window: day }, { scopeId, window: WINDOW })).toEqual([111_110n, 1_111_111n]);
      });

      test('is right for windows within an hour, on whole hours, and longer than anything booked', async () => {
        const { scopeId } = await claimed();
        const times = [NOON - 2 * HOUR, NOON - HOUR, NOON - 1, NOON, NOON + 10_000, NOON + 59 * 60_000, NOON + HOUR];
        await book(...times.map((time, place) => paidAt(scopeId, time, 10n ** BigInt(place))));
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
          await recount(window);
          expect(await spent({ scopeId, window })).toEqual([expected]);
        }
      });

      test('from 30 to 31 days and back neither refills nor loses a budget, with entries booked in between', async () => {
        const { scopeId } = await claimed();
        const thirty = { start: NOON - 10 * DAY, end: NOON + 20 * DAY };
        const thirtyOne = { start: NOON - 3 * DAY, end: NOON + 28 * DAY };
        await book(paidAt(scopeId, NOON - 9 * DAY, 1n, thirty), paidAt(scopeId, NOON - DAY, 20n, thirty));
        await recount(thirtyOne);
        expect(await spent({ scopeId, window: thirtyOne })).toEqual([20n]);
        await book(paidAt(scopeId, NOON, 300n, thirtyOne));
        await recount(thirty);
        await recount(thirty);
        expect(await spent({ scopeId, window: thirty }, { scopeId, window: thirtyOne })).toEqual([321n, 320n]);
        await book(paidAt(scopeId, NOON + 1, 4000n, thirty));
        expect(await spent({ scopeId, window: thirty })).toEqual([4321n]);
      });

      test('also has what was held before it and booked after it, out of the old window', async () => {
        const { scopeId } = await claimed();
        const day = { start: NOON - HOUR, end: NOON + HOUR };
        await book(paidAt(scopeId, NOON, 1n));
        await recount(day);
        const late = paidAt(scopeId, NOON - 1, 20n);
        await book(late, late, paidAt(scopeId, day.start - 1, 300n), paidAt(scopeId, day.end, 4000n));
        await book(late);
        expect(await spent({ scopeId, window: day }, { scopeId, window: WINDOW })).toEqual([21n, 4321n]);
      });

      test('is about its own scope only', async () => {
        const { scopeId } = await claimed();
        const day = { start: NOON - HOUR, end: NOON + HOUR };
        await book(paidAt(scopeId, NOON, 5n));
        await recount(day);
        expect(await spent(scopeWindow(1, day), scopeWindow(1))).toEqual([0n, 5n]);
      });

      test('of several scopes goes with one policy, of such as nobody claims too: a key and its budgets for models', async () => {
        const { scopeId, anchor, alias } = await claimed();
        const [day, hours] = [
          { start: NOON - DAY, end: NOON },
          { start: NOON - HOUR, end: NOON + HOUR },
        ];
        const model = scopeWindow(1, hours);
        await book(paidAt(scopeId, NOON - HOUR - 1, 1n), paidAt(scopeId, NOON - 1, 20n), paidAt(scopeId, NOON, 300n));
        const policy = { scopeId, kind: 'team' as const, name: alias, blocked: false, models: [], anchor };
        await registry.writePolicies(INSTANCE, [{ policy, recounts: [{ scopeId, window: day }, model] }]);
        expect(await spent({ scopeId, window: day }, model)).toEqual([21n, 320n]);
        await book(paidAt(scopeId, NOON - 2, 4000n));
        expect(await spent({ scopeId, window: day }, model)).toEqual([4021n, 4320n]);
      });

      test('in the middle of bookings loses none of them and counts none twice', async () => {
        const { scopeId } = await claimed();
        const [hours, days] = [{ start: NOON - HOUR, end: NOON + HOUR }, WINDOW];
        const writers = Array.from({ length: 6 }, async () => {
          for (let turn = 0; turn < 10; turn += 1) {
            await book(
              ...Array.from({ length: 5 }, (_, place) => paidAt(scopeId, NOON + place, 1n, turn % 2 ? hours : days)),
            );
          }
        });
        for (let turn = 0; turn < 7; turn += 1) await recount(turn % 2 ? days : hours);
        await Promise.all(writers);
        expect(await spent({ scopeId, window: hours })).toEqual([300n]);
        await recount(days);
        expect(await spent({ scopeId, window: days })).toEqual([300n]);
      });
    });
  });
}

function naiveSum(entries: ReadonlyArray<Entry>, { scopeId, window }: ScopeWindow): Nano {
  return entries
    .filter(({ charges }) => charges.some((of) => of.scopeId === scopeId && of.window.end === window.end))
    .reduce((sum, { cost }) => sum + cost, 0n);
}
