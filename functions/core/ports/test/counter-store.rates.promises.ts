// Promises of rates: requests, tokens and requests in flight, taken with the money or not at all (LEDGER 3).
import { beforeEach, describe, expect, test } from 'vitest';
import { addedUse, isEstimated, perWindowedRate, type RateLimit, WINDOWED_RATES } from '../rates.ts';
import {
  outcomes,
  rateChangeOf,
  rateRequestOf,
  ratesOf,
  ratesScenario,
  requestAll,
  requestOne,
} from './counter-store.rates.scenario.promises.ts';
import { type AccountsUnderTest, changeOf, LEASE, type Process, requestOf } from './counter-store.scenario.promises.ts';

/** `make` as in `describeAccounts`, which runs this too. */
export function describeRates(make: () => Promise<AccountsUnderTest>): void {
  describe('rates', () => {
    let under: AccountsUnderTest;
    let one: Process;
    const { loaded, start, freeze, forget, avoidEdge } = ratesScenario(() => under);
    beforeEach(async () => {
      under = await make();
      await avoidEdge();
      one = start();
    });
    const key: RateLimit = { id: 'key', requests: 10 };
    const reserved = (count: number): string[] => Array.from({ length: count }, () => 'reserved');

    test('admit as many requests as a minute allows, over all accounts, and not one more', async () => {
      expect(await outcomes(one, 7, ratesOf([key]))).toEqual(reserved(7));
      expect(await outcomes(start(), 5, ratesOf([key]))).toEqual([...reserved(3), 'limited', 'limited']);
      expect(await requestOne(one, ratesOf([{ ...key, id: 'team' }]))).toMatchObject({ outcome: 'reserved' });
    });

    test.each(WINDOWED_RATES)('count %s by themselves, and give them back', async (kind) => {
      const max = 10;
      const estimates = WINDOWED_RATES.filter(isEstimated).map((rate, index) => [rate, 2 + index]);
      const request = ratesOf([{ id: 'key', [kind]: max }], Object.fromEntries(estimates));
      const use = addedUse(kind, request, max);
      const left = async () => {
        const reply = await requestOne(one, request);
        return reply !== undefined && 'rates' in reply ? reply.rates?.remainders[0] : undefined;
      };
      expect(await left()).toEqual({ [kind]: { remaining: max - use, resetIn: expect.any(Number) } });
      await one.call({
        rateChanges: [
          rateChangeOf(
            'key',
            perWindowedRate((rate) => (rate === kind ? -use : 5)),
          ),
        ],
      });
      expect(await left()).toMatchObject({ [kind]: { remaining: max - use } });
    });

    test('are reported with every answer, its own request counted, and only where they are asked for', async () => {
      const both = ratesOf(
        [
          { id: 'key', requests: 3, tokens: 100 },
          { id: 'team', parallel: 2 },
        ],
        { tokens: 30 },
      );
      const [first, second, full] = await requestAll(one, [both, both, both]);
      const left = (requests: number, tokens: number) => [
        { requests: { remaining: requests }, tokens: { remaining: tokens } },
        {},
      ];
      expect(first).toMatchObject({ outcome: 'reserved', rates: { remainders: left(2, 70) } });
      expect(second).toMatchObject({ outcome: 'reserved', rates: { remainders: left(1, 40) } });
      expect(full).toMatchObject({
        outcome: 'limited',
        limitIndex: 1,
        rate: 'parallel',
        rates: { remainders: left(1, 40) },
      });
      expect(await one.reservation(0n)).not.toHaveProperty('rates.remainders');
    });

    test('name the limit that refuses, and a wait of a minute at most', async () => {
      const limits = [{ id: 'team', requests: 100 }, { id: 'user', tokens: 15 }, key];
      const [, second] = await requestAll(one, [ratesOf(limits), ratesOf(limits)]);
      expect(second).toMatchObject({ outcome: 'limited', limitIndex: 1, rate: 'tokens' });
      expect(second?.outcome === 'limited' && second.retryIn > 0 && second.retryIn <= 60_000).toBe(true);
      await outcomes(one, 9, ratesOf([key]));
      expect(await requestOne(one, ratesOf([{ ...key, parallel: 1 }]))).toMatchObject({
        outcome: 'limited',
        limitIndex: 0,
      });
    });

    test('are taken from all limits or from none', async () => {
      const [wide, narrow] = [
        { id: 'key', requests: 2 },
        { id: 'team', requests: 1 },
      ];
      expect(await outcomes(one, 3, ratesOf([wide, narrow]))).toEqual(['reserved', 'limited', 'limited']);
      expect(await outcomes(one, 2, ratesOf([wide]))).toEqual(['reserved', 'limited']);
    });

    test('are not taken by a request that the money refuses, nor money by one that a rate refuses', async () => {
      const [spent, full, whole] = [await loaded('spent', 5n, 5n), await loaded('full', 5n), await loaded('whole', 5n)];
      await start().reservation(5n, full);
      const rates = ratesOf([{ id: 'key', requests: 1, tokens: 10, parallel: 1 }]);
      const requests = [0, 1, 2, 2].map((of) => requestOf(1n, { counters: [of], rates }));
      const reply = await one.call({ changes: [changeOf(spent), changeOf(full), changeOf(whole)], requests });
      const left = (remaining: number) => ({ remainders: [{ requests: { remaining } }] });
      expect(reply.replies).toMatchObject([
        { outcome: 'exceeded', rates: left(1) },
        { outcome: 'held', rates: left(1) },
        { outcome: 'reserved', rates: left(0) },
        { outcome: 'limited', rates: left(0) },
      ]);
      expect(reply.counters).toMatchObject([{ escrowOfAll: 0n }, { escrowOfAll: 5n }, { escrowOfAll: 1n, escrow: 1n }]);
    });

    test('refuse before escrow does, and after spend', async () => {
      const [spent, full] = [await loaded('spent', 5n, 5n), await loaded('full', 5n)];
      await start().reservation(5n, full);
      const none = ratesOf([{ id: 'key', requests: 0 }]);
      const requests = [0, 1].map((of) => requestOf(1n, { counters: [of], rates: none }));
      expect((await one.call({ changes: [changeOf(spent), changeOf(full)], requests })).replies).toMatchObject([
        { outcome: 'exceeded' },
        { outcome: 'limited', rate: 'requests' },
      ]);
      // A request that a rate refuses waits for nobody's escrow.
      expect(await start().report(full, {})).toMatchObject({ isWantedByOthers: false });
    });

    test('are used once by a call that is repeated, and not at all by one that is late', async () => {
      const rates = ratesOf([{ id: 'key', requests: 3, tokens: 30, parallel: 3 }]);
      const first = await one.call({
        requests: [rateRequestOf(rates)],
        rateChanges: [rateChangeOf('key', { tokens: -5 })],
      });
      expect(await one.repeat()).toMatchObject({ replies: first.replies });
      await one.call({ requests: [rateRequestOf(rates)], deadline: under.now() - 1000 });
      expect(await outcomes(one, 3, rates)).toEqual([...reserved(2), 'limited']);
    });

    test('reserve tokens, and count them as they were used when the request ends', async () => {
      const rates = (tokens: number) => ratesOf([{ id: 'key', tokens: 100 }], { tokens });
      await requestAll(one, [rates(60), rates(40)]);
      expect(await requestOne(one, rates(1))).toMatchObject({ outcome: 'limited', rate: 'tokens' });
      await one.call({ rateChanges: [rateChangeOf('key', { tokens: -50 })] });
      expect(await requestAll(one, [rates(51), rates(50)])).toMatchObject([
        { outcome: 'limited' },
        { outcome: 'reserved' },
      ]);
      // More was used than was reserved: the next request waits for it.
      await one.call({ rateChanges: [rateChangeOf('key', { tokens: 25 }), rateChangeOf('key', { tokens: -40 })] });
      expect(await requestAll(one, [rates(15), rates(1)])).toMatchObject([
        { outcome: 'reserved' },
        { outcome: 'limited' },
      ]);
    });

    test('let a request for more tokens than the limit have the whole of it', async () => {
      const rates = ratesOf([{ id: 'key', tokens: 100 }], { tokens: 5000 });
      expect(await requestAll(one, [rates, rates])).toMatchObject([
        { outcome: 'reserved', rates: { remainders: [{ tokens: { remaining: 0 } }] } },
        { outcome: 'limited' },
      ]);
      await one.call({ rateChanges: [rateChangeOf('key', { tokens: -100 })] });
      expect(await requestOne(one, rates)).toMatchObject({ outcome: 'reserved' });
    });

    test('get the request back that no provider saw', async () => {
      expect(await outcomes(one, 10, ratesOf([key]))).toEqual(reserved(10));
      await one.call({
        rateChanges: [
          rateChangeOf('key', { requests: -1 }),
          rateChangeOf('key', { requests: -1 }),
          rateChangeOf('unknown'),
        ],
      });
      expect(await outcomes(one, 3, ratesOf([key]))).toEqual([...reserved(2), 'limited']);
    });

    test('never have more room than the limit, whatever is given back', async () => {
      await one.call({ rateChanges: [rateChangeOf('key', { requests: -1, tokens: -100, parallel: -1 })] });
      const rates = ratesOf([{ id: 'key', requests: 2, tokens: 50, parallel: 2 }]);
      expect(await outcomes(one, 3, rates)).toEqual([...reserved(2), 'limited']);
    });

    describe('of requests in flight', () => {
      const rates = ratesOf([{ id: 'key', parallel: 3 }]);
      const end = rateChangeOf('key', { parallel: -1 });

      test('have room again as soon as a request ends', async () => {
        expect(await outcomes(one, 4, rates)).toEqual([...reserved(3), 'limited']);
        const refused = { outcome: 'limited', limitIndex: 0, rate: 'parallel', retryIn: 1000 };
        expect(await requestOne(start(), rates)).toMatchObject(refused);
        await one.call({ rateChanges: [end, end] });
        expect(await outcomes(start(), 3, rates)).toEqual([...reserved(2), 'limited']);
      });

      test('get no more back from an account than it has in flight', async () => {
        const two = start();
        await outcomes(one, 2, rates);
        await outcomes(two, 1, rates);
        await two.call({ rateChanges: [end, end, end] });
        expect(await outcomes(two, 2, rates)).toEqual([...reserved(1), 'limited']);
      });

      test('that an account takes over are in flight in it, above the limit as well', async () => {
        await outcomes(one, 3, rates);
        await freeze(one.account);
        const two = start();
        const again = rateChangeOf('key', { parallel: 1 });
        await forget(one.account, true);
        await two.call({ rateChanges: [again, again, again, again] });
        await two.call({ rateChanges: [end] });
        expect(await outcomes(two, 1, rates)).toEqual(['limited']);
        await two.call({ rateChanges: [end] });
        expect(await outcomes(two, 2, rates)).toEqual(['reserved', 'limited']);
      });

      test('have room again when an account ends, however it ends', async () => {
        const [closed, followed, last] = [start(LEASE), start(), start()];
        for (const process of [closed, followed, last]) await requestOne(process, rates);
        expect(await outcomes(one, 1, rates)).toEqual(['limited']);
        await last.call({ finishesAccount: true });
        expect(await outcomes(one, 2, rates)).toEqual(['reserved', 'limited']);
        await freeze(followed.account);
        await one.call({ accountsToForget: [followed.account] });
        await forget(followed.account, true);
        expect(await outcomes(one, 2, rates)).toEqual(['reserved', 'limited']);
        await under.advance(LEASE + 1);
        await freeze(closed.account, false);
        await forget(closed.account, true);
        expect(await outcomes(one, 2, rates)).toEqual(['reserved', 'limited']);
      });
    });

    test('that are edited are in force immediately, for earlier use too', async () => {
      await outcomes(one, 5, ratesOf([key]));
      expect(await outcomes(one, 1, ratesOf([{ ...key, requests: 5 }]))).toEqual(['limited']);
      expect(await outcomes(one, 2, ratesOf([{ ...key, requests: 6 }]))).toEqual(['reserved', 'limited']);
    });

    test('of billions are exact', async () => {
      const max = 1_000_000_000_000;
      const rates = (tokens: number) => ratesOf([{ id: 'key', requests: max, tokens: max }], { tokens });
      expect(await requestAll(one, [rates(max - 1), rates(1), rates(1)])).toMatchObject([
        { rates: { remainders: [{ requests: { remaining: max - 1 }, tokens: { remaining: 1 } }] } },
        { outcome: 'reserved' },
        { outcome: 'limited' },
      ]);
    });

    test('are whole in a new epoch', async () => {
      const rates = ratesOf([{ id: 'key', requests: 1, tokens: 10, parallel: 1 }]);
      expect(await outcomes(one, 2, rates)).toEqual(['reserved', 'limited']);
      const epoch = await under.store.begin(under.epoch + 1, true);
      expect(await start().send({ epoch, requests: [rateRequestOf(rates)] })).toMatchObject({
        replies: [{ outcome: 'reserved' }],
      });
    });

    describe('of model entries', () => {
      const [first, second] = [
        { id: 'entry one', requests: 1 },
        { id: 'entry two', requests: 2 },
      ];

      test('are taken from the first entry with room, and refuse only when all are full', async () => {
        const rates = ratesOf([key], { modelEntryLimits: [first, second] });
        expect(await requestAll(one, [rates, rates, rates, rates])).toMatchObject([
          { outcome: 'reserved', rates: { modelEntryIndex: 0, remainders: [{ requests: { remaining: 9 } }] } },
          { outcome: 'reserved', rates: { modelEntryIndex: 1, remainders: [{ requests: { remaining: 8 } }] } },
          { outcome: 'reserved', rates: { modelEntryIndex: 1, remainders: [{ requests: { remaining: 7 } }] } },
          { outcome: 'limited', rate: 'requests' },
        ]);
        expect(await requestOne(one, ratesOf([key]))).toMatchObject({
          rates: { remainders: [{ requests: { remaining: 6 } }] },
        });
      });

      test('are not needed by an entry without limits', async () => {
        const rates = ratesOf([], { modelEntryLimits: [first, undefined, second] });
        const results = await requestAll(one, [rates, rates, rates]);
        expect(results).toMatchObject([
          { rates: { modelEntryIndex: 0 } },
          { rates: { modelEntryIndex: 1 } },
          { rates: { modelEntryIndex: 1 } },
        ]);
      });

      test('tell the entry that has room first, or the limit that waits longer', async () => {
        const full = { id: 'full', parallel: 0 };
        await requestOne(one, ratesOf([], { modelEntryLimits: [first] }));
        expect(await requestOne(one, ratesOf([key], { modelEntryLimits: [first, full] }))).toMatchObject({
          outcome: 'limited',
          limitIndex: 2,
          rate: 'parallel',
          retryIn: 1000,
        });
        expect(
          await requestOne(one, ratesOf([{ id: 'key', requests: 0 }], { modelEntryLimits: [full] })),
        ).toMatchObject({
          outcome: 'limited',
          limitIndex: 0,
          rate: 'requests',
        });
      });

      test('are not taken where a limit or the money refuses', async () => {
        const spent = await loaded('spent', 5n, 5n);
        const requests = [
          requestOf(1n, { rates: ratesOf([], { modelEntryLimits: [first] }) }),
          rateRequestOf(ratesOf([{ id: 'key', requests: 0 }], { modelEntryLimits: [first] })),
          rateRequestOf(ratesOf([], { modelEntryLimits: [first] })),
        ];
        expect((await one.call({ changes: [changeOf(spent)], requests })).replies).toMatchObject([
          { outcome: 'exceeded' },
          { outcome: 'limited', limitIndex: 0 },
          { outcome: 'reserved', rates: { modelEntryIndex: 0, remainders: [] } },
        ]);
      });
    });
  });
}
