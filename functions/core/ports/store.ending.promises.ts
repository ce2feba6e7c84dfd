// Promises of the end of a hold: a settlement, a release, an expired lease, or all of them in any order (LEDGER 3).
import { beforeEach, describe, expect, test } from 'vitest';
import { HOUR, LEASE, type StoreUnderTest, storeScene } from './store.scene.promises.ts';

/** `make` as in `describeStore`, which runs this too. */
export function describeEndings(make: () => Promise<StoreUnderTest>): void {
  describe('an ending', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, call, operation, take, load, settle, release, spent } = storeScene(() => under);

    test('settled once counts the cost and frees the rest; settled twice is once', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(100n, [key]);
      await take(of);
      expect(await settle(of.id, 30n)).toEqual({ outcome: 'settled' });
      expect(await settle(of.id, 99n)).toEqual({ outcome: 'settled' });
      expect(await spent(key)).toBe(30n);
      expect(await take(operation(70n, [key]))).toMatchObject({ outcome: 'held' });
    });

    test('released after settled changes nothing', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(50n, [key]);
      await take(of);
      await settle(of.id, 30n);
      expect(await release(of.id)).toEqual({ outcome: 'settled' });
      expect(await spent(key)).toBe(30n);
    });

    test('released frees everything, once; a settlement after that counts nothing', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const [of, other] = [operation(60n, [key]), operation(40n, [key])];
      await call({ holds: [of, other] });
      expect(await release(of.id)).toEqual({ outcome: 'released' });
      expect(await release(of.id)).toEqual({ outcome: 'released' });
      expect(await settle(of.id, 60n)).toEqual({ outcome: 'released' });
      expect(await spent(key)).toBe(0n);
      expect((await call({ holds: [operation(60n, [key]), operation(1n, [key])] })).holds).toMatchObject([
        { outcome: 'held' },
        { outcome: 'busy' },
      ]);
    });

    test('above its hold counts in full, as the provider billed it', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(100n, [key]);
      await take(of);
      await settle(of.id, 130n);
      expect(await spent(key)).toBe(130n);
      expect(await take(operation(0n, [key]))).toMatchObject({ outcome: 'exceeded', spent: 130n });
    });

    test('counts in the window the hold was taken in, also after that window’s edge', async () => {
      const now = under.now();
      const old = { scopeId: 'key', limit: 100n, window: { start: now - HOUR, end: now + 100 } };
      const next = { scopeId: 'key', limit: 100n, window: { start: now + 100, end: now + HOUR } };
      await load(0n, old, next);
      const of = operation(100n, [old]);
      await take(of);
      await under.advance(150);
      expect(await take(operation(100n, [next]))).toMatchObject({ outcome: 'held' });
      await settle(of.id, 70n);
      expect([await spent(old), await spent(next)]).toEqual([70n, 0n]);
    });

    test('makes room for the holds behind it in the same call', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const [first, second] = [operation(50n, [key]), operation(50n, [key])];
      await call({ holds: [first, second] });
      const reply = await call({
        settles: [{ id: first.id, cost: 10n }],
        releases: [{ id: second.id, lease: LEASE }],
        holds: [operation(90n, [key])],
      });
      expect(reply.holds).toEqual([{ outcome: 'held', amount: 90n }]);
    });
  });

  describe('a lease', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, call, operation, take, load, settle, release, spent } = storeScene(() => under);

    test('that ends charges the hold at its size, and is reported until acknowledged', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      await take(of);
      await under.advance(LEASE + 1);
      const expired = [{ id: of.id, charged: 60n, note: of.note }];
      expect((await call({})).expired).toEqual(expired);
      expect((await call({})).expired).toEqual(expired);
      expect(await spent(key)).toBe(60n);
      expect(await take(operation(40n, [key]))).toMatchObject({ outcome: 'held' });
      await under.store.forget([{ id: of.id, kind: 'expired' }]);
      expect((await call({})).expired.map(({ id }) => id)).not.toContain(of.id);
    });

    test('that ends charges the known cost of the stream', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      await take(of);
      await call({ renewals: [{ id: of.id, known: 25n, lease: LEASE }] });
      await under.advance(LEASE + 1);
      expect((await call({})).expired).toMatchObject([{ charged: 25n }]);
      expect(await spent(key)).toBe(25n);
    });

    test('that ended at the known cost is corrected by the settlement, though other holds have taken the freed money', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      await take(of);
      await call({ renewals: [{ id: of.id, known: 25n, lease: LEASE }] });
      await under.advance(LEASE + 1);
      await call({});
      expect(await take(operation(75n, [key]))).toMatchObject({ outcome: 'held' });
      expect(await settle(of.id, 40n)).toEqual({ outcome: 'expired', charged: 25n });
      expect(await spent(key)).toBe(40n);
      expect(await take(operation(1n, [key]))).toMatchObject({ outcome: 'busy' });
    });

    test('that is renewed continues', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      await take(of);
      await under.advance(LEASE / 2);
      await call({ renewals: [{ id: of.id, lease: LEASE }] });
      await under.advance(LEASE / 2 + 50);
      expect((await call({})).expired).toEqual([]);
      expect(await settle(of.id, 1n)).toEqual({ outcome: 'settled' });
    });

    test('that ended before the settlement is corrected by it, once', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      await take(of);
      await under.advance(LEASE + 1);
      await call({});
      await under.store.forget([{ id: of.id, kind: 'expired' }]);
      expect(await settle(of.id, 20n)).toEqual({ outcome: 'expired', charged: 60n });
      expect(await settle(of.id, 50n)).toEqual({ outcome: 'expired', charged: 60n });
      expect(await release(of.id)).toEqual({ outcome: 'settled' });
      expect(await spent(key)).toBe(20n);
    });

    test('that ended before the release gives everything back, once', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      await take(of);
      await under.advance(LEASE + 1);
      await call({});
      expect(await release(of.id)).toEqual({ outcome: 'expired', charged: 60n });
      expect(await release(of.id)).toEqual({ outcome: 'expired', charged: 60n });
      expect(await settle(of.id, 60n)).toEqual({ outcome: 'released' });
      expect(await spent(key)).toBe(0n);
    });

    test('of a hold that was released before it arrived refuses that hold, for its length', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      expect(await release(of.id)).toEqual({ outcome: 'released' });
      expect(await take(of)).toEqual({ outcome: 'late' });
      await under.advance(LEASE + 1);
      await call({});
      expect(await take(of)).toMatchObject({ outcome: 'held' });
    });
  });

  describe('a hold from before the store began', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { nextId, scope, counter, call, operation, take, load, settle, spent } = storeScene(() => under);

    test('counts nothing without counters: a late repeat of a settlement that was booked and forgotten', async () => {
      const key = counter('key', 100n);
      await load(0n, key);
      const of = operation(60n, [key]);
      await take(of);
      await settle(of.id, 30n);
      await under.store.forget([{ id: of.id, kind: 'settled' }]);
      expect(await settle(of.id, 30n)).toEqual({ outcome: 'unknown' });
      expect(await spent(key)).toBe(30n);
    });

    test('counts nothing while its counters are not loaded', async () => {
      const settles = [{ id: nextId(), cost: 5n, counters: [scope('key')] }];
      expect((await call({ settles })).settles).toEqual([{ outcome: 'absent', counters: [0] }]);
      expect(await spent(scope('key'))).toBeUndefined();
    });

    test('is counted once in loaded counters, less the part that PostgreSQL has booked', async () => {
      const key = scope('key');
      await load(100n, key);
      const settles = [{ id: nextId(), cost: 50n, counters: [key], counted: 20n }];
      expect((await call({ settles })).settles).toEqual([{ outcome: 'settled' }]);
      expect((await call({ settles })).settles).toEqual([{ outcome: 'settled' }]);
      expect(await spent(key)).toBe(130n);
    });

    test('needs no counter for a window that is over', async () => {
      const now = under.now();
      const counters = [{ scopeId: 'key', window: { start: now - HOUR, end: now - 1 } }];
      expect((await call({ settles: [{ id: nextId(), cost: 5n, counters }] })).settles).toEqual([
        { outcome: 'settled' },
      ]);
    });
  });
}
