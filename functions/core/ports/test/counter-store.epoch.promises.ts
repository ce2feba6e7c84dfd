// Promises of epochs, loads and leaving: absent is not zero, and nothing of an earlier epoch is done (LEDGER 6).
import { beforeEach, describe, expect, test } from 'vitest';
import { type AccountsUnderTest, accountsScenario, changeOf, HOUR, LEASE } from './counter-store.scenario.promises.ts';

/** `make` as in `describeAccounts`, which runs this too; `clock` as there. */
export function describeEpochs(make: () => Promise<AccountsUnderTest>, clock: 'manual' | 'real'): void {
  describe('an epoch', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, loadCounter, start, read } = accountsScenario(() => under);

    test('that ends leaves nothing, and does not come back', async () => {
      const key = await loadCounter('key', 100n);
      const one = start();
      await one.reservation(10n, key);
      const next = under.epoch + 2;
      expect(await under.store.begin(next, true)).toBe(next);
      expect(await under.store.begin(under.epoch + 1, true)).toBe(next);
      expect(await read(key)).toEqual([undefined]);
      expect(await under.store.accounts(false, 10)).toEqual([]);
      const stale = { outcome: 'epoch', epoch: next };
      expect(await one.repeat()).toMatchObject(stale);
      expect(await one.send({ epoch: next })).toMatchObject({ outcome: 'stale', why: 'wentBack' });
      expect(await start().send({ epoch: next })).toMatchObject({ outcome: 'done', storeCalls: 1, liveAccounts: 1 });
    });

    test('that is there already begins without losing anything', async () => {
      const key = await loadCounter('key', 100n, 5n);
      expect(await under.store.begin(under.epoch, true)).toBe(under.epoch);
      expect(await read(key)).toEqual([[5n, 0n]]);
    });

    test('that another process begins is not begun in a store that does not have it', async () => {
      const key = await loadCounter('key', 100n, 5n);
      expect(await under.store.begin(under.epoch + 1, false)).toBe(under.epoch);
      expect(await read(key)).toEqual([[5n, 0n]]);
      expect(await under.store.begin(under.epoch + 1, true)).toBe(under.epoch + 1);
      expect(await under.store.begin(under.epoch + 1, false)).toBe(under.epoch + 1);
    });

    test('other than the store’s is reported, and nothing is done in it', async () => {
      const [key, absent] = [await loadCounter('key', 100n), counter('absent', 100n)];
      const one = start(LEASE);
      await one.reservation(10n, key);
      await under.advance(LEASE + 1);
      const stale = { outcome: 'epoch', epoch: under.epoch };
      for (const epoch of [under.epoch - 1, under.epoch + 1]) {
        expect(await start().send({ epoch, changes: [changeOf(key, { spend: 1n })] })).toMatchObject(stale);
        expect(await under.store.freeze(epoch, one.account, false)).toMatchObject(stale);
        expect(await under.store.figures(epoch, one.account)).toMatchObject(stale);
        await under.store.load(epoch, [{ ...absent, spent: 1n }]);
        const row = { bookedBatch: 0, callNumber: 1, isClosed: false, isCharged: false, isClosing: false };
        const rows = new Map([[one.account, row]]);
        expect(
          await under.store.audit(epoch, [{ ...key, spent: 1n }], rows, {
            storeCallsBefore: 0,
            deadline: under.now() + HOUR,
          }),
        ).toMatchObject(stale);
      }
      expect(await read(key, absent)).toEqual([[0n, 10n], undefined]);
      await under.store.freeze(under.epoch, one.account, false);
      await under.store.forget(under.epoch + 1, one.account, true, [key]);
      expect(await read(key)).toEqual([[0n, 10n]]);
    });

    test('is none in a store that was cleared', async () => {
      const key = await loadCounter('key', 100n);
      await under.store.clear();
      expect(await start().send()).toMatchObject({ outcome: 'epoch', epoch: 0 });
      expect(await read(key)).toEqual([undefined]);
      expect((await under.store.loaded(0, 10)).counters).toEqual([]);
      expect(await under.store.begin(1, true)).toBe(1);
    });
  });

  describe('a counter', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { counter, loadCounter, start, read } = accountsScenario(() => under);

    test('is loaded once: a later load changes nothing', async () => {
      const key = await loadCounter('key', 100n, 5n);
      await start().report(key, { spend: 1n });
      await under.store.load(under.epoch, [
        { ...key, spent: 50n },
        { ...counter('team'), spent: -3n },
      ]);
      expect(await read(key)).toEqual([[6n, 0n]]);
      expect((await under.store.loaded(0, 10)).counters).toHaveLength(2);
    });

    test('is loaded with the escrow of all accounts, frozen ones too', async () => {
      const key = counter('key', 100n);
      const [one, two] = [start(), start()];
      await one.report(key, { carriedOver: 30n });
      await two.report(key, { carriedOver: 12n });
      await under.store.freeze(under.epoch, two.account, true);
      await under.store.load(under.epoch, [{ ...key, spent: 0n }]);
      expect(await read(key)).toEqual([[0n, 42n]]);
    });

    test('of the same scope in another window is another', async () => {
      const key = await loadCounter('key', 100n, 5n);
      const { start: from, end } = key.window;
      const edited = { ...key, window: { start: from, end: end + HOUR } };
      expect(await read(edited)).toEqual([undefined]);
      await under.store.load(under.epoch, [{ ...edited, spent: 9n }]);
      expect(await start().reservation(92n, edited)).toMatchObject({ outcome: 'exceeded', spent: 9n });
      expect(await read(key, edited)).toEqual([
        [5n, 0n],
        [9n, 0n],
      ]);
    });

    test('is listed by pages, each once', async () => {
      const counters = Array.from({ length: 25 }, (_, at) => counter(`scope ${at}`));
      await under.store.load(
        under.epoch,
        counters.map((of) => ({ ...of, spent: 0n })),
      );
      const listed: string[] = [];
      for (let from = 0; from < counters.length; from += 10) {
        const found = await under.store.loaded(from, 10);
        expect(found.total).toBe(counters.length);
        for (const { scopeId, window } of found.counters) listed.push(`${scopeId} ${window.start} ${window.end}`);
      }
      const all = counters.map(({ scopeId, window }) => `${scopeId} ${window.start} ${window.end}`);
      expect(listed.sort()).toEqual(all.sort());
    });

    test('stays after its window while an account has something in it', async () => {
      const now = under.now();
      const window = { start: now - HOUR, end: now + LEASE };
      const counters = ['reserved', 'at risk', 'unbooked'].map((scopeId) => ({ scopeId, limit: 10n, window }));
      await under.store.load(
        under.epoch,
        counters.map((of) => ({ ...of, spent: 0n })),
      );
      const parts = [{ carriedOver: 1n }, { risk: 1n }, { spend: 1n }];
      const one = start();
      await one.call({ changes: counters.map((of, at) => changeOf(of, parts[at])) });
      await under.advance(clock === 'manual' ? HOUR : LEASE + 1);
      await start().call();
      await start().call();
      expect(await read(...counters)).toEqual([
        [0n, 1n],
        [0n, 0n],
        [1n, 0n],
      ]);
      expect(await one.call({ changes: counters.map((of) => changeOf(of, { spend: 1n })) })).toMatchObject({
        counters: [{ spent: 1n }, { spent: 1n }, { spent: 2n }],
      });
    });

    if (clock === 'manual') {
      test('time never turns back, also where the clock of the server does', async () => {
        const one = start();
        const first = await one.call();
        await under.advance(-60_000);
        expect((await one.call()).now).toBe(first.now);
      });

      test('a store whose clock was ahead by more than a minute is lost; the next epoch begins with the right time', async () => {
        const key = await loadCounter('key', 100n);
        await under.advance(3_600_000);
        await start().call({ changes: [changeOf(key, { spend: 1n })] });
        await under.advance(-61_000);
        await expect(start().call()).rejects.toThrow('answered with epoch');
        expect(await under.store.begin(2, true)).toBe(2);
        const reply = await accountsScenario(() => ({ ...under, epoch: 2 }))
          .start()
          .call();
        expect(reply.now).toBe(under.now());
      });
    }

    // A store keeps counters for a while after their window, which only a manual clock shows.
    if (clock === 'manual')
      test('leaves when its window is over and no account has anything in it', async () => {
        const [key, kept] = [await loadCounter('key', 100n), { ...counter('kept', 100n) }];
        const long = { ...kept, window: { start: key.window.start, end: key.window.end + 10 * HOUR } };
        await under.store.load(under.epoch, [{ ...long, spent: 0n }]);
        const [one, two] = [start(), start(10 * HOUR)];
        await one.reservation(10n, key);
        await one.call({ changes: [changeOf(key, { spend: 5n, returned: 5n })], batch: 1 });
        await under.advance(3 * HOUR);
        for (let at = 0; at < 3; at += 1) await two.call();
        expect(await read(key)).toEqual([[5n, 0n]]);
        await one.call({ changes: [], batch: 2, bookedBatch: 1, lease: 10 * HOUR });
        await under.advance(HOUR);
        for (let at = 0; at < 3; at += 1) await two.call();
        expect(await read(key, long)).toEqual([undefined, [0n, 0n]]);
        expect((await under.store.loaded(0, 10)).counters).toEqual([{ scopeId: 'kept', window: long.window }]);
      });
  });
}
