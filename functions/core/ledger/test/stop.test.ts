import { beforeEach, describe, expect, test } from 'vitest';
import { STOPPED } from '../account.ts';
import type { StartableLedger } from '../ledger.ts';
import { createScene, heldOf, IMMORTAL, requestOf, type Scene, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = await scene.start(IMMORTAL, scene.folder);
});

const costs = (): bigint[] => scene.entries.entries().map(({ cost }) => cost);
const leftIn = async (): Promise<unknown> => scene.store.part.accounts(false, 100);

describe('a stop', () => {
  test('books every settlement, returns all escrow, and leaves nothing in store and journal', async () => {
    const hold = await scene.take(ledger, 60n, key);
    await ledger.settle(hold, settlementOf(5n));
    await scene.ended(ledger.close());
    expect(costs()).toEqual([5n]);
    expect(await leftIn()).toEqual([]);
    expect(await scene.store.part.read(hold.scopeWindows)).toEqual([{ spent: 5n, reserved: 0n }]);
    expect(scene.folder.records).toEqual([]);
  });

  test('refuses new holds, and leaves requests in flight to the next start', async () => {
    const [first, second] = [await scene.take(ledger, 10n, key), await scene.take(ledger, 20n, key)];
    await ledger.settle(first, settlementOf(5n));
    await scene.ended(ledger.close());
    expect(costs()).toEqual([5n]);
    expect(await ledger.reserve(requestOf(1n, key))).toMatchObject({ failure: { reason: 'unavailable' } });
    expect(scene.folder.records.filter(({ type }) => type === 'hold')).toMatchObject([{ id: second.id }]);
    const next = await scene.start(IMMORTAL, scene.folder);
    await scene.time.advance(1000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(25n);
    expect(await scene.spent(next, key)).toBe(25n);
  });

  test.each(['refuses', 'hangs', 'loses'] as const)(
    'books the rest and closes the account together also while the store %s: nobody is charged twice',
    async (behaviour) => {
      const other = await scene.start();
      const hold = await scene.take(ledger, 60n, key);
      await scene.time.advance(50);
      scene.store.behaviour = behaviour;
      void ledger.settle(hold, settlementOf(30n));
      const { millis } = await scene.ended(ledger.close());
      expect(millis).toBeLessThanOrEqual(5000);
      expect(costs()).toEqual([30n]);
      scene.store.behaviour = 'up';
      await scene.time.advance(30_000);
      expect(costs()).toEqual([30n]);
      expect(await scene.spent(other, key)).toBe(30n);
      expect((await scene.tryHold(other, requestOf(70n, key))).outcome).toBe('reserved');
    },
  );

  test('ends within its grace period when PostgreSQL does not answer, and the next start books the rest', async () => {
    const hold = await scene.take(ledger, 10n, key);
    await ledger.settle(hold, settlementOf(5n));
    scene.database('hangs');
    expect((await scene.ended(ledger.close())).millis).toBeLessThanOrEqual(7500);
    scene.database('up');
    const next = await scene.start(IMMORTAL, scene.folder);
    await scene.time.advance(1000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(5n);
    expect(await scene.spent(next, key)).toBe(5n);
  });

  test.each(['hangs', 'refuses'] as const)(
    'with live requests ends in the time it is given when PostgreSQL and the store are both away (the store %s)',
    async (behaviour) => {
      const holds = [await scene.take(ledger, 10n, key), await scene.take(ledger, 20n, key)];
      await ledger.settle(await scene.take(ledger, 5n, key), settlementOf(5n));
      scene.database('hangs');
      scene.store.behaviour = behaviour;
      const charged = await scene.ended(ledger.chargeLive().catch(() => undefined));
      expect(charged.millis).toBeLessThanOrEqual(2500);
      expect((await scene.ended(ledger.close(3000))).millis).toBeLessThanOrEqual(5100);
      // What could not be booked is in the journal.
      scene.database('up');
      scene.store.behaviour = 'up';
      await scene.start(IMMORTAL, scene.folder);
      await scene.time.advance(1000);
      expect(holds).toHaveLength(2);
      expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(35n);
    },
  );

  test('returns the escrow of thousands of counters', async () => {
    const keys = Array.from({ length: 700 }, (_, index) => scopeOf(`key-${index}`, 1_000_000n));
    const holds = await Promise.all(keys.map((scope) => scene.take(ledger, 100n, scope)));
    await scene.time.advance(500);
    for (const hold of holds) void ledger.settle(hold, settlementOf(1n));
    await scene.ended(ledger.close());
    const shown = await scene.store.part.read(holds.flatMap(({ scopeWindows }) => scopeWindows));
    expect(new Set(shown.map((one) => one?.reserved))).toEqual(new Set([0n]));
    expect(Math.max(...scene.calls.map(({ changes }) => changes.length))).toBeLessThanOrEqual(256);
  });

  test('of a process whose requests nobody ends any more charges them first, as if it had died', async () => {
    const [plain, stream] = [await scene.take(ledger, 10n, key), await scene.take(ledger, 20n, key)];
    ledger.trackStream(stream, () => 7n);
    await scene.ended(ledger.chargeLive());
    await scene.ended(ledger.settle(plain, settlementOf(1n)));
    await scene.ended(ledger.close());
    expect(costs().toSorted()).toEqual([10n, 7n]);
    expect(await leftIn()).toEqual([]);
    expect(scene.folder.records).toEqual([]);
  });

  test('refuses settlements that come after it and that the journal does not take; the next start charges their holds', async () => {
    const hold = await scene.take(ledger, 20n, key);
    await scene.ended(ledger.close());
    scene.journal.behaviour = 'refuses';
    await expect(scene.ended(ledger.settle(hold, settlementOf(5n)))).rejects.toThrow(STOPPED);
    expect(scene.folder.records.filter(({ type }) => type === 'hold')).toMatchObject([{ id: hold.id }]);
    scene.journal.behaviour = 'up';
    const next = await scene.start(IMMORTAL, scene.folder);
    await scene.time.advance(1000);
    expect(await scene.spent(next, key)).toBe(20n);
  });

  test('refuses what waits for the store, and what asks afterwards', async () => {
    const hold = await scene.take(ledger, 20n, key);
    const moving = heldOf(
      await scene.ended(ledger.reserve({ ...requestOf(1n, key), entries: [undefined] })).then(({ value }) => value),
    );
    await ledger.settle(hold, settlementOf(5n));
    scene.store.behaviour = 'refuses';
    const flushed = ledger.flush().catch(String);
    await scene.ended(ledger.close());
    expect((await scene.ended(flushed)).value).toMatch(/refused|the ledger stops/);
    const full = { id: 'entry', requests: 1, tokens: undefined };
    expect((await scene.ended(ledger.move(moving, full))).value).toMatchObject({ failure: { why: STOPPED } });
    expect((await scene.ended(ledger.spend([key]))).value).toMatchObject({ failure: { reason: 'unavailable' } });
  });

  test('twice is once', async () => {
    await scene.ended(Promise.all([ledger.close(), ledger.close()]));
    await scene.ended(ledger.close());
    expect(await leftIn()).toEqual([]);
  });

  test('while the store is being rebuilt books what has ended', async () => {
    await ledger.settle(await scene.take(ledger, 10n, key), settlementOf(5n));
    scene.wipe();
    const holding = ledger.reserve(requestOf(1n, key));
    await scene.time.settle();
    await scene.ended(ledger.close());
    await holding;
    expect(costs()).toEqual([5n]);
  });
});
