// Promises of money: always exact, and counted in each window that an edit makes (LEDGER 4, 5).
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Nano } from './money.ts';
import { type Event, eventOf, modelStore } from './store.model.promises.ts';
import { HOUR, LEASE, type StoreUnderTest, storeScene } from './store.scene.promises.ts';

/** Amounts around which some kind of number stops being exact, or a store changes how it counts. */
const EDGES: ReadonlyArray<Nano> = [
  10n ** 13n + 1n,
  3n * 10n ** 15n + 1n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  10n ** 14n - 1n,
  10n ** 14n + 1n,
  10n ** 17n,
  10n ** 18n,
];

/** `make` as in `describeStore`, which runs this too. */
export function describeMoney(make: () => Promise<StoreUnderTest>): void {
  describe('a budget whose duration was edited', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, call, operation, take, load, settle, release, spent } = storeScene(() => under);

    test('counts holds of either policy in both windows', async () => {
      const old = counter('key', 100n);
      const edited = { ...old, window: { start: old.window.start, end: old.window.end + HOUR } };
      await load(0n, old, edited);
      const [first, second] = [operation(30n, [old]), operation(50n, [edited])];
      await call({ holds: [first, second] });
      expect(await take(operation(21n, [old]))).toMatchObject({ outcome: 'busy' });
      await call({ settles: [first, second].map(({ id, amount }) => ({ id, cost: amount })) });
      expect(await under.store.read([old, edited])).toEqual([80n, 80n]);
    });

    test('contains live holds and unbooked settlements when its counter is loaded', async () => {
      const old = counter('key', 100n);
      const edited = { ...old, window: { start: old.window.start, end: old.window.end + HOUR } };
      await load(0n, old);
      const [held, settled, booked] = [operation(30n, [old]), operation(20n, [old]), operation(10n, [old])];
      await call({ holds: [held, settled, booked] });
      await call({
        settles: [
          { id: settled.id, cost: 15n },
          { id: booked.id, cost: 5n },
        ],
      });
      await under.store.forget([{ id: booked.id, kind: 'settled' }]);
      await load(5n, edited);
      expect(await spent(edited)).toBe(20n);
      expect(await take(operation(51n, [edited]))).toMatchObject({ outcome: 'busy' });
      await settle(held.id, 25n);
      expect(await under.store.read([old, edited])).toEqual([45n, 45n]);
    });

    test('contains expired holds at their corrected cost', async () => {
      const old = counter('key', 100n);
      const edited = { ...old, window: { start: old.window.start, end: old.window.end + HOUR } };
      await load(0n, old);
      const [corrected, expired] = [operation(30n, [old]), operation(20n, [old])];
      await call({ holds: [corrected, expired] });
      await under.advance(LEASE + 1);
      await call({});
      await settle(corrected.id, 12n);
      await load(0n, edited);
      expect(await under.store.read([old, edited])).toEqual([32n, 32n]);
      await release(expired.id);
      expect(await under.store.read([old, edited])).toEqual([12n, 12n]);
    });

    test('contains nothing from before its window', async () => {
      const now = under.now();
      const old = counter('key', 100n);
      await load(0n, old);
      const of = operation(30n, [old]);
      await take(of);
      await under.advance(20);
      const later = { scopeId: 'key', window: { start: now + 10, end: now + HOUR } };
      await load(0n, later);
      await settle(of.id, 30n);
      expect(await under.store.read([old, later])).toEqual([30n, 0n]);
    });
  });

  describe('money', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, call, operation, take, load, settle, spent } = storeScene(() => under);

    test.each(EDGES)('is exact around %s nano-dollars', async (edge) => {
      const [key, team] = [counter('key', edge), counter('team', edge)];
      await load(edge - 2n, key, team);
      expect(await take(operation(3n, [key]))).toMatchObject({ outcome: 'exceeded', spent: edge - 2n });
      const of = operation(2n, [key, team]);
      expect(await take(of)).toMatchObject({ outcome: 'held' });
      expect(await take(operation(1n, [team]))).toMatchObject({ outcome: 'busy' });
      await settle(of.id, 1n);
      expect(await spent(key)).toBe(edge - 1n);
      expect(await take(operation(1n, [key, team]))).toMatchObject({ outcome: 'held' });
      expect(await take(operation(1n, [key, team]))).toMatchObject({ outcome: 'busy' });
    });

    test('is never above a limit and always equals a naive count, after any events in any order', async () => {
      const property = fc.asyncProperty(
        fc.constantFrom(100n, ...EDGES),
        fc.array(eventOf, { minLength: 1, maxLength: 60 }),
        async (unit: Nano, events: ReadonlyArray<Event>) => {
          under = await make();
          const counters = ['a', 'b', 'c'].map((scopeId) => counter(scopeId, unit));
          await load(0n, ...counters);
          const model = modelStore(unit, LEASE);
          for (const event of events) {
            if (event.advance > 0) await under.advance(event.advance);
            model.advance(event.advance);
            const part = model.toCall(event, counters, under.now());
            const reply = await call(part);
            expect(reply).toMatchObject(model.expect(part));
            expect(await under.store.read(counters)).toEqual(model.spent());
            expect(model.isWithinLimit()).toBe(true);
          }
        },
      );
      await fc.assert(property, { numRuns: 60 });
    });
  });
}
