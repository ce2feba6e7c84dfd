// Promises of escrow: set aside ahead of requests, spent, returned, carried over. Idle escrow causes no refusal (LEDGER
// 1, 3).
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AccountsUnderTest,
  accountsScenario,
  changeOf,
  LEASE,
  requestOf,
} from './counter-store.scenario.promises.ts';

/** `make` as in `describeAccounts`, which runs this too. */
export function describeEscrow(make: () => Promise<AccountsUnderTest>): void {
  describe('escrow', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { loadCounter, start, read, freeze } = accountsScenario(() => under);
    const figuresOf = async (account: string) => {
      const reply = await freeze(account);
      return reply.outcome === 'frozen' ? reply.figures : undefined;
    };

    describe('ahead of requests', () => {
      test('is granted whole, up to a sixteenth of what is left, and is not at risk', async () => {
        const key = await loadCounter('key', 1000n, 200n);
        const one = start();
        expect(await one.report(key, { ahead: 51n })).toMatchObject({ escrowOfAll: 0n, escrow: 0n });
        expect(await one.report(key, { ahead: 50n })).toMatchObject({ escrowOfAll: 50n, escrow: 50n });
        expect(await figuresOf(one.account)).toMatchObject([{ escrow: 50n, risk: 0n }]);
      });

      test('is judged by what is left beside the escrow that is there: its process counts its own', async () => {
        const key = await loadCounter('key', 1000n, 200n);
        const one = start();
        await one.report(key, { ahead: 40n });
        // 760 are left, a sixteenth is 47.
        expect(await one.report(key, { ahead: 48n })).toMatchObject({ escrow: 40n });
        expect(await one.report(key, { ahead: 47n })).toMatchObject({ escrow: 87n });
      });

      test('is divided among the live accounts', async () => {
        const key = await loadCounter('key', 960n);
        const [one, two, three] = [start(), start(LEASE), start()];
        await two.call();
        await three.call();
        expect(await one.report(key, { ahead: 21n })).toMatchObject({ escrow: 0n });
        expect(await one.report(key, { ahead: 20n })).toMatchObject({ escrow: 20n });
        await under.advance(LEASE + 1);
        expect(await three.report(key, { ahead: 30n })).toMatchObject({ escrow: 0n });
        expect(await three.report(key, { ahead: 29n })).toMatchObject({ escrow: 29n });
      });

      test('comes after the requests of the same call, and not where one of them was refused', async () => {
        const [key, team] = [await loadCounter('key', 1000n), await loadCounter('team', 1000n)];
        const changes = [changeOf(key, { ahead: 32n }), changeOf(team, { ahead: 32n })];
        const one = start();
        const reply = await one.call({ changes, requests: [requestOf(500n), requestOf(1001n)] });
        expect(reply.replies).toMatchObject([{ outcome: 'reserved' }, { outcome: 'exceeded' }]);
        expect(reply.counters).toMatchObject([{ escrow: 500n }, { escrow: 32n }]);
        const next = await one.call({
          changes: [changeOf(key, { ahead: 1n })],
          requests: [requestOf(400n), requestOf(101n)],
        });
        expect(next.counters).toMatchObject([{ escrow: 900n }]);
      });

      test('is never granted near the limit, and is not needed without one', async () => {
        const [key, free] = [await loadCounter('key', 100n, 85n), await loadCounter('free')];
        expect(await start().report(key, { ahead: 1n })).toMatchObject({ escrow: 0n });
        expect(await start().report(free, { ahead: 1n })).toMatchObject({ escrow: 0n, escrowOfAll: 0n });
      });
    });

    describe('that somebody waits for', () => {
      test('is wanted for a second, as the replies to all other accounts show', async () => {
        const key = await loadCounter('key', 1000n);
        const [one, two, three] = [start(), start(), start()];
        await one.report(key, { ahead: 60n });
        expect(await two.reservation(990n, key)).toMatchObject({ outcome: 'held' });
        expect(await one.report(key, {})).toMatchObject({ isWantedByOthers: true });
        expect(await one.repeat()).toMatchObject({ counters: [{ isWantedByOthers: true }] });
        expect(await two.report(key, {})).toMatchObject({ isWantedByOthers: false });
        expect(await three.report(key, { ahead: 1n })).toMatchObject({ isWantedByOthers: true, escrow: 0n });
        expect(await three.reservation(1n, key)).toMatchObject({ outcome: 'reserved' });
        await under.advance(1001);
        expect(await one.report(key, {})).toMatchObject({ isWantedByOthers: false });
        expect(await three.report(key, { ahead: 1n })).toMatchObject({ isWantedByOthers: false, escrow: 2n });
      });

      test('is wanted by each who was refused, also by two at the same time', async () => {
        const key = await loadCounter('key', 10n);
        const [one, two, three] = [start(), start(), start()];
        await one.reservation(10n, key);
        await two.reservation(1n, key);
        await three.reservation(1n, key);
        expect(await two.report(key, {})).toMatchObject({ isWantedByOthers: true });
        expect(await three.report(key, {})).toMatchObject({ isWantedByOthers: true });
      });

      test('is not wanted by a request that spend refuses', async () => {
        const key = await loadCounter('key', 10n, 10n);
        await start().reservation(1n, key);
        expect(await start().report(key, {})).toMatchObject({ isWantedByOthers: false });
      });
    });

    describe('that is settled', () => {
      test('turns into spend, and what is returned is free', async () => {
        const key = await loadCounter('key', 100n);
        const one = start();
        await one.reservation(50n, key);
        expect(await one.report(key, { spend: 20n, returned: 10n, risk: 20n })).toMatchObject({
          spent: 20n,
          escrowOfAll: 20n,
          escrow: 20n,
        });
        expect(await start().reservation(61n, key)).toMatchObject({ outcome: 'held' });
        expect(await start().reservation(60n, key)).toMatchObject({ outcome: 'reserved' });
      });

      test('may be less than the spend: the rest of it counts too, above the limit as well', async () => {
        const key = await loadCounter('key', 100n);
        const [one, two] = [start(), start()];
        await one.reservation(50n, key);
        await two.reservation(50n, key);
        expect(await one.report(key, { spend: 70n })).toMatchObject({ spent: 70n, escrowOfAll: 50n, escrow: 0n });
        expect(await two.reservation(1n, key)).toMatchObject({ outcome: 'held' });
        expect(await two.report(key, { spend: 50n })).toMatchObject({ spent: 120n, escrowOfAll: 0n });
        expect(await two.reservation(0n, key)).toMatchObject({ outcome: 'exceeded', spent: 120n });
      });

      test('stays where the spend is negative: a correction gives spend back', async () => {
        const key = await loadCounter('key', 100n, 90n);
        const one = start();
        await one.reservation(10n, key);
        expect(await one.report(key, { spend: -30n, risk: 10n })).toMatchObject({
          spent: 60n,
          escrowOfAll: 10n,
          escrow: 10n,
        });
        expect(await figuresOf(one.account)).toMatchObject([
          { escrow: 10n, risk: 10n, unbookedSpend: [{ batch: 1, spend: -30n }] },
        ]);
      });

      test('is unbooked by batch, until its process says that PostgreSQL has it', async () => {
        const [key, team] = [await loadCounter('key', 100n), await loadCounter('team', 100n)];
        const one = start();
        const unbooked = async () => (await under.store.accounts(false, 10)).map((of) => of.unbookedBatch);
        await one.call({ changes: [changeOf(key, { spend: 1n }), changeOf(team, { spend: 2n })], batch: 1 });
        await one.report(key, { spend: 4n }, { batch: 1 });
        expect(await unbooked()).toEqual([1]);
        await one.report(key, { spend: 8n }, { batch: 2 });
        expect(await unbooked()).toEqual([2]);
        // A batch is booked in all counters, named or not.
        await one.call({ changes: [], batch: 2, bookedBatch: 1 });
        await one.report(key, { spend: 16n }, { batch: 2, bookedBatch: 1 });
        expect(await read(key, team)).toEqual([
          [29n, 0n],
          [2n, 0n],
        ]);
        expect(await figuresOf(one.account)).toMatchObject([
          { scopeId: 'key', unbookedSpend: [{ batch: 2, spend: 24n }] },
        ]);
      });

      test('leaves nothing unbooked when all of it is booked', async () => {
        const key = await loadCounter('key', 100n);
        const one = start();
        await one.report(key, { spend: 1n }, { batch: 1 });
        await one.call({ batch: 2, bookedBatch: 1 });
        expect(await under.store.accounts(false, 10)).toMatchObject([
          { account: one.account, callNumber: 2, unbookedBatch: 0 },
        ]);
        expect(await figuresOf(one.account)).toEqual([]);
        expect(await read(key)).toEqual([[1n, 0n]]);
      });
    });

    test('is at risk as last reported, in counters that a call does not name too', async () => {
      const [key, team] = [await loadCounter('key', 100n), await loadCounter('team', 100n)];
      const one = start();
      await one.reservation(10n, key, team);
      await one.report(key, { risk: 3n });
      const figures = (await figuresOf(one.account)) ?? [];
      expect(new Map(figures.map(({ scopeId, risk }) => [scopeId, risk]))).toEqual(
        new Map([
          ['key', 3n],
          ['team', 10n],
        ]),
      );
    });

    test('is reserved again whatever the limit says, where it is carried over', async () => {
      const key = await loadCounter('key', 100n, 90n);
      const one = start();
      expect(await one.report(key, { carriedOver: 60n, risk: 60n, spend: 7n })).toMatchObject({
        spent: 97n,
        escrowOfAll: 60n,
        escrow: 60n,
      });
      expect(await start().reservation(1n, key)).toMatchObject({ outcome: 'held' });
      expect(await figuresOf(one.account)).toMatchObject([{ escrow: 60n, risk: 60n }]);
    });
  });
}
