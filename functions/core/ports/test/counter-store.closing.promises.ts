// Promises of closing: an account is frozen, charged once and forgotten, and no late call opens it again (LEDGER 3, 6).

import { beforeEach, describe, expect, test } from 'vitest';
import { FIGURES_PAGE, MAX_COUNTERS } from '../counter-store.ts';
import type { Millis } from '../money.ts';
import type { ScopeWindow } from '../policy.ts';
import {
  type AccountsUnderTest,
  accountsScenario,
  changeOf,
  HOUR,
  LEASE,
  requestOf,
} from './counter-store.scenario.promises.ts';

/** `make` as in `describeAccounts`, which runs this too. */
export function describeClosing(make: () => Promise<AccountsUnderTest>): void {
  describe('an account', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const scenario = accountsScenario(() => under);
    const { nextId, counter, loadCounter, start, read, forget, pagesOf } = scenario;
    const freeze = (account: string) => scenario.freeze(account, false);
    const freezeOwn = (account: string) => scenario.freeze(account);
    const closedReply = { outcome: 'stale', why: 'accountClosed' };

    /** A process with 50 of escrow, 20 of them at risk, and 7 unbooked. */
    const startWithFigures = async (of: Parameters<typeof changeOf>[0], lease = LEASE) => {
      const one = start(lease);
      await one.reservation(57n, of);
      await one.report(of, { spend: 7n, risk: 20n }, { batch: 3, bookedBatch: 2 });
      return one;
    };

    describe('whose lease has ended', () => {
      test('is frozen by `freeze`: its calls are stale, and its escrow stays until it is forgotten', async () => {
        const key = await loadCounter('key', 100n);
        const one = await startWithFigures(key);
        await under.advance(LEASE + 1);
        const frozenReply = {
          outcome: 'frozen',
          callNumber: 2,
          figures: [
            {
              scopeId: 'key',
              window: key.window,
              escrow: 50n,
              risk: 20n,
              unbookedSpend: [{ batch: 3, spend: 7n }],
            },
          ],
        };
        expect(await freeze(one.account)).toMatchObject(frozenReply);
        expect(await read(key)).toEqual([[7n, 50n]]);
        expect(await one.repeat()).toMatchObject(closedReply);
        expect(await one.send({ changes: [changeOf(key, { spend: 1n })] })).toMatchObject(closedReply);
        expect(await freeze(one.account)).toMatchObject(frozenReply);
        expect(await read(key)).toEqual([[7n, 50n]]);
      });

      test('is charged what was at risk, once, and its unbooked spend stays counted', async () => {
        const key = await loadCounter('key', 100n);
        const one = await startWithFigures(key);
        await under.advance(LEASE + 1);
        await freeze(one.account);
        await forget(one.account, true);
        await forget(one.account, true);
        expect(await read(key)).toEqual([[27n, 0n]]);
        expect(await under.store.accounts(false, 10)).toEqual([]);
        expect(await start().call()).toMatchObject({ liveAccounts: 1, endedAccounts: [] });
      });

      test('gives back what was at risk where nothing was charged', async () => {
        const key = await loadCounter('key', 100n);
        const one = await startWithFigures(key);
        await under.advance(LEASE + 1);
        await freeze(one.account);
        await forget(one.account, false);
        expect(await read(key)).toEqual([[7n, 0n]]);
      });

      test('is charged less than its escrow or more, whatever was at risk', async () => {
        const key = await loadCounter('key', 100n);
        const one = start(LEASE);
        await one.reservation(30n, key);
        await one.report(key, { risk: 45n });
        await under.advance(LEASE + 1);
        expect(await freeze(one.account)).toMatchObject({ figures: [{ escrow: 30n, risk: 45n }] });
        expect(await read(key)).toEqual([[0n, 30n]]);
        await forget(one.account, true);
        expect(await read(key)).toEqual([[45n, 0n]]);
      });

      test('lives on with its next call while no process has frozen it', async () => {
        const key = await loadCounter('key', 100n);
        const one = await startWithFigures(key);
        await under.advance(LEASE + 1);
        expect(await one.call({ lease: HOUR })).toMatchObject({ outcome: 'done' });
        expect(await freeze(one.account)).toMatchObject({ outcome: 'live' });
      });

      test('is reported to all until it is finished, frozen or not', async () => {
        const one = start(LEASE);
        await one.call();
        await under.advance(LEASE + 1);
        const two = start();
        expect(await two.call()).toMatchObject({ endedAccounts: [one.account], liveAccounts: 1 });
        await freeze(one.account);
        expect(await two.call()).toMatchObject({ endedAccounts: [one.account], liveAccounts: 1 });
        await forget(one.account, true);
        expect(await two.call()).toMatchObject({ endedAccounts: [], liveAccounts: 1 });
      });

      test('shows which of its counters are absent, and a load knows what stays set aside', async () => {
        const [key, team] = [await loadCounter('key', 100n), counter('team', 100n)];
        const one = start(LEASE);
        await one.report(key, { carriedOver: 3n, risk: 2n });
        await one.report(team, { carriedOver: 9n, risk: 8n });
        await under.advance(LEASE + 1);
        const frozenReply = await freeze(one.account);
        const figures = 'figures' in frozenReply ? frozenReply.figures : [];
        expect(new Map(figures.map(({ scopeId, isAbsent }) => [scopeId, isAbsent]))).toEqual(
          new Map([
            ['key', false],
            ['team', true],
          ]),
        );
        await under.store.load(under.epoch, [{ ...team, spent: 1n }]);
        expect(await read(team)).toEqual([[1n, 9n]]);
        await forget(one.account, true);
        expect(await read(team)).toEqual([[9n, 0n]]);
      });

      test('is charged nothing in a counter that is absent: the sum that is loaded contains it', async () => {
        const [key, team] = [await loadCounter('key', 100n), counter('team', 100n)];
        const one = start(LEASE);
        const carriedOver = { carriedOver: 9n, risk: 8n };
        await one.call({ changes: [changeOf(key, carriedOver), changeOf(team, carriedOver)] });
        await under.advance(LEASE + 1);
        await freeze(one.account);
        await forget(one.account, true);
        await under.store.load(under.epoch, [{ ...team, spent: 8n }]);
        expect(await read(key, team)).toEqual([
          [8n, 0n],
          [8n, 0n],
        ]);
      });
    });

    describe('that lives', () => {
      test('is not frozen by others, and not finished while it is not frozen', async () => {
        const key = await loadCounter('key', 100n);
        const one = await startWithFigures(key, HOUR);
        expect(await freeze(one.account)).toMatchObject({ outcome: 'live' });
        await forget(one.account, true);
        expect(await one.call()).toMatchObject({ outcome: 'done' });
        expect(await read(key)).toEqual([[7n, 50n]]);
      });

      test('is frozen by its own process, keeps its escrow, and ends in the counters of calls of the next account', async () => {
        const [key, team] = [await loadCounter('key', 100n), await loadCounter('team', 100n)];
        const one = await startWithFigures(key, HOUR);
        await one.report(team, { carriedOver: 5n, risk: 4n });
        const inTeam = expect.objectContaining({ scopeId: 'team', escrow: 5n, risk: 4n });
        const frozenReply = { outcome: 'frozen', callNumber: 3, figures: expect.arrayContaining([inTeam]) };
        expect(await freezeOwn(one.account)).toMatchObject(frozenReply);
        expect(await freezeOwn(one.account)).toMatchObject(frozenReply);
        expect(await one.repeat()).toMatchObject(closedReply);
        expect(await read(key)).toEqual([[7n, 50n]]);
        const two = start();
        // Its live reservations are 20; they were charged, which is taken back in the same call.
        const change = changeOf(key, { carriedOver: 20n, risk: 20n, spend: -20n });
        expect(await two.call({ changes: [change], accountsToForget: [one.account] })).toMatchObject({
          counters: [{ spent: 7n, escrowOfAll: 20n, escrow: 20n }],
        });
        expect(await two.repeat()).toMatchObject({ counters: [{ spent: 7n, escrowOfAll: 20n }] });
        expect(await read(team)).toEqual([[0n, 5n]]);
        await forget(one.account, true);
        expect(await under.store.accounts(false, 10)).toMatchObject([{ account: two.account }]);
        expect(await read(key, team)).toEqual([
          [7n, 20n],
          [4n, 0n],
        ]);
      });

      test('and is frozen by its own process keeps its escrow also when another closes it', async () => {
        const key = await loadCounter('key', 100n);
        const one = await startWithFigures(key, 2 * LEASE);
        await freezeOwn(one.account);
        expect(await freeze(one.account)).toMatchObject({ outcome: 'live' });
        await under.advance(2 * LEASE + 1);
        expect(await start().call()).toMatchObject({ endedAccounts: [one.account] });
        expect(await freeze(one.account)).toMatchObject({ outcome: 'frozen', figures: [{ escrow: 50n, risk: 20n }] });
        expect(await read(key)).toEqual([[7n, 50n]]);
        await forget(one.account, true);
        expect(await read(key)).toEqual([[27n, 0n]]);
      });

      test('ends for its next account before the requests of the same call', async () => {
        const key = await loadCounter('key', 100n);
        const one = await startWithFigures(key, HOUR);
        await freezeOwn(one.account);
        const changes = [changeOf(key)];
        const reply = await start().call({
          changes,
          requests: [requestOf(74n), requestOf(73n), requestOf(1n)],
          accountsToForget: [one.account, nextId()],
        });
        expect(reply.replies).toMatchObject([{ outcome: 'exceeded' }, { outcome: 'reserved' }, { outcome: 'held' }]);
        expect(reply.counters).toMatchObject([{ spent: 27n, escrowOfAll: 73n }]);
        expect(await one.send()).toMatchObject(closedReply);
      });

      test('ends with its last call, whose answer may be asked for again', async () => {
        const key = await loadCounter('key', 100n);
        const one = start();
        await one.reservation(50n, key);
        const last = await one.call({ changes: [changeOf(key, { spend: 30n, returned: 20n })], finishesAccount: true });
        expect(last.counters).toMatchObject([{ spent: 30n, escrowOfAll: 0n, escrow: 0n }]);
        expect(await one.repeat()).toMatchObject({ outcome: 'done', counters: [{ spent: 30n }] });
        expect(await one.send({ changes: [changeOf(key, { spend: 1n })] })).toMatchObject(closedReply);
        expect(await under.store.accounts(false, 10)).toEqual([]);
        expect(await freezeOwn(one.account)).toMatchObject({ outcome: 'none' });
        expect(await start().call()).toMatchObject({ liveAccounts: 1 });
        expect(await read(key)).toEqual([[30n, 0n]]);
      });

      test('does not end with a call that was not done', async () => {
        const one = start();
        await one.send({ changes: [changeOf(counter('key'), { spend: 1n })], finishesAccount: true });
        expect(await one.send()).toMatchObject({ outcome: 'done' });
      });
    });

    describe('with more figures than a page', () => {
      /** The counters of three full calls; each has 2 of escrow, at risk. */
      const startLarge = async (lease: Millis) => {
        const counters = Array.from({ length: 3 * MAX_COUNTERS }, (_, at) => counter(`scope ${at}`, 100n));
        const one = start(lease);
        for (let from = 0; from < counters.length; from += MAX_COUNTERS) {
          const part = counters.slice(from, from + MAX_COUNTERS);
          await under.store.load(
            under.epoch,
            part.map(({ scopeId, window }) => ({ scopeId, window, spent: 0n })),
          );
          await one.call({ changes: part.map((of) => changeOf(of, { carriedOver: 2n, risk: 2n })) });
        }
        return { counters, one };
      };
      const [first, last] = [0, 3 * MAX_COUNTERS - 1];
      const readEdges = async (counters: ReadonlyArray<ScopeWindow>) => [
        ...(await read(...[counters[first], counters[last]].filter((of) => of !== undefined))),
      ];
      const UNTOUCHED = [
        [0n, 2n],
        [0n, 2n],
      ];

      test('has all of them in pages of bounded size, also when a page is read again', async () => {
        const { counters, one } = await startLarge(HOUR);
        await freezeOwn(one.account);
        const pages = await pagesOf(one.account);
        expect(Math.max(...pages.map(({ figures }) => figures.length))).toBeLessThan(FIGURES_PAGE + MAX_COUNTERS);
        expect(pages.map(({ total }) => total)).toEqual(pages.map(() => counters.length));
        const scopes = new Set(pages.flatMap(({ figures }) => figures.map(({ scopeId }) => scopeId)));
        expect(scopes).toEqual(new Set(counters.map(({ scopeId }) => scopeId)));
        expect(await readEdges(counters)).toEqual(UNTOUCHED);
      });

      test('is forgotten page by page, by several processes at the same time, and last itself', async () => {
        const { counters, one } = await startLarge(HOUR);
        await freezeOwn(one.account);
        const [page = { figures: [] }, ...others] = await pagesOf(one.account);
        await under.store.forget(under.epoch, one.account, true, page.figures);
        expect(await under.store.accounts(false, 10)).toHaveLength(1);
        const left = new Set((await pagesOf(one.account)).flatMap(({ figures }) => figures.map((of) => of.scopeId)));
        expect(left).toEqual(new Set(others.flatMap(({ figures }) => figures.map((of) => of.scopeId))));
        await Promise.all([forget(one.account, true), forget(one.account, true)]);
        expect(await under.store.accounts(false, 10)).toEqual([]);
        const all = await read(...counters);
        expect(all).toEqual(all.map(() => [2n, 0n]));
      });

      test('is frozen by its last call, and forgotten by pages', async () => {
        const { counters, one } = await startLarge(HOUR);
        await one.call({ finishesAccount: true });
        expect(await readEdges(counters)).toEqual(UNTOUCHED);
        expect(await one.send()).toMatchObject(closedReply);
        await forget(one.account, false);
        const all = await read(...counters);
        expect(all).toEqual(all.map(() => [0n, 0n]));
        expect(await under.store.accounts(false, 10)).toEqual([]);
      });
    });

    describe('that is not there', () => {
      const first = async (account: string) => start().send({ account, callNumber: 1 });

      test('is not opened by a first call after its deadline, also when that is repeated', async () => {
        const key = await loadCounter('key', 100n);
        const one = start();
        const late = { changes: [changeOf(key, { spend: 1n })], deadline: under.now() - 1000 };
        expect(await one.send(late)).toMatchObject(closedReply);
        expect(await one.repeat()).toMatchObject(closedReply);
        expect(await under.store.accounts(false, 10)).toEqual([]);
        expect(await read(key)).toEqual([[0n, 0n]]);
      });

      test('any more is not opened again by its first call, however it ended', async () => {
        const [ended, last, unknown, finished, own] = [start(LEASE), start(), nextId(), nextId(), start()];
        await ended.call();
        await last.call({ finishesAccount: true });
        await own.call();
        await freezeOwn(own.account);
        await forget(own.account, true);
        expect(await freeze(unknown)).toMatchObject({ outcome: 'none' });
        expect(await freezeOwn(unknown)).toMatchObject({ outcome: 'none' });
        await forget(finished, true);
        await under.advance(LEASE + 1);
        await freeze(ended.account);
        await forget(ended.account, false);
        for (const id of [ended.account, unknown, finished, own.account])
          expect(await first(id)).toMatchObject(closedReply);
        expect(await last.send()).toMatchObject(closedReply);
        expect(await under.store.accounts(false, 10)).toEqual([]);
      });
    });

    /** The lease of a process. After this time without a call, the store may have been away. */
    const LONG: Millis = 20_000;

    test('whose lease ended while no process called may renew it for 3 s after the first call, and is then closed', async () => {
      const [waking, late] = [start(LONG), start(LONG)];
      await waking.call();
      await late.call();
      await under.advance(LONG + 1);
      expect(await waking.call({ lease: HOUR })).toMatchObject({ outcome: 'done', endedAccounts: [] });
      expect(await under.store.accounts(true, 10)).toEqual([]);
      expect(await freeze(late.account)).toMatchObject({ outcome: 'live' });
      await under.advance(2999);
      expect(await waking.call({ lease: HOUR })).toMatchObject({ endedAccounts: [] });
      await under.advance(1);
      expect(await waking.call({ lease: HOUR })).toMatchObject({ endedAccounts: [late.account] });
      expect(await freeze(late.account)).toMatchObject({ outcome: 'frozen' });
    });

    test('whose lease ended before the silence of all processes has ended', async () => {
      const [calling, dead] = [start(LONG), start(LONG)];
      await dead.call();
      for (let second = 0; second * 1000 < LONG; second += 4) {
        await under.advance(4000);
        await calling.call({ lease: HOUR });
      }
      await under.advance(LONG);
      expect(await calling.call({ lease: HOUR })).toMatchObject({ endedAccounts: [dead.account] });
    });

    test('is listed by the end of its lease, those whose lease has ended alone where asked', async () => {
      const key = await loadCounter('key', 100n);
      const [late, soon, soonest] = [start(), start(2 * LEASE), start(LEASE)];
      await late.call();
      await soon.report(key, { spend: 1n }, { batch: 5 });
      await soonest.call();
      await soonest.call();
      const listed = (isEnded: boolean, max: number) => under.store.accounts(isEnded, max);
      expect(await listed(false, 10)).toEqual([
        { account: soonest.account, callNumber: 2, unbookedBatch: 0 },
        { account: soon.account, callNumber: 1, unbookedBatch: 5 },
        { account: late.account, callNumber: 1, unbookedBatch: 0 },
      ]);
      expect(await listed(false, 2)).toHaveLength(2);
      expect(await listed(true, 10)).toEqual([]);
      await under.advance(LEASE + 1);
      expect(await listed(true, 10)).toMatchObject([{ account: soonest.account }]);
      await freeze(soonest.account);
      expect(await listed(true, 10)).toMatchObject([{ account: soonest.account }]);
    });
  });
}
