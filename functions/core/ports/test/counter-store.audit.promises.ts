// Promises of audits: counters become PostgreSQL's sums plus what is not booked yet, or nothing is repaired (LEDGER 6).
import { beforeEach, describe, expect, test } from 'vitest';
import type { AccountRow, AuditTerms } from '../counter-store.ts';
import type { Nano } from '../money.ts';
import {
  type AccountsUnderTest,
  accountsScenario,
  HOUR,
  type LimitedCounter,
  type Process,
} from './counter-store.scenario.promises.ts';

const row = (part: Partial<AccountRow> = {}): AccountRow => ({
  bookedBatch: 0,
  callNumber: 1,
  isClosed: false,
  isCharged: false,
  isClosing: false,
  ...part,
});

/** `make` as in `describeAccounts`, which runs this too. */
export function describeAudits(make: () => Promise<AccountsUnderTest>): void {
  describe('an audit', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, loadCounter, start, read, freeze, forget } = accountsScenario(() => under);
    const audit = (
      sums: ReadonlyArray<readonly [LimitedCounter, Nano, minSum?: Nano]>,
      rows: ReadonlyArray<readonly [Process, AccountRow]>,
      terms: Partial<AuditTerms> = {},
    ) =>
      under.store.audit(
        under.epoch,
        sums.map(([{ scopeId, window }, spent, minSum]) => ({ scopeId, window, spent, minSum })),
        new Map(rows.map(([{ account }, of]) => [account, of])),
        { storeCallsBefore: 0, deadline: under.now() + HOUR, ...terms },
      );
    const differenceOf = (of: LimitedCounter, amount: Nano) => ({
      scopeId: of.scopeId,
      window: of.window,
      by: amount,
    });
    const NO_DIFFERENCE = { outcome: 'done', differences: [], changedAccounts: [] };
    const freezeOwn = ({ account }: Process) => freeze(account);

    test('sets loaded counters to their sums, reports the differences, and leaves absent ones absent', async () => {
      const [more, less, same, absent] = [
        await loadCounter('more', 100n, 10n),
        await loadCounter('less', 100n, 10n),
        await loadCounter('same', 100n, 10n),
        counter('absent', 100n),
      ];
      const sums = [
        [more, 17n],
        [less, 4n],
        [same, 10n],
        [absent, 9n],
      ] as const;
      const report = await audit(sums, []);
      expect(report).toMatchObject({ outcome: 'done', changedAccounts: [] });
      const differences = report.outcome === 'done' ? report.differences : [];
      expect(new Map(differences.map((of) => [of.scopeId, of]))).toEqual(
        new Map([
          ['more', differenceOf(more, 7n)],
          ['less', differenceOf(less, -6n)],
        ]),
      );
      expect(await read(more, less, same, absent)).toEqual([[17n, 0n], [4n, 0n], [10n, 0n], undefined]);
      expect(await audit(sums, [])).toMatchObject(NO_DIFFERENCE);
    });

    test('adds what accounts have unbooked beyond the batches that PostgreSQL has', async () => {
      const key = await loadCounter('key', 100n);
      const [one, two] = [start(), start()];
      await one.report(key, { spend: 1n }, { batch: 1 });
      await one.report(key, { spend: 2n }, { batch: 2 });
      await two.report(key, { spend: 4n }, { batch: 1 });
      const twoRow = [two, row()] as const;
      expect(await audit([[key, 0n]], [[one, row()], twoRow])).toMatchObject(NO_DIFFERENCE);
      expect(await audit([[key, 1n]], [[one, row({ bookedBatch: 1 })], twoRow])).toMatchObject(NO_DIFFERENCE);
      expect(await audit([[key, 3n]], [[one, row({ bookedBatch: 2 })], twoRow])).toMatchObject(NO_DIFFERENCE);
      expect(await audit([[key, 8n]], [[one, row({ bookedBatch: 2 })], twoRow])).toMatchObject({
        differences: [differenceOf(key, 5n)],
      });
      expect(await read(key)).toEqual([[12n, 0n]]);
    });

    test('leaves escrow as it is: an account that reserves and has spent nothing needs no row', async () => {
      const [key, other] = [await loadCounter('key', 100n), await loadCounter('other', 100n)];
      await start().report(key, { carriedOver: 5n });
      await start().report(other, { spend: 3n });
      expect(await audit([[key, 2n]], [])).toMatchObject({ differences: [differenceOf(key, 2n)], changedAccounts: [] });
      expect(await read(key)).toEqual([[2n, 5n]]);
    });

    test('subtracts what a closed account has at risk where PostgreSQL has charged it, before the store has', async () => {
      const key = await loadCounter('key', 100n);
      const one = start();
      await one.reservation(30n, key);
      await one.report(key, { spend: 7n, risk: 20n }, { batch: 1 });
      await freezeOwn(one);
      // Charged: 20 at risk and 7 unbooked.
      expect(await audit([[key, 27n]], [[one, row({ isClosed: true, isCharged: true })]])).toMatchObject(NO_DIFFERENCE);
      expect(await read(key)).toEqual([[7n, 23n]]);
      await forget(one.account, true);
      expect(await audit([[key, 27n]], [[one, row({ isClosed: true, isCharged: true })]])).toMatchObject(NO_DIFFERENCE);
      expect(await read(key)).toEqual([[27n, 0n]]);
    });

    test('adds nothing of an account that was closed without a charge', async () => {
      const key = await loadCounter('key', 100n);
      const one = start();
      await one.report(key, { spend: 7n, risk: 20n }, { batch: 1 });
      await freezeOwn(one);
      const closed = row({ bookedBatch: 1, isClosed: true });
      expect(await audit([[key, 7n]], [[one, closed]])).toMatchObject(NO_DIFFERENCE);
      expect(await audit([[key, 0n]], [[one, { ...closed, bookedBatch: 0 }]])).toMatchObject({
        differences: [differenceOf(key, -7n)],
      });
      expect(await read(key)).toEqual([[0n, 0n]]);
    });

    describe('repairs nothing, and names the account,', () => {
      const unchanged = async (of: LimitedCounter, spent: Nano) => expect(await read(of)).toEqual([[spent, 0n]]);

      test('of which a batch has left after PostgreSQL was read', async () => {
        const [key, team] = [await loadCounter('key', 100n), await loadCounter('team', 100n)];
        const one = start();
        await one.report(key, { spend: 5n }, { batch: 1 });
        await one.call({ batch: 2, bookedBatch: 1 });
        const report = await audit(
          [
            [team, 9n],
            [key, 0n],
          ],
          [[one, row()]],
        );
        expect(report).toMatchObject({ outcome: 'done', differences: [], changedAccounts: [one.account] });
        await unchanged(key, 5n);
        await unchanged(team, 0n);
        expect(await audit([[key, 5n]], [[one, row({ bookedBatch: 1 })]])).toMatchObject(NO_DIFFERENCE);
      });

      test('that has spend and no row', async () => {
        const key = await loadCounter('key', 100n);
        const [one, two] = [start(), start()];
        await one.report(key, { spend: 5n });
        await two.report(key, { spend: 3n });
        expect(await audit([[key, 0n]], [[two, row()]])).toMatchObject({
          differences: [],
          changedAccounts: [one.account],
        });
        await unchanged(key, 8n);
      });

      test('of which PostgreSQL has charged some figures, or all of them after its row was read', async () => {
        const key = await loadCounter('key', 100n);
        const one = start();
        await one.report(key, { spend: 5n, risk: 2n });
        await freezeOwn(one);
        const closing = row({ isClosed: true, isClosing: true });
        const report = { differences: [], changedAccounts: [one.account] };
        expect(await audit([[key, 0n]], [[one, closing]])).toMatchObject(report);
        await forget(one.account, true);
        expect(await audit([[key, 0n]], [[one, closing]])).toMatchObject(report);
        await unchanged(key, 7n);
        const closed = row({ isClosed: true, isCharged: true });
        expect(await audit([[key, 7n]], [[one, closed]])).toMatchObject(NO_DIFFERENCE);
      });

      test('that was finished after its row was read', async () => {
        const key = await loadCounter('key', 100n);
        const one = start();
        await one.report(key, { spend: 5n, risk: 2n });
        await freezeOwn(one);
        await forget(one.account, true);
        expect(await audit([[key, 0n]], [[one, row()]])).toMatchObject({
          differences: [],
          changedAccounts: [one.account],
        });
        await unchanged(key, 7n);
        expect(await audit([[key, 7n]], [[one, row({ isClosed: true, isCharged: true })]])).toMatchObject(
          NO_DIFFERENCE,
        );
      });

      test('that came, booked and ended after PostgreSQL was read', async () => {
        const key = await loadCounter('key', 100n);
        const one = start();
        await one.report(key, { spend: 5n }, { batch: 1 });
        await one.call({ batch: 2, bookedBatch: 1, finishesAccount: true });
        expect(await audit([[key, 0n]], [])).toMatchObject({ differences: [], changedAccounts: [one.account] });
        await unchanged(key, 5n);
        expect(await audit([[key, 5n]], [[one, row({ bookedBatch: 1, isClosed: true })]])).toMatchObject(NO_DIFFERENCE);
      });
    });

    test('needs no rows of accounts whose spend was booked, or that ended, before PostgreSQL was read', async () => {
      const key = await loadCounter('key', 100n);
      const [one, two, closed] = [start(), start(), start()];
      await one.report(key, { spend: 5n, risk: 1n }, { batch: 1 });
      await one.call({ batch: 2, bookedBatch: 1 });
      await two.report(key, { spend: 7n }, { batch: 1 });
      await two.call({ batch: 2, bookedBatch: 1, finishesAccount: true });
      await closed.report(key, { spend: 2n, risk: 3n });
      await freezeOwn(closed);
      await forget(closed.account, true);
      const { storeCalls: storeCallsBefore } = await start().call();
      expect(await audit([[key, 17n]], [], { storeCallsBefore })).toMatchObject(NO_DIFFERENCE);
      expect(await audit([[key, 18n]], [], { storeCallsBefore })).toMatchObject({
        differences: [differenceOf(key, 1n)],
      });
      const all = await audit([[key, 18n]], []);
      expect(all.outcome === 'done' && all.changedAccounts.toSorted()).toEqual(
        [one.account, two.account, closed.account].toSorted(),
      );
    });

    test('needs the row of an account that ended without a counted call after PostgreSQL was read', async () => {
      const key = await loadCounter('key', 100n);
      const one = start();
      await one.report(key, { spend: 5n, risk: 2n });
      const frozen = await freezeOwn(one);
      const storeCallsBefore = 'storeCalls' in frozen ? frozen.storeCalls : 0;
      await forget(one.account, true);
      const report = { differences: [], changedAccounts: [one.account] };
      expect(await audit([[key, 0n]], [], { storeCallsBefore })).toMatchObject(report);
    });

    describe('by bounds', () => {
      const acceptsChangedAccounts = true;

      test('raises the counter of an account that has changed to its sum, and does not lower it', async () => {
        const [key, quiet] = [await loadCounter('key', 100n), await loadCounter('quiet', 100n, 10n)];
        const one = start();
        await one.report(key, { spend: 5n });
        const sums = (spent: Nano) => [[key, spent] as const, [quiet, 8n] as const];
        expect(await audit(sums(4n), [], { acceptsChangedAccounts })).toMatchObject({
          differences: [differenceOf(quiet, -2n)],
          changedAccounts: [],
        });
        expect(await audit(sums(7n), [], { acceptsChangedAccounts })).toMatchObject({
          differences: [differenceOf(key, 2n)],
        });
        expect(await read(key, quiet)).toEqual([
          [7n, 0n],
          [8n, 0n],
        ]);
      });

      test('lowers the counter of an account that has changed by what its sum lacks of an earlier bound', async () => {
        const key = await loadCounter('key', 100n, 10n);
        const [one, two] = [start(), start()];
        await one.report(key, { spend: 5n });
        await two.report(key, { spend: 4n });
        const first = await audit([[key, 9n]], [[two, row()]]);
        const minSums = first.outcome === 'done' ? first.minSums : [];
        expect(minSums).toEqual([{ scopeId: 'key', window: key.window, spent: 10n }]);
        await two.report(key, { spend: 2n }, { batch: 2 });
        expect(await audit([[key, 10n, 10n]], [], { acceptsChangedAccounts })).toMatchObject(NO_DIFFERENCE);
        const lowered = { differences: [differenceOf(key, -3n)], minSums: [] };
        expect(await audit([[key, 7n, 10n]], [], { acceptsChangedAccounts })).toMatchObject(lowered);
        expect(await read(key)).toEqual([[18n, 0n]]);
      });

      test('adds what is certainly not booked, and leaves out what PostgreSQL may have charged', async () => {
        const key = await loadCounter('key', 100n);
        const [known, changed, frozen] = [start(), start(), start()];
        await known.report(key, { spend: 5n });
        await changed.report(key, { spend: 3n });
        await changed.report(key, { spend: -1n }, { batch: 2 });
        await frozen.report(key, { spend: 4n, risk: 20n });
        await freezeOwn(frozen);
        // 11 in the store; the sum may contain 3, 4 and 20.
        const rows = [[known, row()]] as const;
        expect(await audit([[key, 27n]], rows, { acceptsChangedAccounts })).toMatchObject(NO_DIFFERENCE);
        expect(await audit([[key, 28n]], rows, { acceptsChangedAccounts })).toMatchObject({
          differences: [differenceOf(key, 1n)],
        });
      });
    });

    test('that arrives after its deadline does nothing', async () => {
      const key = await loadCounter('key', 100n, 10n);
      expect(await audit([[key, 3n]], [], { deadline: under.now() - 1000 })).toMatchObject(NO_DIFFERENCE);
      expect(await read(key)).toEqual([[10n, 0n]]);
    });
  });
}
