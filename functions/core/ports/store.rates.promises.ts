// Promises of rates: requests and tokens in any minute, concurrent requests; with the money or not at all (decision 0012).
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Millis } from './money.ts';
import type { RateLimit } from './rates.ts';
import { modelRates, type RateEvent, rateEventOf } from './store.rates.model.promises.ts';
import { rated, rateScene } from './store.rates.scene.promises.ts';
import { LEASE, type StoreUnderTest } from './store.scene.promises.ts';

const MINUTE: Millis = 60_000;

/** `make` as in `describeStore`, which runs this too. */
export function describeRates(make: () => Promise<StoreUnderTest>): void {
  describe('rates', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });

    const { counter, call, operation, take, takeMany, settle, release } = rateScene(() => under);
    const key: RateLimit = { id: 'key', requests: 10 };

    test('as many requests are taken as a minute allows, and not one more', async () => {
      const outcomes = await takeMany(12, rated([key]));
      expect(outcomes).toEqual([...Array(10).fill('held'), 'limited', 'limited']);
    });

    test('a refusal names the limit and when it has room again, truly', async () => {
      await takeMany(10, rated([key]));
      await under.advance(2500);
      const refused = await take(operation(rated([{ id: 'team', requests: 1000 }, key])));
      expect(refused).toMatchObject({ outcome: 'limited', limit: 1, rate: 'requests', retryIn: 57_500 });
      await under.advance(57_499);
      expect(await take(operation(rated([key])))).toMatchObject({ outcome: 'limited', retryIn: 1 });
      await under.advance(1);
      expect(await takeMany(11, rated([key]))).toEqual([...Array(10).fill('held'), 'limited']);
    });

    test('every answer shows what is left, its own request counted', async () => {
      await under.advance(1000 - (under.now() % 1000));
      const both = rated(
        [
          { id: 'key', requests: 10, tokens: 100 },
          { id: 'team', parallel: 3 },
        ],
        { tokens: 30 },
      );
      const first = operation(both);
      expect(await take(first)).toMatchObject({
        rates: {
          left: [{ requests: { remaining: 9, resetIn: 60_000 }, tokens: { remaining: 70, resetIn: 60_000 } }, {}],
        },
      });
      await under.advance(1500);
      await settle(first.id, 12);
      await under.advance(1500);
      const left = [{ requests: { remaining: 9, resetIn: 57_000 }, tokens: { remaining: 88, resetIn: 58_500 } }, {}];
      const more = { counters: [counter('spent', 0n)] };
      await call({ loads: [{ ...counter('spent', 0n), spent: 5n }] });
      expect(await take(operation(both, more))).toMatchObject({ outcome: 'exceeded', rates: { left } });
    });

    test('uses within one second count until a minute after the last of them', async () => {
      await under.advance(1000 - (under.now() % 1000));
      await takeMany(9, rated([key]));
      await under.advance(999);
      await takeMany(1, rated([key]));
      await under.advance(MINUTE - 1);
      expect(await take(operation(rated([key])))).toMatchObject({ outcome: 'limited', retryIn: 1 });
      await under.advance(1);
      expect(await takeMany(11, rated([key]))).toEqual([...Array(10).fill('held'), 'limited']);
    });

    test('a request takes from all of its limits or from none', async () => {
      const [wide, narrow] = [
        { id: 'key', requests: 2 },
        { id: 'team', requests: 1 },
      ];
      expect(await takeMany(3, rated([wide, narrow]))).toEqual(['held', 'limited', 'limited']);
      expect(await takeMany(2, rated([wide]))).toEqual(['held', 'limited']);
    });

    test('a refusal by a budget uses no rate, and a refusal by a rate no budget', async () => {
      const [spent, whole] = [counter('spent', 5n), counter('whole', 1n)];
      await call({
        loads: [
          { ...spent, spent: 5n },
          { ...whole, spent: 0n },
        ],
      });
      const one = { id: 'key', requests: 1 };
      expect(await take(operation(rated([one]), { counters: [spent] }))).toMatchObject({ outcome: 'exceeded' });
      expect(await take(operation(rated([one])))).toMatchObject({ outcome: 'held' });
      expect(await take(operation(rated([one]), { counters: [whole] }))).toMatchObject({ outcome: 'limited' });
      expect(await take(operation(rated([]), { counters: [whole] }))).toMatchObject({ outcome: 'held' });
    });

    test('a refusal names spend before a rate, a rate before live holds; a request that waits for live holds uses no rate', async () => {
      const [spent, held] = [counter('spent', 5n), counter('held', 1n)];
      await call({
        loads: [
          { ...spent, spent: 5n },
          { ...held, spent: 0n },
        ],
      });
      const first = operation(rated([]), { counters: [held] });
      await take(first);
      const one = { id: 'key', requests: 1 };
      expect(await take(operation(rated([one]), { counters: [held] }))).toMatchObject({ outcome: 'busy' });
      await takeMany(1, rated([one]));
      expect(await take(operation(rated([one]), { counters: [held] }))).toMatchObject({ outcome: 'limited' });
      expect(await take(operation(rated([one]), { counters: [spent] }))).toMatchObject({ outcome: 'exceeded' });
    });

    test('a repeated hold answers the same and uses nothing more', async () => {
      const of = operation(rated([{ id: 'key', requests: 2, parallel: 2 }]));
      expect(await take(of)).toEqual(await take(of));
      await settle(of.id);
      expect(await take(of)).toMatchObject({ outcome: 'held', rates: { left: [{ requests: { remaining: 1 } }] } });
    });

    test('a request counts as concurrent until it is settled, released, or its lease ends', async () => {
      const rates = rated([{ id: 'key', parallel: 3 }]);
      const [first, second, third] = [operation(rates), operation(rates), operation(rates)];
      await call({ holds: [first, second, third] });
      const refused = { outcome: 'limited', limit: 0, rate: 'parallel', retryIn: 1000 };
      expect(await take(operation(rates))).toMatchObject(refused);
      await settle(first.id);
      await settle(first.id);
      await release(second.id);
      expect(await takeMany(3, rates)).toEqual(['held', 'held', 'limited']);
      await under.advance(LEASE + 1);
      expect(await takeMany(4, rates)).toEqual(['held', 'held', 'held', 'limited']);
      await settle(third.id);
      expect(await takeMany(1, rates)).toEqual(['limited']);
    });

    test('tokens are reserved while a request runs, and counted as they were used when it ends', async () => {
      const rates = (tokens: number) => rated([{ id: 'key', tokens: 100 }], { tokens });
      const [first, second] = [operation(rates(60)), operation(rates(40))];
      await call({ holds: [first, second] });
      expect(await take(operation(rates(1)))).toMatchObject({ outcome: 'limited', rate: 'tokens', retryIn: 1000 });
      await settle(first.id, 10);
      await settle(first.id, 10);
      expect(await take(operation(rates(51)))).toMatchObject({ outcome: 'limited' });
      const third = operation(rates(50));
      expect(await take(third)).toMatchObject({ outcome: 'held', rates: { left: [{ tokens: { remaining: 0 } }] } });
      await settle(third.id, 75);
      await settle(second.id, 0);
      expect(await take(operation(rates(15)))).toMatchObject({ outcome: 'held' });
      expect(await take(operation(rates(1)))).toMatchObject({ outcome: 'limited' });
    });

    test('unreported tokens count as reserved, also when the lease ends', async () => {
      const rates = rated([{ id: 'key', tokens: 100 }], { tokens: 60 });
      await take(operation(rates));
      await under.advance(LEASE + 1);
      await call({});
      expect(await take(operation({ ...rates, tokens: 41 }))).toMatchObject({ outcome: 'limited', rate: 'tokens' });
      expect(await take(operation({ ...rates, tokens: 40 }))).toMatchObject({ outcome: 'held' });
    });

    test('tokens beyond the estimate count all the same; the next request waits for them', async () => {
      await under.advance(1000 - (under.now() % 1000));
      const rates = rated([{ id: 'key', tokens: 100 }]);
      const first = operation(rates);
      await take(first);
      await settle(first.id, 250);
      expect(await take(operation(rates))).toMatchObject({ outcome: 'limited', rate: 'tokens', retryIn: 60_000 });
    });

    test('a request larger than the limit takes a whole minute for itself', async () => {
      const rates = (tokens: number) => rated([{ id: 'key', tokens: 100 }], { tokens });
      const [small, large] = [operation(rates(1)), operation(rates(5000))];
      await take(small);
      expect(await take(large)).toMatchObject({ outcome: 'limited', rate: 'tokens', retryIn: 1000 });
      await release(small.id);
      expect(await take(large)).toMatchObject({ outcome: 'held' });
      expect(await take(operation(rates(1)))).toMatchObject({ outcome: 'limited' });
    });

    test('a request that called no provider is not counted; one that failed at the provider is, its tokens are not', async () => {
      const limit = { id: 'key', requests: 2, tokens: 100 };
      const [first, second] = [operation(rated([limit])), operation(rated([limit]))];
      await call({ holds: [first, second] });
      await release(first.id, true);
      await release(second.id);
      await release(second.id);
      expect(await take(operation(rated([limit], { tokens: 100 })))).toMatchObject({ outcome: 'held' });
      expect(await take(operation(rated([limit])))).toMatchObject({ outcome: 'limited', rate: 'requests' });
    });

    test('an edited limit is in force immediately, for earlier use too', async () => {
      await takeMany(5, rated([key]));
      expect(await takeMany(1, rated([{ ...key, requests: 5 }]))).toEqual(['limited']);
      expect(await takeMany(2, rated([{ ...key, requests: 6 }]))).toEqual(['held', 'limited']);
    });

    test('a limit of a billion requests is exact', async () => {
      const [most, tokens] = [1_000_000_000_000, 999_999_999_999];
      const rates = rated([{ id: 'key', requests: most, tokens: most }], { tokens });
      expect(await take(operation(rates))).toMatchObject({
        rates: { left: [{ requests: { remaining: most - 1 }, tokens: { remaining: 1 } }] },
      });
      expect(await takeMany(2, { ...rates, tokens: 1 })).toEqual(['held', 'limited']);
    });

    test('a store that starts empty starts with all rates whole', async () => {
      const limit = { id: 'key', requests: 1, tokens: 10, parallel: 1 };
      await take(operation(rated([limit])));
      expect(await take(operation(rated([limit])))).toMatchObject({ outcome: 'limited' });
      const epoch = await under.store.begin(under.epoch + 1);
      const nothing = { settles: [], releases: [], renewals: [], loads: [] };
      const reply = await under.store.call({ epoch, ...nothing, holds: [operation(rated([limit]))] });
      expect(reply).toMatchObject({ holds: [{ outcome: 'held', rates: { left: [{ requests: { remaining: 0 } }] } }] });
    });

    describe('of model entries', () => {
      const [first, second] = [
        { id: 'entry one', requests: 1 },
        { id: 'entry two', requests: 2 },
      ];

      test('the first entry with room is taken, and the request is refused only when all are full', async () => {
        const rates = rated([key], { entries: [first, second] });
        const answers = (await call({ holds: Array.from({ length: 4 }, () => operation(rates)) })).holds;
        expect(answers).toMatchObject([
          { outcome: 'held', rates: { entry: 0, left: [{ requests: { remaining: 9 } }] } },
          { outcome: 'held', rates: { entry: 1, left: [{ requests: { remaining: 8 } }] } },
          { outcome: 'held', rates: { entry: 1, left: [{ requests: { remaining: 7 } }] } },
          { outcome: 'limited', limit: 1, rate: 'requests' },
        ]);
        expect(await take(operation(rated([key])))).toMatchObject({
          rates: { left: [{ requests: { remaining: 6 } }] },
        });
      });

      test('the entry that has room first gives the wait, and one without limits always has room', async () => {
        await under.advance(1000 - (under.now() % 1000));
        await takeMany(1, rated([], { entries: [first] }));
        await under.advance(5000);
        await takeMany(2, rated([], { entries: [second] }));
        const refused = await take(operation(rated([], { entries: [second, first] })));
        expect(refused).toMatchObject({ outcome: 'limited', limit: 1, retryIn: 55_000 });
        const taken = await take(operation(rated([], { entries: [first, second, undefined] })));
        expect(taken).toMatchObject({ outcome: 'held', rates: { entry: 2, left: [] } });
      });

      test('a request that falls back to another entry uses that one too, and gives the former its tokens back', async () => {
        const [one, two] = [
          { id: 'entry one', requests: 5, tokens: 10 },
          { id: 'entry two', requests: 1, tokens: 10 },
        ];
        const of = operation(rated([], { entries: [one, two] }));
        await take(of);
        const move = async (id: string, to: RateLimit | undefined) =>
          (await call({ moves: [{ id, tokens: 10, to }] })).moves?.[0];
        expect(await move(of.id, two)).toBeUndefined();
        const left = (limit: RateLimit) => operation(rated([limit]));
        expect(await take(left(one))).toMatchObject({
          rates: { left: [{ requests: { remaining: 3 }, tokens: { remaining: 0 } }] },
        });
        expect(await take(left(two))).toMatchObject({ outcome: 'limited', rate: 'requests' });
        const other = operation(rated([], { entries: [undefined] }));
        await take(other);
        expect(await move(other.id, two)).toMatchObject({ rate: 'requests' });
        expect(await move(of.id, undefined)).toBeUndefined();
        expect(await move('unknown', two)).toBeUndefined();
        await settle(of.id, 3);
        await under.advance(MINUTE + 1000);
        expect(await take(left(two))).toMatchObject({ outcome: 'held' });
      });
    });

    test('no minute ever has more than a limit, and no request is refused below it, after any events in any order', async () => {
      const property = fc.asyncProperty(
        fc.array(rateEventOf, { minLength: 1, maxLength: 60 }),
        async (events: ReadonlyArray<RateEvent>) => {
          under = await make();
          const model = modelRates(LEASE);
          for (const event of events) {
            if (event.advance > 0) await under.advance(event.advance);
            const part = model.toCall(event, under.now());
            const reply = await call(part);
            expect(reply).toMatchObject(model.expect(part, under.now()));
            expect(model.mostInAnyMinute(under.now())).toBe(true);
          }
        },
      );
      await fc.assert(property, { numRuns: 60 });
    });
  });
}
