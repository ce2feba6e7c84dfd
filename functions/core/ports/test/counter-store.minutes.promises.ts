// Promises of rates over minutes: how far two minutes err, and when room comes back (LEDGER 3). For manual clocks.
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Millis } from '../money.ts';
import {
  MINUTE,
  outcomes,
  rateChangeOf,
  ratesOf,
  ratesScenario,
  requestAll,
  requestOne,
} from './counter-store.rates.scenario.promises.ts';
import type { AccountsUnderTest } from './counter-store.scenario.promises.ts';

/** `make` as in `describeAccounts`, which runs this too. */
export function describeMinutes(make: () => Promise<AccountsUnderTest>): void {
  describe('rates, as minutes go by,', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { start, goTo } = ratesScenario(() => under);
    const limited = (part: object) => ({ outcome: 'limited', ...part });

    test('count the minute before by the share of it that is left, rounded down', async () => {
      const one = start(10 * MINUTE);
      const rates = ratesOf([{ id: 'key', requests: 10, tokens: 1000 }], { tokens: 99 });
      const probe = ratesOf([{ id: 'key', requests: 10, tokens: 1000, parallel: 0 }]);
      const remaining = async () => {
        const result = await requestOne(one, probe);
        const left = result?.outcome === 'limited' ? result.rates.remainders[0] : undefined;
        return [left?.requests?.remaining, left?.tokens?.remaining];
      };
      await goTo(0);
      await outcomes(one, 10, rates);
      expect(await remaining()).toEqual([0, 10]);
      const remainders: unknown[] = [];
      for (const next of [59_999, 1, 1, 5999, 1, 23_999, 29_998, 1, 1, 1]) {
        await under.advance(next);
        remainders.push(await remaining());
      }
      expect(remainders).toEqual([
        ...[
          [0, 10],
          [0, 10],
          [1, 11],
          [1, 109],
          [2, 110],
          [5, 505],
        ],
        ...[
          [10, 1000],
          [10, 1000],
          [10, 1000],
          [10, 1000],
        ],
      ]);
    });

    test('are whole after two minutes, but for requests that are still in flight', async () => {
      const one = start(100 * MINUTE);
      const rates = ratesOf([{ id: 'key', requests: 3, parallel: 5 }]);
      await goTo(0);
      await outcomes(one, 3, rates);
      for (let minute = 0; minute < 3; minute += 1) {
        await under.advance(2 * MINUTE);
        await one.call();
      }
      expect(await requestAll(one, [rates, rates, rates])).toMatchObject([
        { outcome: 'reserved', rates: { remainders: [{ requests: { remaining: 2 } }] } },
        { outcome: 'reserved' },
        limited({ rate: 'parallel' }),
      ]);
    });

    test('tell truly when there is room again, and when the limit is whole', async () => {
      const one = start(10 * MINUTE);
      const rates = ratesOf([{ id: 'key', requests: 10 }]);
      await goTo(0);
      await outcomes(one, 10, rates);
      await under.advance(2500);
      const remainders = [{ requests: { remaining: 0, resetIn: 57_500 + 54_001 } }];
      expect(await requestOne(one, rates)).toMatchObject(limited({ retryIn: 57_501, rates: { remainders } }));
      await under.advance(57_500);
      expect(await requestOne(one, rates)).toMatchObject(limited({ retryIn: 1 }));
      await under.advance(1);
      expect(await requestAll(one, [rates, rates])).toMatchObject([
        { outcome: 'reserved' },
        limited({ retryIn: 6000 }),
      ]);
      await under.advance(5999);
      expect(await requestOne(one, rates)).toMatchObject(limited({ retryIn: 1 }));
      await under.advance(1);
      expect(await outcomes(one, 2, rates)).toEqual(['reserved', 'limited']);
    });

    test('never tell a wait above a minute', async () => {
      const one = start(10 * MINUTE);
      const rates = ratesOf([{ id: 'key', tokens: 100 }], { tokens: 100 });
      await goTo(0);
      expect(await requestAll(one, [rates, rates])).toMatchObject([
        { outcome: 'reserved' },
        limited({ retryIn: MINUTE }),
      ]);
      await under.advance(MINUTE);
      expect(await requestOne(one, rates)).toMatchObject(limited({ retryIn: 59_401 }));
    });

    test('take what is given back from the minute in which it was taken', async () => {
      const one = start(10 * MINUTE);
      const rates = ratesOf([{ id: 'key', requests: 10, tokens: 100 }], { tokens: 20 });
      await goTo(0);
      const minute = Math.floor(under.now() / MINUTE);
      await outcomes(one, 4, rates);
      await goTo(30_000);
      await requestOne(one, rates);
      await one.call({ rateChanges: [rateChangeOf('key', { minute, requests: -1, tokens: -40 })] });
      // 40 of 80 tokens and 3 of 4 requests remain of the previous minute, and half of it counts.
      expect(await requestOne(one, { ...rates, tokens: 0 })).toMatchObject({
        rates: {
          minute: minute + 1,
          remainders: [{ requests: { remaining: 10 - 1 - 1 - 1 }, tokens: { remaining: 100 - 20 - 20 } }],
        },
      });
    });

    test('change nothing for what is given back to a minute that no longer counts, nor in a later one', async () => {
      const one = start(10 * MINUTE);
      const rates = ratesOf([{ id: 'key', requests: 10, tokens: 100 }], { tokens: 20 });
      await goTo(0);
      const first = await requestOne(one, rates);
      const minute = (first?.outcome === 'reserved' && first.rates?.minute) || 0;
      await goTo(0);
      await goTo(0);
      await outcomes(one, 3, rates);
      await one.call({ rateChanges: [rateChangeOf('key', { minute, requests: -1, tokens: -20 })] });
      await one.call({ rateChanges: [rateChangeOf('key', { minute: minute + 1, requests: -1, tokens: -20 })] });
      expect(await requestOne(one, rates)).toMatchObject({
        rates: { remainders: [{ requests: { remaining: 10 - 4 }, tokens: { remaining: 100 - 80 } }] },
      });
    });

    test('admit in any 60 s at most twice the limit, and in a minute of the clock no more than the limit', async () => {
      const property = fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.array(
          fc.record({ wait: fc.constantFrom(0, 0, 1, 999, 5000, 29_999, 59_000, 61_000), requests: fc.nat(13) }),
          {
            minLength: 1,
            maxLength: 40,
          },
        ),
        async (limit, steps) => {
          under = await make();
          const one = start(1000 * MINUTE);
          const admitted: Millis[] = [];
          for (const { wait, requests } of steps) {
            await under.advance(wait);
            const results = await outcomes(one, requests, ratesOf([{ id: 'key', requests: limit }]));
            for (const outcome of results) if (outcome === 'reserved') admitted.push(under.now());
          }
          for (const from of admitted) {
            const inWindow = admitted.filter((at) => from <= at && at < from + MINUTE).length;
            const minute = Math.floor(from / MINUTE);
            expect(inWindow).toBeLessThanOrEqual(2 * limit);
            expect(admitted.filter((at) => Math.floor(at / MINUTE) === minute).length).toBeLessThanOrEqual(limit);
          }
        },
      );
      await fc.assert(property, { numRuns: runs(60) });
    });

    test('admit twice the limit within 60 s at worst: all of one minute in its last moment, all of the next in its own', async () => {
      const one = start(10 * MINUTE);
      const rates = ratesOf([{ id: 'key', requests: 10 }]);
      await goTo(59_999);
      expect(await outcomes(one, 11, rates)).toEqual([...Array(10).fill('reserved'), 'limited']);
      await under.advance(59_999);
      expect(await outcomes(one, 11, rates)).toEqual([...Array(10).fill('reserved'), 'limited']);
    });

    test('never refuse requests that come evenly, less often than the limit', async () => {
      const property = fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: MINUTE - 1 }),
        fc.integer({ min: 1, max: 400 }),
        async (limit, from, more) => {
          under = await make();
          const one = start(1000 * MINUTE);
          await goTo(from);
          for (let at = 0; at < 3 * limit; at += 1) {
            expect(await outcomes(one, 1, ratesOf([{ id: 'key', requests: limit }]))).toEqual(['reserved']);
            await under.advance(Math.floor(MINUTE / limit) + more);
          }
        },
      );
      await fc.assert(property, { numRuns: runs(60) });
    });
  });
}
