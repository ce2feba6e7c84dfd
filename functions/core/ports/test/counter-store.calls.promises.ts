// Promises of numbered calls: each is done once or not at all, on the store's clock and in loaded counters (LEDGER 3,
// 5, 6).
import { beforeEach, describe, expect, test } from 'vitest';
import { MAX_COUNTERS, MAX_REQUESTS } from '../counter-store.ts';
import { rateChangeOf } from './counter-store.rates.scenario.promises.ts';
import {
  type AccountsUnderTest,
  accountsScenario,
  changeOf,
  HOUR,
  LEASE,
  requestOf,
} from './counter-store.scenario.promises.ts';

/** `make` as in `describeAccounts`, which runs this too. */
export function describeCalls(make: () => Promise<AccountsUnderTest>): void {
  describe('a call', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, loadCounter, start, read, freeze } = accountsScenario(() => under);

    describe('that is repeated', () => {
      test('is answered as before, with present figures, and changes nothing', async () => {
        const key = await loadCounter('key', 100n);
        const [one, two] = [start(), start()];
        await one.reservation(40n, key);
        const part = {
          changes: [changeOf(key, { spend: 10n, returned: 5n, risk: 25n, carriedOver: 3n })],
          requests: [requestOf(20n)],
        };
        const first = await one.call(part);
        expect(first.counters).toMatchObject([{ spent: 10n, escrowOfAll: 48n, escrow: 48n }]);
        await two.reservation(30n, key);
        const again = await one.repeat();
        expect(again).toMatchObject({ outcome: 'done', replies: first.replies, storeCalls: first.storeCalls + 1 });
        expect(again).toMatchObject({ counters: [{ spent: 10n, escrowOfAll: 78n, escrow: 48n }] });
        expect(await freeze(one.account)).toMatchObject({
          callNumber: 2,
          figures: [{ escrow: 48n, risk: 45n, unbookedSpend: [{ batch: 1, spend: 10n }] }],
        });
      });

      test('gives the same refusals, also when there is room by now', async () => {
        const key = await loadCounter('key', 10n);
        const [one, two] = [start(), start()];
        await one.reservation(10n, key);
        expect(await two.reservation(1n, key)).toMatchObject({ outcome: 'held' });
        await one.report(key, { returned: 10n });
        expect(await two.repeat()).toMatchObject({ outcome: 'done', replies: [{ outcome: 'held', counter: 0 }] });
        expect(await two.reservation(1n, key)).toMatchObject({ outcome: 'reserved' });
      });

      test('was not done, and is not done now', async () => {
        const [key, spent] = [counter('key', 10n), await loadCounter('spent', 10n)];
        const one = start();
        const changes = [changeOf(spent, { spend: 1n }), changeOf(key, { ahead: 1n })];
        expect(await one.send({ changes })).toMatchObject({ absent: [1] });
        await under.store.load(under.epoch, [{ ...key, spent: 0n }]);
        expect(await one.repeat()).toMatchObject({ outcome: 'absent', absent: [1] });
        expect(await read(spent, key)).toEqual([
          [0n, 0n],
          [0n, 0n],
        ]);
      });
    });

    describe('with a number', () => {
      test('that is used up or not the next one is stale, and changes nothing', async () => {
        const key = await loadCounter('key', 10n);
        const one = start();
        await one.call();
        await one.call();
        const part = { changes: [changeOf(key, { spend: 1n })] };
        expect(await one.send({ ...part, callNumber: 1 })).toMatchObject({ outcome: 'stale', why: 'accountClosed' });
        expect(await one.send({ ...part, callNumber: 4 })).toMatchObject({ outcome: 'stale', why: 'wentBack' });
        expect(await start().send({ ...part, callNumber: 2 })).toMatchObject({ outcome: 'stale', why: 'wentBack' });
        expect(await read(key)).toEqual([[0n, 0n]]);
        expect(await one.send({ ...part, callNumber: 3 })).toMatchObject({ outcome: 'done' });
      });

      test('is counted with those of all accounts, and with freezes and audits', async () => {
        const [one, two] = [start(), start()];
        const { storeCalls } = await one.call();
        expect(await two.call()).toMatchObject({ storeCalls: storeCalls + 1 });
        expect(await one.call()).toMatchObject({ storeCalls: storeCalls + 2 });
        expect(await one.repeat()).toMatchObject({ storeCalls: storeCalls + 2 });
        const { store, epoch } = under;
        expect(await freeze(one.account)).toMatchObject({
          outcome: 'frozen',
          storeCalls: storeCalls + 3,
        });
        expect(await freeze('unknown')).toMatchObject({ outcome: 'none', storeCalls: storeCalls + 4 });
        expect(
          await store.audit(epoch, [], new Map(), { storeCallsBefore: 0, deadline: under.now() + HOUR }),
        ).toMatchObject({
          storeCalls: storeCalls + 5,
        });
        expect(await two.call()).toMatchObject({ storeCalls: storeCalls + 6 });
      });
    });

    describe('in a counter that is absent', () => {
      test('is not done where it spends or asks ahead, and its number is used up', async () => {
        const [key, spent] = [counter('key', 10n), await loadCounter('spent', 10n)];
        const here = changeOf(spent, { spend: 5n });
        const one = start();
        const absent = { outcome: 'absent', absent: [1] };
        expect(await one.send({ changes: [here, changeOf(key, { spend: 1n })] })).toMatchObject(absent);
        expect(await one.send({ changes: [here, changeOf(key, { spend: -1n })] })).toMatchObject(absent);
        expect(await one.send({ changes: [here, changeOf(key, { ahead: 1n })] })).toMatchObject(absent);
        expect(
          await one.send({ changes: [changeOf(key, { spend: 1n }), changeOf(counter('team'), { spend: 1n })] }),
        ).toMatchObject({
          absent: [0, 1],
        });
        expect(await read(spent, key)).toEqual([[0n, 0n], undefined]);
        expect(await one.call({ changes: [here] })).toMatchObject({ counters: [{ spent: 5n }] });
      });

      test('is done without the requests that need the counter, also when it is repeated', async () => {
        const [key, loaded] = [counter('key', 10n), await loadCounter('loaded', 10n)];
        const one = start();
        const requests = [
          requestOf(0n, { counters: [1, 0] }),
          requestOf(3n, { counters: [1] }),
          requestOf(4n, { counters: [0] }),
        ];
        const replies = [{ outcome: 'absent' }, { outcome: 'reserved', amount: 3n }, { outcome: 'absent' }];
        const counters = [
          { spent: undefined, escrowOfAll: 0n, escrow: 0n },
          { spent: 2n, escrowOfAll: 3n },
        ];
        const changes = [changeOf(key), changeOf(loaded, { spend: 2n })];
        expect(await one.call({ changes, requests })).toMatchObject({ replies, counters });
        expect(await read(key, loaded)).toEqual([undefined, [2n, 3n]]);
        await under.store.load(under.epoch, [{ ...key, spent: 7n }]);
        expect(await one.repeat()).toMatchObject({ replies, counters: [{ spent: 7n, escrow: 0n }, { escrow: 3n }] });
        expect(await one.reservation(4n, key)).toMatchObject({ outcome: 'exceeded' });
      });

      test('sets the counter to the sum that it names, and decides by it', async () => {
        const [key, team] = [counter('key', 10n), await loadCounter('team', 10n, 4n)];
        const one = start();
        const changes = [changeOf(key, { sum: 7n, spend: 1n }), changeOf(team, { sum: 9n })];
        const requests = [requestOf(3n, { counters: [0, 1] }), requestOf(2n, { counters: [0, 1] })];
        const reply = await one.call({ changes, requests });
        expect(reply.replies).toMatchObject([{ outcome: 'exceeded', counter: 0 }, { outcome: 'reserved' }]);
        expect(await read(key, team)).toEqual([
          [8n, 2n],
          [4n, 2n],
        ]);
        await one.repeat();
        expect(await one.report(key, { sum: 0n, spend: 1n })).toMatchObject({ spent: 9n, escrowOfAll: 1n });
      });

      test('sets it also where the rest is not done, but not after its deadline or in another epoch', async () => {
        const [key, other] = [counter('key', 10n), counter('other', 10n)];
        const one = start();
        const changes = [changeOf(key, { sum: 7n })];
        expect(await start().send({ changes, deadline: under.now() - 1 })).toMatchObject({ why: 'accountClosed' });
        expect(await start().send({ changes, epoch: 0 })).toMatchObject({ outcome: 'epoch' });
        expect(await read(key)).toEqual([undefined]);
        await one.call();
        await one.call({ changes, deadline: under.now() - 1 });
        await one.repeat();
        expect(await read(key)).toEqual([undefined]);
        expect(await one.send({ changes: [...changes, changeOf(other, { spend: 1n })] })).toMatchObject({
          absent: [1],
        });
        expect(await read(key, other)).toEqual([[7n, 0n], undefined]);
      });

      test('is done where it only says what is at risk, returned or carried over; what is carried over is loaded later', async () => {
        const key = counter('key', 100n);
        const one = start();
        expect(await one.report(key, { risk: 30n, carriedOver: 40n })).toMatchObject({ escrow: 40n });
        expect(await one.report(key, { risk: 20n, returned: 15n })).toMatchObject({ escrow: 25n });
        expect(await read(key)).toEqual([undefined]);
        await under.store.load(under.epoch, [{ ...key, spent: 70n }]);
        expect(await read(key)).toEqual([[70n, 25n]]);
        expect(await one.report(key, { spend: 20n })).toMatchObject({ spent: 90n, escrowOfAll: 5n, escrow: 5n });
      });
    });

    describe('in a window', () => {
      test('that is not current is not done where it asks, and its number is used up', async () => {
        const now = under.now();
        const [spent, later] = [await loadCounter('spent', 10n), { ...counter('key', 10n) }];
        const next = { ...later, window: { start: now + HOUR, end: now + 2 * HOUR } };
        await under.store.load(under.epoch, [{ ...next, spent: 0n }]);
        const one = start();
        const changes = [changeOf(spent, { spend: 1n }), changeOf(next)];
        const reply = await one.send({ changes, requests: [requestOf(1n, { counters: [0, 1] })] });
        expect(reply).toMatchObject({ outcome: 'window' });
        expect(Math.abs(reply.now - now)).toBeLessThan(5000);
        expect(await one.repeat()).toMatchObject({ outcome: 'window' });
        expect(await one.send({ changes: [changeOf(next, { ahead: 1n })] })).toMatchObject({ outcome: 'window' });
        expect(await read(spent, next)).toEqual([
          [0n, 0n],
          [0n, 0n],
        ]);
        expect(await one.call({ changes: changes.slice(0, 1) })).toMatchObject({ counters: [{ spent: 1n }] });
      });

      test('that is over still spends and returns', async () => {
        const now = under.now();
        const key = { scopeId: 'key', limit: 10n, window: { start: now - HOUR, end: now + LEASE } };
        await under.store.load(under.epoch, [{ ...key, spent: 0n }]);
        const one = start();
        expect(await one.reservation(8n, key)).toMatchObject({ outcome: 'reserved' });
        await under.advance(LEASE + 1);
        expect(await one.send({ changes: [changeOf(key)], requests: [requestOf(1n)] })).toMatchObject({
          outcome: 'window',
        });
        expect(await one.report(key, { spend: 3n, returned: 4n, risk: 1n })).toMatchObject({
          spent: 3n,
          escrowOfAll: 1n,
          escrow: 1n,
        });
      });
    });

    describe('after its deadline', () => {
      test('grants nothing, and the rest of it is done', async () => {
        const key = await loadCounter('key', 1000n);
        const one = start();
        await one.reservation(40n, key);
        const change = changeOf(key, { spend: 10n, returned: 20n, risk: 7n, carriedOver: 5n, ahead: 1n });
        const uses = [rateChangeOf('key', { tokens: 10 })];
        const late = await one.call({
          changes: [change],
          requests: [requestOf(1n), requestOf(0n)],
          rateChanges: uses,
          deadline: under.now() - 1000,
        });
        expect(late.replies).toEqual([{ outcome: 'late' }, { outcome: 'late' }]);
        expect(late.counters).toMatchObject([{ spent: 10n, escrowOfAll: 15n, escrow: 15n }]);
        expect(await one.repeat()).toMatchObject({ replies: late.replies });
        expect(await freeze(one.account)).toMatchObject({ figures: [{ risk: 7n }] });
      });

      test('renews the lease like any other', async () => {
        const [one, two] = [start(LEASE), start()];
        await one.call();
        await under.advance(LEASE + 1);
        expect(await two.call()).toMatchObject({ liveAccounts: 1, endedAccounts: [one.account] });
        await one.call({ deadline: under.now() - 1000, lease: HOUR });
        expect(await two.call()).toMatchObject({ liveAccounts: 2, endedAccounts: [] });
      });
    });

    test('names other accounts whose lease has ended, and counts those that live', async () => {
      const [one, two, three] = [start(), start(LEASE), start()];
      expect(await one.call()).toMatchObject({ liveAccounts: 1, endedAccounts: [] });
      expect(await two.call()).toMatchObject({ liveAccounts: 2, endedAccounts: [] });
      expect(await three.call()).toMatchObject({ liveAccounts: 3, endedAccounts: [] });
      await under.advance(LEASE + 1);
      expect(await one.call()).toMatchObject({ liveAccounts: 2, endedAccounts: [two.account] });
      expect(await two.call()).toMatchObject({ liveAccounts: 3, endedAccounts: [] });
      await under.advance(LEASE + 1);
      expect(await two.repeat()).toMatchObject({ endedAccounts: [] });
    });

    test('has as many changes and requests as there may be', async () => {
      const counters = Array.from({ length: MAX_COUNTERS }, (_, at) => counter(`scope ${at}`, 1000n));
      await under.store.load(
        under.epoch,
        counters.map((of) => ({ ...of, spent: 1n })),
      );
      const changes = counters.map((of, at) => changeOf(of, { spend: BigInt(at), risk: 4n }));
      const requests = Array.from({ length: MAX_REQUESTS }, (_, at) =>
        requestOf(BigInt(at), { counters: [4 * at, 4 * at + 3] }),
      );
      const one = start();
      const reply = await one.call({ changes, requests });
      expect(reply.replies).toEqual(requests.map(({ amount }) => ({ outcome: 'reserved', amount })));
      const escrowAt = (at: number): bigint => (at % 4 === 0 || at % 4 === 3 ? BigInt(Math.floor(at / 4)) : 0n);
      expect(reply.counters).toEqual(
        counters.map((_, at) => ({
          spent: 1n + BigInt(at),
          escrowOfAll: escrowAt(at),
          escrow: escrowAt(at),
          isWantedByOthers: false,
        })),
      );
      expect(await one.repeat()).toEqual(expect.objectContaining({ counters: reply.counters, replies: reply.replies }));
    });
  });
}
