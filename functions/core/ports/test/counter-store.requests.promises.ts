// Promises of requests: a request's whole reservation from all its counters or nothing, never above a limit (LEDGER 1,
// 3, 9).
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AccountsUnderTest,
  accountsScenario,
  changeOf,
  HOUR,
  type LimitedCounter,
  requestOf,
} from './counter-store.scenario.promises.ts';

/** `make` as in `describeAccounts`, which runs this too. */
export function describeRequests(make: () => Promise<AccountsUnderTest>): void {
  describe('a request', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { loadCounter, start, read, freeze } = accountsScenario(() => under);

    test('reserves its whole amount, which is escrow and at risk', async () => {
      const key = await loadCounter('key', 100n, 30n);
      const [one, two] = [start(), start()];
      const reply = await one.call({ changes: [changeOf(key)], requests: [requestOf(60n)] });
      expect(reply).toMatchObject({
        replies: [{ outcome: 'reserved', amount: 60n }],
        counters: [{ spent: 30n, escrowOfAll: 60n, escrow: 60n, isWantedByOthers: false }],
      });
      expect(await two.report(key, {})).toEqual({ spent: 30n, escrowOfAll: 60n, escrow: 0n, isWantedByOthers: false });
      expect(await freeze(one.account)).toMatchObject({
        figures: [{ scopeId: 'key', window: key.window, escrow: 60n, risk: 60n, unbookedSpend: [] }],
      });
    });

    test('of all accounts together never gets more than the limit', async () => {
      const key = await loadCounter('key', 100n, 30n);
      const results = await Promise.all([start(), start(), start(), start()].map((one) => one.reservation(20n, key)));
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(['held', 'reserved', 'reserved', 'reserved']);
      expect(await read(key)).toEqual([[30n, 60n]]);
    });

    test('takes from all of its counters or from none', async () => {
      const [key, team] = [await loadCounter('key', 100n), await loadCounter('team', 50n)];
      expect(await start().reservation(60n, key, team)).toMatchObject({ outcome: 'exceeded', counter: 1, spent: 0n });
      expect(await start().reservation(30n, team)).toMatchObject({ outcome: 'reserved' });
      expect(await start().reservation(30n, key, team)).toMatchObject({ outcome: 'held', counter: 1 });
      expect(await read(key, team)).toEqual([
        [0n, 0n],
        [0n, 30n],
      ]);
    });

    test('names its counters by their places in the request', async () => {
      const [spent, whole] = [await loadCounter('spent', 10n, 10n), await loadCounter('whole', 10n)];
      const changes = [changeOf(spent), changeOf(whole)];
      const requests = [
        requestOf(1n, { counters: [1] }),
        requestOf(1n, { counters: [1, 0] }),
        requestOf(1n, { counters: [0, 1] }),
      ];
      expect((await start().call({ changes, requests })).replies).toMatchObject([
        { outcome: 'reserved' },
        { outcome: 'exceeded', counter: 1, spent: 10n },
        { outcome: 'exceeded', counter: 0, spent: 10n },
      ]);
    });

    test('is clamped to what spend leaves of every limit, down to its smallest useful amount', async () => {
      const [key, team] = [await loadCounter('key', 100n, 60n), await loadCounter('team', 100n, 70n)];
      const both = { changes: [changeOf(key), changeOf(team)] };
      const clamped = (minAmount: bigint) => requestOf(50n, { counters: [0, 1], minAmount });
      expect((await start().call({ ...both, requests: [clamped(31n)] })).replies).toMatchObject([
        { outcome: 'exceeded', counter: 1, spent: 70n },
      ]);
      expect((await start().call({ ...both, requests: [clamped(30n)] })).replies).toMatchObject([
        { outcome: 'reserved', amount: 30n },
      ]);
      expect(await read(key, team)).toEqual([
        [60n, 30n],
        [70n, 30n],
      ]);
    });

    test('is never clamped by the escrow of others: it waits', async () => {
      const key = await loadCounter('key', 100n, 60n);
      await start().reservation(11n, key);
      const requests = [requestOf(50n, { minAmount: 1n })];
      expect((await start().call({ changes: [changeOf(key)], requests })).replies).toMatchObject([
        { outcome: 'held', counter: 0 },
      ]);
    });

    test('for nothing is refused only by spend that has reached a limit', async () => {
      const [full, spent] = [await loadCounter('full', 10n), await loadCounter('spent', 10n, 10n)];
      await start().reservation(10n, full);
      expect(await start().reservation(0n, full)).toMatchObject({ outcome: 'reserved', amount: 0n });
      expect(await start().reservation(0n, { ...full, limit: 5n })).toMatchObject({ outcome: 'reserved', amount: 0n });
      expect(await start().reservation(0n, full, spent)).toMatchObject({ outcome: 'exceeded', counter: 1, spent: 10n });
    });

    test('without a limit is reserved without escrow, and at risk all the same', async () => {
      const [key, team] = [await loadCounter('key'), await loadCounter('team', 10n)];
      const one = start();
      expect(await one.reservation(10n, key, team)).toMatchObject({ outcome: 'reserved', amount: 10n });
      expect(await one.reservation(0n)).toMatchObject({ outcome: 'reserved', amount: 0n });
      expect(await read(key, team)).toEqual([
        [0n, 0n],
        [0n, 10n],
      ]);
      const reply = await freeze(one.account);
      expect(reply).toMatchObject({ outcome: 'frozen' });
      const figures = reply.outcome === 'frozen' ? reply.figures : [];
      expect(new Map(figures.map(({ scopeId, escrow, risk }) => [scopeId, [escrow, risk]]))).toEqual(
        new Map([
          ['key', [0n, 10n]],
          ['team', [10n, 10n]],
        ]),
      );
    });

    test('after another in the same call gets what that one leaves', async () => {
      const key = await loadCounter('key', 100n);
      const requests = [60n, 50n, 40n, 1n].map((amount) => requestOf(amount));
      const reply = await start().call({ changes: [changeOf(key)], requests });
      expect(reply.replies.map(({ outcome }) => outcome)).toEqual(['reserved', 'held', 'reserved', 'held']);
      expect(reply.counters).toMatchObject([{ escrowOfAll: 100n, escrow: 100n }]);
    });

    test('gets what the same call settles and returns', async () => {
      const key = await loadCounter('key', 100n);
      const one = start();
      await one.reservation(100n, key);
      const change = changeOf(key, { spend: 30n, returned: 50n, risk: 20n });
      const reply = await one.call({ changes: [change], requests: [requestOf(51n), requestOf(50n)] });
      expect(reply.replies).toMatchObject([{ outcome: 'held' }, { outcome: 'reserved', amount: 50n }]);
      expect(reply.counters).toMatchObject([{ spent: 30n, escrowOfAll: 70n, escrow: 70n }]);
    });

    test('for more money of a reservation gets it in the window of that reservation, also when it is over, and only within the limit', async () => {
      const now = under.now();
      const key: LimitedCounter = { scopeId: 'key', limit: 100n, window: { start: now - HOUR, end: now + 500 } };
      await under.store.load(under.epoch, [{ scopeId: 'key', window: key.window, spent: 30n }]);
      const one = start();
      await one.reservation(40n, key);
      await under.advance(600);
      expect(await one.send({ changes: [changeOf(key)], requests: [requestOf(1n)] })).toMatchObject({
        outcome: 'window',
      });
      const requests = [31n, 30n, 1n].map((amount) => requestOf(amount, { isGrowth: true }));
      const reply = await one.call({ changes: [changeOf(key, { risk: 40n })], requests });
      expect(reply.replies.map(({ outcome }) => outcome)).toEqual(['held', 'reserved', 'held']);
      expect(reply.counters).toMatchObject([{ spent: 30n, escrowOfAll: 70n, escrow: 70n }]);
      expect(await one.send({ changes: [changeOf(key)], requests: [...requests, requestOf(1n)] })).toMatchObject({
        outcome: 'window',
      });
      expect(await one.send({ changes: [changeOf(key, { ahead: 1n })], requests })).toMatchObject({
        outcome: 'window',
      });
    });

    test('under a limit that has fallen gets nothing, and under one that has risen what is there', async () => {
      const key = await loadCounter('key', 100n, 20n);
      await start().reservation(60n, key);
      expect(await start().reservation(1n, { ...key, limit: 80n })).toMatchObject({ outcome: 'held' });
      expect(await start().reservation(1n, { ...key, limit: 20n })).toMatchObject({ outcome: 'exceeded' });
      expect(await start().reservation(41n, { ...key, limit: 121n })).toMatchObject({ outcome: 'reserved' });
    });
  });
}
