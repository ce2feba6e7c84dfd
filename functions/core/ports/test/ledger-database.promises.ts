// Promises of the ledger database, in memory or in PostgreSQL: batches.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Batch } from '../ledger-database.ts';
import type { ScopeWindow } from '../policy.ts';
import type { Recount } from '../registry.ts';
import { describeClosings } from './ledger-database.closing.promises.ts';
import {
  accountScenario,
  type LedgerDatabaseUnderTest,
  openLedgerDatabase,
} from './ledger-database.scenario.promises.ts';
import { HOUR, idAt, ledgerRowOf, NOON, scopeWindow } from './ledger-row.fixture.ts';

/** `make` returns the empty ledger database of an instance without an epoch; it is called once per test. */
export function describeLedgerDatabase(name: string, make: () => Promise<LedgerDatabaseUnderTest>): void {
  describe(`the ledger database in ${name}`, () => {
    let under: LedgerDatabaseUnderTest;
    let account: string;
    beforeEach(async () => {
      under = await openLedgerDatabase(make);
      account = crypto.randomUUID();
    });
    const { batch, book, close, spent, spentOfOne, rowOf } = accountScenario(() => under);

    describe('a batch', () => {
      test('is booked with its sums, and its account shows its number and that of its last call', async () => {
        const rows = [
          ledgerRowOf({ cost: 7n, scopeWindows: [scopeWindow(1), scopeWindow(2)] }),
          ledgerRowOf({ cost: 5n }),
        ];
        expect(await batch(account, 1, rows)).toEqual({ outcome: 'booked', rejected: [] });
        expect(await spent(scopeWindow(1), scopeWindow(2), scopeWindow(3))).toEqual([12n, 7n, 0n]);
        expect(await rowOf(account)).toEqual({
          bookedBatch: 1,
          callNumber: 10,
          isClosed: false,
          isCharged: false,
          isClosing: false,
        });
        expect([...(await under.database.bookedOf(rows.map(({ id }) => id))).values()]).toEqual([
          [{ kind: 'settled', cost: 7n }],
          [{ kind: 'settled', cost: 5n }],
        ]);
      });

      test('counts once, however often it is repeated, late or at the same time', async () => {
        const [first, second] = [[ledgerRowOf(), ledgerRowOf()], [ledgerRowOf()]];
        await Promise.all(Array.from({ length: 6 }, () => batch(account, 1, first)));
        await batch(account, 2, [...second, ...second]);
        await batch(account, 1, first);
        expect(await spentOfOne()).toBe(300n);
        expect(await rowOf(account)).toMatchObject({ bookedBatch: 2, callNumber: 20 });
      });

      test('with ledger rows that are there, some of them, adds the others only', async () => {
        const [existingRow, newRow] = [ledgerRowOf({ cost: 1n }), ledgerRowOf({ cost: 20n })];
        await batch(account, 1, [existingRow]);
        const correction = ledgerRowOf({ id: existingRow.id, kind: 'correction', cost: -300n });
        await batch(account, 2, [
          existingRow,
          { ...existingRow, cost: 999n },
          correction,
          newRow,
          { ...newRow, cost: 999n },
        ]);
        expect(await spentOfOne()).toBe(-279n);
      });

      test('without ledger rows still records its number', async () => {
        expect(await book(account, 3)).toBe('booked');
        expect(await rowOf(account)).toMatchObject({ bookedBatch: 3, callNumber: 30 });
      });

      test.each([0, 2])('of epoch %i books nothing while the epoch is 1', async (epoch) => {
        expect(await batch(account, 1, [ledgerRowOf()], { epoch })).toEqual({ outcome: 'epoch', rejected: [] });
        expect([await spentOfOne(), await rowOf(account)]).toEqual([0n, undefined]);
      });

      test('is refused as soon as the epoch is raised, and booked in the new one', async () => {
        await book(account, 1, 1n);
        await under.epochs.raise(1, 1);
        expect((await batch(account, 2, [ledgerRowOf()])).outcome).toBe('epoch');
        expect((await batch(account, 2, [ledgerRowOf({ cost: 20n })], { epoch: 2 })).outcome).toBe('booked');
        expect(await spentOfOne()).toBe(21n);
      });

      test('tells how many calls the store has done: the highest count of the epoch is remembered', async () => {
        for (const storeCalls of [5, 9, 7]) await batch(account, 1, [], { storeCalls });
        await batch(account, 1, [], { storeCalls: 70, epoch: 2 });
        expect((await under.epochs.state()).storeCalls).toBe(9);
        expect((await under.epochs.heartbeat('one', 1)).storeCalls).toBe(9);
        await close(account, [], { storeCalls: 11 });
        expect((await under.epochs.state()).storeCalls).toBe(11);
        await under.epochs.raise(1, 1);
        expect((await under.epochs.state()).storeCalls).toBe(0);
      });

      test('after an outage is booked whole, whatever its size', async () => {
        const rows = Array.from({ length: 12_000 }, (_, place) =>
          ledgerRowOf({ cost: 1n, scopeWindows: [scopeWindow(1), scopeWindow(2 + (place % 50))] }),
        );
        await batch(account, 1, rows.slice(4000, 9000));
        expect(await batch(account, 2, rows.toReversed())).toEqual({ outcome: 'booked', rejected: [] });
        expect(await spent(scopeWindow(1), scopeWindow(2), scopeWindow(51))).toEqual([12_000n, 240n, 240n]);
      });

      test.each([2n ** 53n - 1n, 2n ** 53n + 1n, 10n ** 14n + 1n, 10n ** 17n + 1n, 2n ** 63n - 1n])(
        'is exact to the nano-dollar: a hundred times %s',
        async (cost) => {
          const scopeWindows = [scopeWindow(1)];
          await batch(
            account,
            1,
            Array.from({ length: 100 }, () => ledgerRowOf({ cost, scopeWindows })),
          );
          expect(await spentOfOne()).toBe(100n * cost);
        },
      );

      test('of several accounts at the same time, over the same scopes in any order, loses nothing and does not deadlock', async () => {
        const scopes = Array.from({ length: 30 }, (_, number) => scopeWindow(number));
        const bookings = Array.from({ length: 8 }, (_, turn) => {
          const order = turn % 2 ? scopes : scopes.toReversed();
          const rows = order.map((of) => ledgerRowOf({ cost: 1n, scopeWindows: [of, scopeWindow(99)] }));
          return batch(crypto.randomUUID(), 1, turn % 3 ? rows : rows.toReversed());
        });
        await Promise.all(bookings);
        expect(await spent(...scopes, scopeWindow(99))).toEqual([...scopes.map(() => 8n), 240n]);
      });

      test.each<[string, Parameters<typeof ledgerRowOf>[0]]>([
        ['a negative cost that a request settled', { cost: -1n }],
        ['a cost beyond 64 bits', { cost: 2n ** 63n }],
        ['a text that PostgreSQL cannot store', { model: 'a\u0000b' }],
      ])('with %s loses that ledger row only, which counts as spent until a person decides', async (_, bad) => {
        const scopeWindows = [scopeWindow(1), scopeWindow(2)];
        const badRow = ledgerRowOf({ ...bad, scopeWindows });
        const rows = [ledgerRowOf(), badRow, ...Array.from({ length: 20 }, () => ledgerRowOf())];
        for (const number of [1, 1, 2])
          expect(await batch(account, number, rows)).toEqual({ outcome: 'booked', rejected: [badRow.id] });
        expect(await spent(...scopeWindows, scopeWindow(3))).toEqual([2100n + badRow.cost, badRow.cost, 0n]);
        expect((await under.database.bookedOf([badRow.id])).size).toBe(0);
      });
    });

    describe('the last batch of an account', () => {
      const closesAccount = true;

      test.each([1, 7])(
        'closes it with nothing charged, in whatever epoch (%i): later batches book nothing',
        async (epoch) => {
          await book(account, 1, 1n);
          expect(await batch(account, 2, [ledgerRowOf({ cost: 20n })], { closesAccount, epoch })).toMatchObject({
            outcome: 'booked',
          });
          expect(await rowOf(account)).toEqual({
            bookedBatch: 2,
            callNumber: 20,
            isClosed: true,
            isCharged: false,
            isClosing: false,
          });
          expect(await book(account, 3, 300n)).toBe('tooLate');
          expect(await spentOfOne()).toBe(21n);
        },
      );

      test('may be its first, and may be repeated', async () => {
        const rows = [ledgerRowOf()];
        for (const _ of [1, 2, 3])
          expect(await batch(account, 1, rows, { closesAccount })).toMatchObject({ outcome: 'booked' });
        expect([await spentOfOne(), await rowOf(account)]).toMatchObject([100n, { isClosed: true }]);
      });
    });

    describe('ledger rows of a process between two accounts', () => {
      const withoutAccount: Partial<Batch> = { account: undefined };

      test('are booked by their ids while the epoch is not open', async () => {
        await under.epochs.raise(1, 1);
        const rows = [ledgerRowOf(), ledgerRowOf()];
        for (const _ of [1, 2])
          expect(await batch('', 0, rows, { ...withoutAccount, epoch: 2, storeCalls: 9 })).toEqual({
            outcome: 'booked',
            rejected: [],
          });
        expect(await spentOfOne()).toBe(200n);
        // The calls were those of the store before.
        expect((await under.epochs.state()).storeCalls).toBe(0);
      });

      test.each([
        [1, 'tooLate'],
        [2, 'epoch'],
        [0, 'epoch'],
      ])('of epoch %i are not booked while epoch 1 is open: %s', async (epoch, outcome) => {
        expect((await batch('', 0, [ledgerRowOf()], { ...withoutAccount, epoch })).outcome).toBe(outcome);
        expect(await spentOfOne()).toBe(0n);
      });
    });

    test('rows answer for the accounts that are known', async () => {
      const accounts = Array.from({ length: 5 }, () => crypto.randomUUID());
      for (const [place, id] of accounts.slice(0, 3).entries()) await book(id, place + 1);
      expect(await under.database.accountRows(accounts)).toEqual(
        new Map(
          accounts
            .slice(0, 3)
            .map((id, at) => [
              id,
              { bookedBatch: at + 1, callNumber: 10 * (at + 1), isClosed: false, isCharged: false, isClosing: false },
            ]),
        ),
      );
      expect(await under.database.accountRows([])).toEqual(new Map());
    });

    describe('a counter that was never counted', () => {
      const [DERIVED, HOURS] = [5, { start: NOON - 2 * HOUR - 1000, end: NOON + 2 * HOUR }];
      const counted = (window = HOURS) => ({ ...scopeWindow(DERIVED, window), from: scopeWindow(1).scopeId });
      const rowAt = (time: number, cost: bigint, ...more: ReadonlyArray<ScopeWindow>) =>
        ledgerRowOf({ id: idAt(time), cost, scopeWindows: [scopeWindow(1), ...more] });
      const countFirst = (...all: ReadonlyArray<Recount>) => under.database.countFirst(all);

      test('gets what the other scope has spent in its window, and what is charged to it later is added', async () => {
        await batch(account, 1, [rowAt(HOURS.start - 1, 1n), rowAt(HOURS.start, 20n), rowAt(NOON, 300n)]);
        await countFirst(counted());
        expect(await spent(counted(), scopeWindow(1))).toEqual([320n, 321n]);
        await batch(account, 2, [rowAt(NOON + 1, 4000n, scopeWindow(DERIVED, HOURS))]);
        expect(await spent(counted(), scopeWindow(1))).toEqual([4320n, 4321n]);
      });

      test('is counted once, in its first window: in later ones everything is charged to it', async () => {
        await batch(account, 1, [rowAt(NOON, 20n)]);
        await Promise.all(Array.from({ length: 5 }, () => countFirst(counted(), counted())));
        await batch(account, 2, [rowAt(NOON, 300n), rowAt(NOON, 4000n, scopeWindow(DERIVED, HOURS))]);
        await countFirst(counted());
        expect(await spent(counted())).toEqual([4020n]);
        const next = { start: HOURS.end, end: HOURS.end + 4 * HOUR };
        await batch(account, 3, [rowAt(next.start, 5n)]);
        await countFirst(counted(next), counted());
        expect(await spent(counted(next), counted())).toEqual([0n, 4020n]);
      });

      test('without any spend is counted too, and many at the same time', async () => {
        await batch(account, 1, [rowAt(NOON, 20n)]);
        const many = Array.from({ length: 150 }, (_, place) => ({ ...counted(), ...scopeWindow(100 + place, HOURS) }));
        await countFirst(...many, { ...counted(), from: scopeWindow(2).scopeId });
        await batch(account, 2, [rowAt(NOON, 300n)]);
        await countFirst(...many, counted());
        expect(new Set(await spent(...many))).toEqual(new Set([20n]));
        expect(await spent(counted())).toEqual([0n]);
        await countFirst();
      });

      test('loses nothing that is charged to it while others still count it', async () => {
        await batch(account, 1, [rowAt(NOON, 20n)]);
        const count = async () => {
          await countFirst(counted());
          // From now on it is charged.
          await batch(crypto.randomUUID(), 1, [rowAt(NOON, 1n, scopeWindow(DERIVED, HOURS))]);
        };
        await Promise.all(Array.from({ length: 12 }, count));
        expect(await spent(counted())).toEqual([32n]);
      });
    });

    describeClosings(make);
  });
}
