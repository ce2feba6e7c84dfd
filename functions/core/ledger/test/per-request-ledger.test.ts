// Ledgers of one request each, as on Workers.
import { expect, test } from 'vitest';
import { createKnownStore } from '../account.ts';
import { createScenario, heldOf, requestOf, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key-1', 1000n);

function createRequests() {
  const scenario = createScenario();
  const isolate = createKnownStore();
  const request = async (isLive = () => true) => {
    const ledger = await scenario.start({ before: isLive, after: isLive, isDead: () => !isLive(), isolate });
    const { value } = await scenario.ended(ledger.reserve({ ...requestOf(30n, key), id: scenario.ids.next() }));
    return { ledger, reservation: heldOf(value) };
  };
  return { ...scenario, request };
}

test('a ledger for one request books its ledger row when its request has ended, once', async () => {
  const { ledgerRows, ended, store, time, request } = createRequests();
  const { ledger, reservation } = await request();
  await ended(ledger.settle(reservation, settlementOf(25n)));
  await time.advance(500);
  expect(ledgerRows.all()).toEqual([]);
  await ended(ledger.close());
  expect(ledgerRows.all()).toMatchObject([{ id: reservation.id, kind: 'settled', cost: 25n }]);
  expect(await store.part.accounts(false, 10)).toEqual([]);
});

test('visits that died are charged their sizes when their leases have ended, once, by the visits after them', async () => {
  const { ledgerRows, ended, store, time, request } = createRequests();
  let isAlive = true;
  for (let dying = 0; dying < 3; dying += 1) await request(() => isAlive);
  isAlive = false;
  await time.advance(60_000);
  for (let later = 0; later < 4; later += 1) {
    const { ledger, reservation } = await request();
    // The first call after a silence gives processes the time to renew their leases.
    await time.advance(later === 0 ? 3000 : 100);
    await ended(ledger.release(reservation).then(() => ledger.close()));
  }
  expect(ledgerRows.all()).toMatchObject(Array(3).fill({ kind: 'expired', cost: 30n }));
  expect(await store.part.accounts(false, 10)).toEqual([]);
});

test('a call that is repeated after others were done is no store that has gone back', async () => {
  const { epochs, ended, store, time, request } = createRequests();
  const { ledger } = await request();
  store.behaviour = 'loses';
  const reservation = ledger.reserve(requestOf(40n, key));
  await time.advance(0);
  store.behaviour = 'up';
  await request();
  expect((await ended(reservation)).value).toMatchObject({ ok: true });
  expect(epochs.part.current()).toMatchObject({ epoch: 1 });
});

test('a visit is one call before its request and at most two after it, and leaves nothing in the store', async () => {
  const { calls, ended, store, time, request } = createRequests();
  const first = await request();
  await ended(first.ledger.settle(first.reservation, settlementOf(1n)));
  await ended(first.ledger.close());
  calls.length = 0;
  const { ledger, reservation } = await request();
  expect(calls).toHaveLength(1);
  await time.advance(600);
  await ended(ledger.settle(reservation, settlementOf(25n)));
  await ended(ledger.close());
  expect(calls.length).toBeLessThanOrEqual(3);
  expect(await store.part.accounts(false, 10)).toEqual([]);
  expect(await store.part.read(reservation.scopeWindows)).toEqual([{ spent: 26n, escrowOfAll: 0n }]);
  calls.length = 0;
  await time.advance(10_000);
  expect(calls).toEqual([]);
});

test('a visit that outlives a lease renews it with a call every five seconds, and nobody else charges it', async () => {
  const { calls, ledgerRows, ended, store, time, request } = createRequests();
  const { ledger, reservation } = await request();
  calls.length = 0;
  await time.advance(60_000);
  expect(calls.length).toBeGreaterThan(10);
  expect(calls.length).toBeLessThanOrEqual(12);
  const other = await request();
  await time.advance(100);
  await ended(other.ledger.release(other.reservation).then(() => other.ledger.close()));
  await ended(ledger.settle(reservation, settlementOf(25n)));
  await ended(ledger.close());
  expect(ledgerRows.all()).toMatchObject([{ id: reservation.id, kind: 'settled', cost: 25n }]);
  expect(await store.part.read(reservation.scopeWindows)).toEqual([{ spent: 25n, escrowOfAll: 0n }]);
});

test('a visit whose reservation grows is one more call, and is charged whole where it dies', async () => {
  const { calls, ledgerRows, ended, store, time, request } = createRequests();
  let isAlive = true;
  const { ledger, reservation } = await request(() => isAlive);
  calls.length = 0;
  expect((await ended(ledger.grow(reservation, 20n))).value).toEqual({ ok: true, value: undefined });
  expect([calls.length, reservation.amount]).toEqual([1, 50n]);
  expect(await store.part.read(reservation.scopeWindows)).toEqual([{ spent: 0n, escrowOfAll: 50n }]);
  isAlive = false;
  await time.advance(60_000);
  for (const pause of [3000, 100]) {
    const next = await request();
    await time.advance(pause);
    await ended(next.ledger.release(next.reservation).then(() => next.ledger.close()));
  }
  expect(ledgerRows.all()).toMatchObject([{ kind: 'expired', cost: 50n }]);
});

test('a ledger for one request, which was released, books nothing and leaves nothing', async () => {
  const { ledgerRows, ended, store, request } = createRequests();
  const { ledger, reservation } = await request();
  await ledger.release(reservation);
  await ended(ledger.close());
  expect(ledgerRows.all()).toEqual([]);
  expect(await store.part.accounts(false, 10)).toEqual([]);
});

test('many visits at the same time never hold more than the limit', async () => {
  const { start, ended, ids, tryReservation } = createRequests();
  const isolate = createKnownStore();
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const ledger = await start({ before: () => true, after: () => true, isDead: () => false, isolate });
      return (await tryReservation(ledger, { ...requestOf(30n, key), id: ids.next() })).outcome;
    }),
  );
  await ended(Promise.resolve());
  expect(outcomes.filter((each) => each === 'reserved')).toHaveLength(33);
});

