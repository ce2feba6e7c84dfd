// Promises of epochs, exact loads, and records that other processes book (LEDGER 6, 8).
import { beforeEach, describe, expect, test } from 'vitest';
import type { Entry } from './books.ts';
import type { Millis } from './money.ts';
import { HOUR, LEASE, type StoreUnderTest, storeScene } from './store.scene.promises.ts';
import type { HoldOperation, Registration, StoreCall } from './store.ts';

/** `make` as in `describeStore`, which runs this too. */
export function describeEpochs(make: () => Promise<StoreUnderTest>): void {
  describe('an epoch', () => {
    let under: StoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });

    const { counter, ask, call, operation, load, spent } = storeScene(() => under);
    const registration = (of: HoldOperation, more: Partial<Registration> = {}): Registration => ({
      ...{ id: of.id, amount: of.amount, note: of.note, lease: of.lease, at: under.now() },
      ...more,
    });
    const noteOf = (of: HoldOperation, kind: Entry['kind'] = 'settled'): Omit<Entry, 'id' | 'cost'> => ({
      ...{ kind, charges: of.note.charges, tokens: { input: 1, output: 2, cachedInput: 3, cacheWrite: 4 } },
      ...{ model: 'small', identifier: 's-2', estimated: true, settledAt: 7 },
    });
    const take = (of: HoldOperation, more: Partial<StoreCall> = {}) => call({ holds: [of], ...more });
    const unbooked = async (idleFor: Millis) => (await under.store.unbooked(idleFor, 100)).records;

    describe('of a store', () => {
      test('counts the calls of each process, and refuses a process that it has answered more often than it shows', async () => {
        const from = (process: string, acknowledged: number) => ({ from: { process, acknowledged } });
        expect(await call(from('one', 0))).toMatchObject({ calls: 1 });
        expect(await call(from('one', 1))).toMatchObject({ calls: 2 });
        // A call whose answer was lost was counted all the same.
        expect(await call(from('one', 1))).toMatchObject({ calls: 3 });
        expect(await call(from('two', 0))).toMatchObject({ calls: 1 });
        const key = counter('key', 100n);
        const back = await ask({ ...from('two', 2), loads: [{ ...key, spent: 1n }] });
        expect(back).toMatchObject({ outcome: 'epoch', epoch: under.epoch });
        expect(await spent(key)).toBeUndefined();
        expect(await ask({ marks: new Map([['one', 4]]) })).toMatchObject({ outcome: 'epoch' });
        expect(await ask({ marks: new Map([['one', 3]]) })).toMatchObject({ outcome: 'done' });
      });

      test('that is followed by another keeps nothing, and does not come back', async () => {
        const key = counter('key', 100n);
        await load(5n, key);
        await take(operation(10n, [key]), { from: { process: 'one', acknowledged: 0 } });
        expect(await under.store.begin(under.epoch + 2)).toBe(under.epoch + 2);
        expect(await under.store.begin(under.epoch + 1)).toBe(under.epoch + 2);
        expect(await ask({})).toMatchObject({ outcome: 'epoch', epoch: under.epoch + 2 });
        const next = { epoch: under.epoch + 2 };
        expect(await spent(key)).toBeUndefined();
        expect(await call({ ...next, from: { process: 'one', acknowledged: 0 } })).toMatchObject({ calls: 1 });
        expect(await call({ ...next, holds: [operation(1n, [key])] })).toMatchObject({
          holds: [{ outcome: 'absent' }],
        });
      });

      test('that was cleared is none', async () => {
        await load(5n, counter('key', 100n));
        await under.store.clear();
        expect(await ask({})).toMatchObject({ outcome: 'epoch', epoch: 0 });
        expect((await under.store.loaded(0, 10)).counters).toEqual([]);
      });
    });

    describe('that begins', () => {
      test('takes over live holds, above a limit too, and charges them like its own', async () => {
        const key = counter('key', 100n);
        const [one, two] = [operation(60n, [key]), operation(60n, [key])];
        const before = registration(one);
        await call({ registers: [before, before] });
        await load(0n, key);
        await call({ registers: [registration(two, { known: 7n })] });
        expect(await call({ holds: [operation(1n, [key])] })).toMatchObject({ holds: [{ outcome: 'busy' }] });
        expect(await call({ settles: [{ id: one.id, cost: 50n }] })).toMatchObject({
          settles: [{ outcome: 'settled' }],
        });
        await under.advance(LEASE + 1);
        expect(await call({})).toMatchObject({ expired: [{ id: two.id, charged: 7n, note: two.note }] });
        expect(await spent(key)).toBe(57n);
      });

      test('registers an expired hold as such: its settlement is a correction', async () => {
        const key = counter('key', 100n);
        const of = operation(60n, [key]);
        await call({ registers: [registration(of, { charged: 60n })] });
        await load(60n, key);
        const settles = [{ id: of.id, cost: 20n, note: noteOf(of) }];
        expect(await call({ settles })).toMatchObject({ settles: [{ outcome: 'expired', charged: 60n }], expired: [] });
        expect(await spent(key)).toBe(20n);
        expect(await unbooked(0)).toMatchObject([{ id: of.id, kind: 'correction', cost: -40n }]);
      });

      test('frees a registered hold that turns out to be expired: its settlement is a correction', async () => {
        const key = counter('key', 100n);
        const [ended, settled] = [operation(60n, [key]), operation(10n, [key])];
        await call({ registers: [registration(ended), registration(settled)] });
        await load(60n, key);
        await call({ settles: [{ id: settled.id, cost: 5n, note: noteOf(settled) }] });
        expect(await call({ holds: [operation(35n, [key])] })).toMatchObject({ holds: [{ outcome: 'busy' }] });
        const registers = [ended, settled].map((of) => registration(of, { charged: 60n }));
        await call({ registers: [...registers, ...registers] });
        await call({ registers: [registration(ended)] });
        expect(await spent(key)).toBe(65n);
        expect(await call({ holds: [operation(36n, [key])] })).toMatchObject({ holds: [{ outcome: 'exceeded' }] });
        expect(await call({ holds: [operation(35n, [key])] })).toMatchObject({ holds: [{ outcome: 'held' }] });
        // The expiry is not reported for booking: PostgreSQL has it.
        await under.advance(LEASE - 100);
        expect((await unbooked(0)).map(({ id, kind }) => [id, kind])).toEqual([[settled.id, 'settled']]);
        const settles = [{ id: ended.id, cost: 20n, note: noteOf(ended) }];
        expect(await call({ settles })).toMatchObject({ settles: [{ outcome: 'expired', charged: 60n }] });
        expect(await spent(key)).toBe(25n);
      });
    });

    describe('a load', () => {
      test('adds the charges that PostgreSQL’s sum lacks, and not those it has', async () => {
        const key = counter('key', 1000n);
        const [held, settled, booked, ended] = [1n, 20n, 300n, 4n].map((amount) => operation(amount, [key]));
        if (!held || !settled || !booked || !ended) throw new Error('four holds');
        await load(0n, key);
        await call({ holds: [held, settled, booked, { ...ended, lease: 10 }] });
        await call({ settles: [settled, booked].map((of) => ({ id: of.id, cost: of.amount, note: noteOf(of) })) });
        await under.advance(11);
        await call({});
        const edited = { ...key, window: { ...key.window, end: key.window.end + HOUR } };
        const { counters } = await under.store.survey([edited, key]);
        const parts = [
          { id: settled.id, kind: 'settled', cost: 20n },
          { id: booked.id, kind: 'settled', cost: 300n },
          { id: ended.id, kind: 'expired', cost: 4n },
        ];
        expect(counters[0]?.spent).toBeUndefined();
        expect(counters[1]?.spent).toBe(324n);
        for (const { parts: seen } of counters) expect(seen.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(parts);
        const name = { id: booked.id, kind: 'settled' as const };
        await call({ loads: [{ ...edited, spent: 300n, booked: [name] }] });
        expect(await spent(edited)).toBe(324n);
        // The charge was forgotten meanwhile: the sum has it.
        await under.store.forget([name]);
        const longer = { ...key, window: { ...key.window, end: key.window.end + 2 * HOUR } };
        await call({ loads: [{ ...longer, spent: 300n, booked: [name] }] });
        expect(await under.store.read([key, edited, longer])).toEqual([324n, 324n, 324n]);
      });

      test('after its deadline changes nothing; neither does a repair', async () => {
        const key = counter('key', 100n);
        const deadline = under.now() - 1;
        await call({ loads: [{ ...key, spent: 5n, deadline }] });
        expect(await spent(key)).toBeUndefined();
        await call({ loads: [{ ...key, spent: 5n, deadline: under.now() + HOUR }] });
        await call({ adjusts: [{ ...key, by: -3n, deadline }] });
        expect(await spent(key)).toBe(5n);
        await call({ adjusts: [{ ...key, by: -3n, deadline: under.now() + HOUR }] });
        expect(await spent(key)).toBe(2n);
      });

      test('lists every loaded counter, page by page', async () => {
        const all = Array.from({ length: 7 }, (_, at) => counter(`key ${at}`, 1n));
        await load(0n, ...all);
        const seen: string[] = [];
        for (let from: number | undefined = 0; from !== undefined; ) {
          const page: Awaited<ReturnType<typeof under.store.loaded>> = await under.store.loaded(from, 3);
          expect(page.counters.length).toBeLessThanOrEqual(3);
          seen.push(...page.counters.map(({ scopeId, window }) => `${scopeId} ${window.start}-${window.end}`));
          from = page.next;
        }
        expect(seen.sort()).toEqual(all.map(({ scopeId, window }) => `${scopeId} ${window.start}-${window.end}`));
      });
    });

    describe('an unbooked record', () => {
      test('is kept with all fields of its entry, until it is acknowledged', async () => {
        const key = counter('key', 100n);
        await load(0n, key);
        const of = operation(60n, [key]);
        await take(of);
        await call({ settles: [{ id: of.id, cost: 30n, note: noteOf(of) }] });
        const kept = {
          id: of.id,
          kind: 'settled',
          cost: 30n,
          hold: of.note,
          settlement: noteOf(of),
          since: under.now(),
        };
        expect(await unbooked(0)).toEqual([kept]);
        await under.store.forget([{ id: of.id, kind: 'settled' }]);
        expect(await unbooked(0)).toEqual([]);
      });

      test('stays when another entry of the same hold is acknowledged: an expiry of an earlier epoch', async () => {
        const key = counter('key', 100n);
        const of = operation(60n, [key]);
        await call({ registers: [registration(of)] });
        await load(0n, key);
        await call({ settles: [{ id: of.id, cost: 30n, note: noteOf(of) }] });
        await under.store.forget([{ id: of.id, kind: 'expired' }]);
        expect(await unbooked(0)).toMatchObject([{ id: of.id, kind: 'settled', cost: 30n }]);
        await under.store.forget([{ id: of.id, kind: 'settled' }]);
        expect(await unbooked(0)).toEqual([]);
      });

      test('is returned only when it is old and its process has made no call since', async () => {
        const key = counter('key', 100n);
        await load(0n, key);
        const of = operation(60n, [key]);
        const from = { process: 'one', acknowledged: 0 };
        await take(of, { from });
        await call({ from, settles: [{ id: of.id, cost: 30n, note: noteOf(of) }] });
        await under.advance(2000);
        await call({ from });
        expect(await unbooked(2000)).toEqual([]);
        await under.advance(1999);
        expect(await unbooked(2000)).toEqual([]);
        await under.advance(1);
        expect(await unbooked(2000)).toMatchObject([{ id: of.id, cost: 30n }]);
        expect((await under.store.unbooked(0, 10)).calls).toEqual(new Map([['one', 3]]));
      });

      test('of a dead process is not hidden by earlier records of a live one', async () => {
        const key = counter('key', 10_000n);
        await load(0n, key);
        const settle = async (process: string, count: number) => {
          const holds = Array.from({ length: count }, () => operation(6n, [key]));
          const from = { process, acknowledged: 0 };
          await call({ from, holds });
          await call({ from, settles: holds.map((of) => ({ id: of.id, cost: 3n, note: noteOf(of) })) });
          return holds.map(({ id }) => id);
        };
        for (let batch = 0; batch < 4; batch += 1) await settle('alive', 30);
        const lost = await settle('gone', 2);
        await under.advance(2000);
        await call({ from: { process: 'alive', acknowledged: 0 } });
        const found = async (most: number) => (await under.store.unbooked(2000, most)).records.map(({ id }) => id);
        expect(await found(1)).toEqual(lost.slice(0, 1));
        expect(await found(100)).toEqual(lost);
      });

      test('of an expiry and one of its later settlement are two', async () => {
        const key = counter('key', 100n);
        await load(0n, key);
        const of = operation(60n, [key]);
        await take(of);
        await under.advance(LEASE + 1);
        const ended = { id: of.id, kind: 'expired', cost: 60n, hold: of.note };
        expect(await unbooked(0)).toMatchObject([ended]);
        await call({ settles: [{ id: of.id, cost: 20n, note: noteOf(of) }] });
        const corrected = { id: of.id, kind: 'correction', cost: -40n };
        expect(await unbooked(0)).toMatchObject([ended, corrected]);
        await under.store.forget([{ id: of.id, kind: 'expired' }]);
        expect(await unbooked(0)).toMatchObject([corrected]);
        const edited = { ...key, window: { ...key.window, end: key.window.end + HOUR } };
        await load(60n, edited);
        expect(await spent(edited)).toBe(20n);
        await under.store.forget([{ id: of.id, kind: 'correction' }]);
        expect(await unbooked(0)).toEqual([]);
        expect(await call({ settles: [{ id: of.id, cost: 20n }] })).toMatchObject({
          settles: [{ outcome: 'expired' }],
        });
        await under.advance(86_400_001);
        await call({});
        expect(await call({ settles: [{ id: of.id, cost: 20n }] })).toMatchObject({
          settles: [{ outcome: 'unknown' }],
        });
      });

      test('of a hold that the store never knew is loaded and kept like any other', async () => {
        const key = counter('key', 100n);
        await load(0n, key);
        const of = operation(60n, [key]);
        await call({
          settles: [{ id: of.id, cost: 50n, counted: 20n, counters: of.note.charges, note: noteOf(of, 'correction') }],
        });
        expect(await spent(key)).toBe(30n);
        expect(await unbooked(0)).toMatchObject([
          { id: of.id, kind: 'correction', cost: 30n, hold: { charges: of.note.charges } },
        ]);
        const edited = { ...key, window: { ...key.window, end: key.window.end + HOUR } };
        await load(20n, edited);
        expect(await spent(edited)).toBe(50n);
      });
    });
  });
}
