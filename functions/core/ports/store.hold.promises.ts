// Promises of holds: which money is taken, from which scopes, and when an unknown counter refuses (LEDGER 3, 6).
import { beforeEach, describe, expect, test } from 'vitest';
import type { Millis } from './money.ts';
import { HOUR, type StoreUnderTest, storeScene } from './store.scene.promises.ts';
import type { Counter } from './store.ts';

/** `make` as in `describeStore`, which runs this too. */
export function describeHolds(make: () => Promise<StoreUnderTest>): void {
  describe('a hold', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, call, operation, take, load, settle, release, spent } = storeScene(() => under);

    test('may take the last nano-dollar, and not one more', async () => {
      const key = counter('key', 100n);
      await load(40n, key);
      expect(await take(operation(60n, [key]))).toEqual({ outcome: 'held', amount: 60n });
      expect(await take(operation(1n, [key]))).toEqual({ outcome: 'busy', counter: 0 });
      expect(await spent(key)).toBe(40n);
    });

    test('is taken from all of its scopes or from none', async () => {
      const [key, team] = [counter('key', 100n), counter('team', 10n)];
      await load(0n, key, team);
      await take(operation(10n, [team]));
      expect(await take(operation(10n, [key, team]))).toEqual({ outcome: 'busy', counter: 1 });
      expect(await take(operation(100n, [key]))).toMatchObject({ outcome: 'held' });
    });

    test('is refused as exceeded, with the spend, where spend alone leaves less than the minimum', async () => {
      const key = counter('key', 100n);
      await load(95n, key);
      expect(await take(operation(50n, [key], { minAmount: 6n }))).toEqual({
        outcome: 'exceeded',
        counter: 0,
        spent: 95n,
      });
    });

    test('is clamped to what spend leaves in the tightest scope', async () => {
      const [key, team] = [counter('key', 100n), counter('team', 100n)];
      await load(10n, key);
      await load(70n, team);
      expect(await take(operation(50n, [key, team], { minAmount: 6n }))).toEqual({ outcome: 'held', amount: 30n });
    });

    test('waits for live holds even where it would be clamped: their money may come back', async () => {
      const key = counter('key', 100n);
      await load(50n, key);
      const first = operation(10n, [key]);
      await take(first);
      const second = operation(80n, [key], { minAmount: 1n });
      expect(await take(second)).toEqual({ outcome: 'busy', counter: 0 });
      await release(first.id);
      expect(await take(second)).toEqual({ outcome: 'held', amount: 50n });
    });

    test('is refused as exceeded when spend in one scope and holds in another refuse it', async () => {
      const [key, team] = [counter('key', 10n), counter('team', 10n)];
      await load(0n, key);
      await load(10n, team);
      await take(operation(10n, [key]));
      expect(await take(operation(5n, [key, team]))).toEqual({ outcome: 'exceeded', counter: 1, spent: 10n });
    });

    test('of a free model is refused only by spend that has reached a limit, never by holds', async () => {
      const key = counter('key', 10n);
      await load(0n, key);
      const paid = operation(10n, [key]);
      await take(paid);
      expect(await take(operation(0n, [key]))).toEqual({ outcome: 'held', amount: 0n });
      await settle(paid.id, 10n);
      expect(await take(operation(0n, [key]))).toEqual({ outcome: 'exceeded', counter: 0, spent: 10n });
    });

    test('of a free model is taken even while holds exceed what a provider’s overrun left', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const [first, second] = [operation(60n, [key]), operation(30n, [key])];
      await call({ holds: [first, second] });
      await settle(second.id, 90n);
      expect(await take(operation(1n, [key]))).toEqual({ outcome: 'busy', counter: 0 });
      expect(await take(operation(0n, [key]))).toEqual({ outcome: 'held', amount: 0n });
    });

    test('is never taken from a limit of zero, not even by a free model', async () => {
      const key = counter('key', 0n);
      await load(0n, key);
      expect(await take(operation(0n, [key]))).toEqual({ outcome: 'exceeded', counter: 0, spent: 0n });
    });

    test('without a limited scope is always taken', async () => {
      expect(await take(operation(10n ** 18n, []))).toEqual({ outcome: 'held', amount: 10n ** 18n });
    });

    test('repeated answers the same and takes nothing more', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      expect(await take(of)).toEqual(await take(of));
      expect(await take(operation(40n, [key]))).toMatchObject({ outcome: 'held' });
    });

    test('that is refused does not fail the others in the call', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const holds = [
        operation(60n, [key]),
        operation(60n, [key]),
        operation(5n, [counter('new', 9n)]),
        operation(40n, [key]),
      ];
      const answers = (await call({ holds })).holds.map(({ outcome }) => outcome);
      expect(answers).toEqual(['held', 'busy', 'absent', 'held']);
    });

    test('obeys a limit that was raised or lowered since the last hold', async () => {
      const key = counter('key', 100n);
      await load(50n, key);
      expect(await take(operation(1n, [{ ...key, limit: 50n }]))).toMatchObject({ outcome: 'exceeded' });
      expect(await take(operation(60n, [{ ...key, limit: 110n }]))).toMatchObject({ outcome: 'held' });
    });
  });

  describe('not knowing refuses', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { scope, counter, operation, take, load, spent } = storeScene(() => under);

    test('absent is not zero: counters that are not loaded are named and nothing is taken', async () => {
      const [key, team] = [counter('key', 100n), counter('team', 100n)];
      await load(0n, key);
      expect(await take(operation(100n, [key, team]))).toEqual({ outcome: 'absent', counters: [1] });
      expect(await take(operation(100n, [key]))).toMatchObject({ outcome: 'held' });
      expect(await spent(team)).toBeUndefined();
    });

    test('a loaded counter is not loaded again', async () => {
      const key = counter('key', 100n);
      await load(30n, key);
      await load(0n, key);
      expect(await spent(key)).toBe(30n);
    });

    test('a window that is not current on the store’s clock takes nothing; the start is inside, the end is not', async () => {
      const now = under.now();
      const at = (start: Millis, end: Millis): Counter => ({ scopeId: 'key', limit: 10n, window: { start, end } });
      await load(0n, at(now - HOUR, now), at(now + HOUR, now + 2 * HOUR), at(now - HOUR, now + HOUR));
      expect(await take(operation(1n, [at(now - HOUR, now)]))).toEqual({ outcome: 'window' });
      expect(await take(operation(1n, [at(now + HOUR, now + 2 * HOUR)]))).toEqual({ outcome: 'window' });
      expect(await take(operation(1n, [at(now - HOUR, now + HOUR)]))).toMatchObject({ outcome: 'held' });
    });

    test('a call that arrives after its deadline takes nothing', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(100n, [key], { deadline: under.now() - 1 });
      expect(await take(of)).toEqual({ outcome: 'late' });
      expect(await take(operation(100n, [key]))).toMatchObject({ outcome: 'held' });
    });

    test('a call in another epoch does nothing', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const holds = [operation(100n, [key])];
      const loads = [{ ...scope('team'), spent: 5n }];
      const nothing = { settles: [], releases: [], renewals: [] };
      const reply = await under.store.call({ ...nothing, epoch: under.epoch + 1, loads, holds });
      expect(reply).toMatchObject({ outcome: 'epoch', epoch: under.epoch });
      expect(await spent(scope('team'))).toBeUndefined();
      expect(await take(operation(100n, [key]))).toMatchObject({ outcome: 'held' });
    });
  });
}
