// What do all stores promise, in memory, in Redis or over HTTPS? LEDGER 1 to 5, as far as a store shows them.
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Millis, Nano, Window } from './money.ts';
import type { ScopeWindow } from './policy.ts';
import { describeEpochs } from './store.epoch.promises.ts';
import { type Event, eventOf, modelStore } from './store.model.promises.ts';
import { describeRates } from './store.rates.promises.ts';
import type { Counter, HoldAnswer, HoldOperation, Store, StoreCall, StoreReply } from './store.ts';

export interface StoreUnderTest {
  readonly store: Store;
  readonly epoch: number;
  readonly now: () => Millis;
  /** Lets the store's clock go on by so much. Leases in this suite are short, so that a real store may really wait. */
  readonly advance: (millis: Millis) => Promise<void>;
}

const LEASE: Millis = 400;
const HOUR: Millis = 3_600_000;
/** Where numbers of any kind stop being exact, or a store may change how it counts. */
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

/** `make` answers an empty store; it is called once per test and per run of a property. */
export function describeStore(name: string, make: () => Promise<StoreUnderTest>): void {
  describe(`the store in ${name}`, () => {
    let under: StoreUnderTest;
    let made = 0;

    beforeEach(async () => {
      under = await make();
    });

    const nextId = (): string => `00000000-0000-7000-8000-${String(made++).padStart(12, '0')}`;
    const window = (): Window => ({ start: under.now() - HOUR, end: under.now() + HOUR });
    const scope = (scopeId: string): ScopeWindow => ({ scopeId, window: window() });
    const counter = (scopeId: string, limit: Nano): Counter => ({ ...scope(scopeId), limit });

    const call = async (part: Partial<StoreCall>): Promise<StoreReply> => {
      const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
      const reply = await under.store.call({ epoch: under.epoch, ...nothing, ...part });
      if (reply.outcome !== 'done') throw new Error('the epoch is stale');
      return reply;
    };
    const operation = (amount: Nano, counters: ReadonlyArray<Counter>, more: Partial<HoldOperation> = {}) => ({
      ...{ id: nextId(), amount, least: amount, counters, deadline: under.now() + HOUR, lease: LEASE },
      note: {
        charges: counters.map(({ scopeId, window }) => ({ scopeId, window })),
        model: 'small',
        identifier: 's-1',
      },
      ...more,
    });
    const take = async (of: HoldOperation): Promise<HoldAnswer | undefined> => (await call({ holds: [of] })).holds[0];
    const load = (spent: Nano, ...counters: ScopeWindow[]) =>
      call({ loads: counters.map(({ scopeId, window }) => ({ scopeId, window, spent })) });
    const settle = async (id: string, cost: Nano) => (await call({ settles: [{ id, cost }] })).settles[0];
    const release = async (id: string) => (await call({ releases: [{ id, lease: LEASE }] })).releases[0];
    const spent = async (of: ScopeWindow) => (await under.store.read([of]))[0];

    describe('a hold', () => {
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

      test('is refused as exceeded where spend alone leaves less than the least, and is told the spend', async () => {
        const key = counter('key', 100n);
        await load(95n, key);
        expect(await take(operation(50n, [key], { least: 6n }))).toEqual({
          outcome: 'exceeded',
          counter: 0,
          spent: 95n,
        });
      });

      test('is clamped to what spend leaves in the scope that leaves least', async () => {
        const [key, team] = [counter('key', 100n), counter('team', 100n)];
        await load(10n, key);
        await load(70n, team);
        expect(await take(operation(50n, [key, team], { least: 6n }))).toEqual({ outcome: 'held', amount: 30n });
      });

      test('waits for live holds even where it would be clamped: what they hold may come back', async () => {
        const key = counter('key', 100n);
        await load(50n, key);
        const first = operation(10n, [key]);
        await take(first);
        const second = operation(80n, [key], { least: 1n });
        expect(await take(second)).toEqual({ outcome: 'busy', counter: 0 });
        await release(first.id);
        expect(await take(second)).toEqual({ outcome: 'held', amount: 50n });
      });

      test('is told that spend refuses it when spend in one scope and holds in another do', async () => {
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

      test('of a free model is taken even while holds stand above what a provider’s overrun left', async () => {
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

      test('that is refused does not fail its neighbours in the call', async () => {
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

      test('obeys a limit that was raised or lowered since the last one', async () => {
        const key = counter('key', 100n);
        await load(50n, key);
        expect(await take(operation(1n, [{ ...key, limit: 50n }]))).toMatchObject({ outcome: 'exceeded' });
        expect(await take(operation(60n, [{ ...key, limit: 110n }]))).toMatchObject({ outcome: 'held' });
      });
    });

    describe('not knowing refuses', () => {
      test('absent is not zero: counters that are not loaded are named and nothing is taken', async () => {
        const [key, team] = [counter('key', 100n), counter('team', 100n)];
        await load(0n, key);
        expect(await take(operation(100n, [key, team]))).toEqual({ outcome: 'absent', counters: [1] });
        expect(await take(operation(100n, [key]))).toMatchObject({ outcome: 'held' });
        expect(await spent(team)).toBeUndefined();
      });

      test('a counter that is there is not loaded again', async () => {
        const key = counter('key', 100n);
        await load(30n, key);
        await load(0n, key);
        expect(await spent(key)).toBe(30n);
      });

      test('a window that is not current on the store’s clock takes nothing; it begins at its start and is over at its end', async () => {
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

      test('another epoch does nothing at all', async () => {
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

    describe('an ending', () => {
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

      test('released frees everything, once; what is settled after that counts nothing', async () => {
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

      test('above its hold is the truth: what the provider billed is counted', async () => {
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

      test('in the same call makes room for the holds behind it', async () => {
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
      test('that ends charges the hold at its size, and is told until it is acknowledged', async () => {
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

      test('that ends charges what is known to have been streamed', async () => {
        const key = counter('key', 100n);
        await load(0n, key);
        const of = operation(60n, [key]);
        await take(of);
        await call({ renewals: [{ id: of.id, known: 25n, lease: LEASE }] });
        await under.advance(LEASE + 1);
        expect((await call({})).expired).toMatchObject([{ charged: 25n }]);
        expect(await spent(key)).toBe(25n);
      });

      test('that is renewed goes on', async () => {
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

      test('that ended before the settlement came is corrected to the truth, once', async () => {
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

      test('that ended before the release came gives everything back, once', async () => {
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

      test('whose hold was released before it arrived forbids the hold, for one lease', async () => {
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
      test('counts nothing where no counters are named: a late repeat of what was booked and forgotten', async () => {
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

      test('is counted once where they are, less what PostgreSQL was told already', async () => {
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

    describe('a budget whose duration was edited', () => {
      test('counts what is taken under either policy in both windows', async () => {
        const old = counter('key', 100n);
        const edited = { ...old, window: { start: old.window.start, end: old.window.end + HOUR } };
        await load(0n, old, edited);
        const [first, second] = [operation(30n, [old]), operation(50n, [edited])];
        await call({ holds: [first, second] });
        expect(await take(operation(21n, [old]))).toMatchObject({ outcome: 'busy' });
        await call({ settles: [first, second].map(({ id, amount }) => ({ id, cost: amount })) });
        expect(await under.store.read([old, edited])).toEqual([80n, 80n]);
      });

      test('takes in what is under way when its counter is loaded, and what is settled and not in PostgreSQL yet', async () => {
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

      test('takes in what ended with its lease, at what it was corrected to', async () => {
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

      test('takes in nothing from before its window', async () => {
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

      test('is never above a limit and always what a naive count says, whatever happens in whatever order', async () => {
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

    describeRates(make);
    describeEpochs(make);
  });
}