test('a visit that remembers an epoch which is over joins the new one', async () => {
  const { ended, epochs, request, wipe } = createRequests();
  const first = await request();
  await ended(first.ledger.settle(first.reservation, settlementOf(10n)));
  await ended(first.ledger.close());
  wipe();
  const second = await request();
  await ended(second.ledger.settle(second.reservation, settlementOf(5n)));
  await ended(second.ledger.close());
  expect(epochs.part.current()).toMatchObject({ epoch: 2, isOpen: true });
  const third = await request();
  expect(await ended(third.ledger.spend([key]))).toMatchObject({ value: { value: [{ spent: 15n }] } });
});

test('isolates that run notice within two seconds that the counters are in another store, and refuse', async () => {
  const { createOtherStore, ended, epochs, ids, process, time, wipe } = createScenario();
  const [before, after] = [createKnownStore(), createKnownStore()];
  const other = createOtherStore();
  const spend = async (more: object) => {
    const ledger = process({ before: () => true, after: () => true, isDead: () => false, ...more });
    ledger.start().catch(() => undefined);
    const { value } = await ended(ledger.reserve({ ...requestOf(30n, key), id: ids.next() }));
    if (value.ok) await ended(ledger.settle(value.value, settlementOf(30n)));
    await ended(ledger.close());
    return value.ok ? 'spent' : value.failure;
  };
  const moved = { reason: 'unavailable', why: expect.stringContaining('are in another counter store now') };
  expect(await spend({ isolate: before })).toBe('spent');
  expect(await spend({ ...other, isolate: after })).toBe('spent');
  expect(epochs.part.current()).toMatchObject({ epoch: 2, isOpen: true });
  await time.advance(2000);
  expect(await spend({ isolate: before })).toEqual(moved);
  // The loss of the previous store moves nothing back either.
  wipe();
  expect(await spend({ isolate: before })).toEqual(moved);
  expect(await spend({ ...other, isolate: after })).toBe('spent');
  expect(epochs.part.current()).toMatchObject({ epoch: 2, isOpen: true });
});

test('a visit that remembers an epoch which is over reports the spend of PostgreSQL, not zero', async () => {
  const { ended, request, wipe } = createRequests();
  const first = await request();
  await ended(first.ledger.settle(first.reservation, settlementOf(10n)));
  await ended(first.ledger.close());
  const { ledger } = await request();
  wipe();
  expect(await ended(ledger.spend([key]))).toMatchObject({ value: { value: [{ spent: 10n }] } });
});
