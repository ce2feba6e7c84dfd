import { beforeEach, describe, expect, test } from 'vitest';
import type { HoldRequest } from '../ports/ledger.ts';
import type { StartableLedger } from './ledger.ts';
import { createScene, heldOf, requestOf, type Scene, scopeOf, settlementOf } from './scene.promises.ts';

const key = scopeOf('key', 100n);
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = scene.process();
  await ledger.start();
});

/** The outcome of a hold, and the milliseconds it took. */
async function tryHold(request: HoldRequest): Promise<{ readonly outcome: string; readonly millis: number }> {
  const began = scene.time.clock.now();
  let done: { outcome: string; millis: number } | undefined;
  void ledger.hold(request).then((result) => {
    done = { outcome: result.ok ? 'held' : result.failure.reason, millis: scene.time.clock.now() - began };
  });
  for (let waited = 0; done === undefined && waited < 5000; waited += 10) await scene.time.advance(10);
  return done ?? { outcome: 'nothing', millis: 5000 };
}

const settleOne = async (cost: bigint): Promise<void> =>
  ledger.settle(heldOf(await ledger.hold(requestOf(cost, key))), settlementOf(cost));

describe('a store that', () => {
  beforeEach(() => settleOne(10n));

  test('refuses: 503 within a second, and nothing stays held', async () => {
    scene.store.behaviour = 'refuses';
    expect(await tryHold(requestOf(90n, key))).toMatchObject({ outcome: 'unavailable', millis: 0 });
    scene.store.behaviour = 'up';
    await scene.time.advance(1000);
    expect(await tryHold(requestOf(90n, key))).toMatchObject({ outcome: 'held' });
  });

  test('is frozen: 503 within a second; nothing stays held when the store runs the call later', async () => {
    scene.store.behaviour = 'hangs';
    expect(await tryHold(requestOf(90n, key))).toEqual({ outcome: 'unavailable', millis: 900 });
    scene.store.behaviour = 'up';
    await scene.time.advance(1000);
    expect(await tryHold(requestOf(90n, key))).toMatchObject({ outcome: 'held' });
    expect(await scene.store.part.read([])).toEqual([]);
  });

  test('takes the hold and loses the answer: its release is repeated until the store acknowledges it', async () => {
    scene.store.behaviour = 'loses';
    expect(await tryHold(requestOf(90n, key))).toMatchObject({ outcome: 'unavailable' });
    await scene.time.advance(5000);
    scene.store.behaviour = 'up';
    await scene.time.advance(1100);
    expect(await tryHold(requestOf(90n, key))).toMatchObject({ outcome: 'held' });
  });

  test('took a hold without an answer and came back after its lease: the charge is refunded', async () => {
    scene.store.behaviour = 'loses';
    await tryHold(requestOf(90n, key));
    scene.store.behaviour = 'refuses';
    await scene.time.advance(70_000);
    scene.store.behaviour = 'up';
    await scene.time.advance(6000);
    expect(await ledger.spend([key])).toMatchObject({ value: [{ spent: 10n }] });
    await ledger.flush();
    const sum = scene.books.part.entries().reduce((all, { cost }) => all + cost, 0n);
    expect(sum).toBe(10n);
  });

  test.each(['refuses', 'loses', 'hangs'] as const)(
    '%s while replies complete: each is counted and booked once',
    async (behaviour) => {
      const holds = [];
      for (const cost of [20n, 30n]) holds.push({ hold: heldOf(await ledger.hold(requestOf(cost, key))), cost });
      scene.store.behaviour = behaviour;
      for (const { hold, cost } of holds) await ledger.settle(hold, settlementOf(cost));
      await scene.time.advance(7000);
      expect(scene.books.part.entries().map(({ cost }) => cost)).toEqual([10n]);
      scene.store.behaviour = 'up';
      await scene.time.advance(3000);
      expect(scene.books.part.entries().map(({ cost }) => cost)).toEqual([10n, 20n, 30n]);
      expect(await ledger.spend([key])).toMatchObject({ value: [{ spent: 60n }] });
    },
  );

  test('comes back to many settlements: one call finds out, the rest follow immediately', async () => {
    const free = scopeOf('free');
    const holds = await Promise.all(Array.from({ length: 1000 }, () => ledger.hold(requestOf(1n, free))));
    scene.store.behaviour = 'refuses';
    await Promise.all(holds.map((held) => ledger.settle(heldOf(held), settlementOf(1n))));
    await scene.time.advance(5000);
    scene.calls.length = 0;
    await scene.time.advance(3000);
    expect(scene.calls.length).toBeLessThanOrEqual(3);
    scene.store.behaviour = 'up';
    await scene.time.advance(1200);
    expect(scene.books.part.entries()).toHaveLength(1001);
  });

  test('does not answer makes spend unavailable too, never zero', async () => {
    scene.store.behaviour = 'hangs';
    const asked = ledger.spend([key]);
    await scene.time.advance(900);
    expect(await asked).toMatchObject({ ok: false, failure: { reason: 'unavailable' } });
  });
});

describe('a database that', () => {
  test('refuses while a budget is unknown: 503 immediately, never an admission', async () => {
    scene.books.behaviour = 'refuses';
    expect(await tryHold(requestOf(1n, key))).toMatchObject({ outcome: 'unavailable', millis: 0 });
  });

  test('is frozen while a budget is unknown: 503 within a second, and holds work again when the database does', async () => {
    scene.books.behaviour = 'hangs';
    expect(await tryHold(requestOf(1n, key))).toEqual({ outcome: 'unavailable', millis: 900 });
    scene.books.behaviour = 'up';
    await scene.time.advance(2000);
    expect(await tryHold(requestOf(1n, key))).toMatchObject({ outcome: 'held' });
  });

  test('is away for a while: known budgets work for 30 s, then 503, then everything is booked once', async () => {
    await settleOne(1n);
    await ledger.flush();
    scene.books.behaviour = 'refuses';
    for (let second = 0; second < 20; second += 1) {
      await settleOne(1n);
      await scene.time.advance(1000);
    }
    expect(await tryHold(requestOf(1n, key))).toMatchObject({ outcome: 'held' });
    await scene.time.advance(11_000);
    expect(await tryHold(requestOf(1n, key))).toMatchObject({ outcome: 'unavailable' });
    scene.books.behaviour = 'up';
    await scene.time.advance(6000);
    expect(await tryHold(requestOf(1n, key))).toMatchObject({ outcome: 'held' });
    expect(scene.books.part.entries()).toHaveLength(21);
  });

  test.each(['refuses', 'hangs'] as const)(
    '%s for a while: gauges show how many entries wait, and for how long the oldest has waited',
    async (behaviour) => {
      const gauges = () =>
        ['unbooked', 'unbooked_age_seconds'].map((name) => scene.gauges.get(`gateway_operator_ledger_${name}`) ?? 0);
      await settleOne(1n);
      await ledger.flush();
      expect(gauges()).toEqual([0, 0]);
      scene.books.behaviour = behaviour;
      await settleOne(1n);
      await settleOne(1n);
      await scene.time.advance(20_000);
      const [depth, age = 0] = gauges();
      expect(depth).toBe(2);
      expect(age).toBeGreaterThanOrEqual(19);
      expect(age).toBeLessThanOrEqual(20);
      scene.books.behaviour = 'up';
      await scene.time.advance(6000);
      expect(gauges()).toEqual([0, 0]);
    },
  );

  test('is up while the store is away: what the store has not counted shows in the gauges too', async () => {
    const held = heldOf(await ledger.hold(requestOf(1n, key)));
    scene.store.behaviour = 'refuses';
    await ledger.settle(held, settlementOf(1n));
    await scene.time.advance(20_000);
    expect(scene.gauges.get('gateway_operator_ledger_unbooked')).toBe(1);
    expect(scene.gauges.get('gateway_operator_ledger_unbooked_age_seconds')).toBeGreaterThanOrEqual(19);
  });

  test.each(['loses', 'hangs'] as const)('%s answers: no entry is there twice, none is missing', async (behaviour) => {
    await settleOne(1n);
    scene.books.behaviour = behaviour;
    for (let each = 0; each < 5; each += 1) {
      await settleOne(2n);
      await scene.time.advance(3000);
    }
    scene.books.behaviour = 'up';
    await scene.time.advance(11_000);
    expect(scene.books.part.entries().map(({ cost }) => cost)).toEqual([1n, 2n, 2n, 2n, 2n, 2n]);
    const { charges } = heldOf(await ledger.hold(requestOf(1n, key)));
    expect(await scene.books.part.sums(charges)).toMatchObject([{ spent: 11n }]);
  });

  test('may have booked a batch whose answer was lost: a counter loaded then counts it once', async () => {
    const longer = scopeOf('key', 100n, { budget: { limit: '100', duration: '31d', alignment: 'Rolling' } });
    await settleOne(40n);
    scene.books.behaviour = 'loses';
    await scene.time.advance(150);
    expect(scene.books.part.entries()).toHaveLength(1);
    scene.books.behaviour = 'up';
    const start = Date.UTC(2026, 0, 1);
    scene.books.part.recount('key', { start, end: start + 31 * 86_400_000 });
    await ledger.hold(requestOf(1n, longer));
    expect(await ledger.spend([longer])).toMatchObject({ value: [{ spent: 40n }] });
  });

  test('rejects an entry: the rest is booked, the ledger continues, and the log reports it', async () => {
    const { book } = scene.books.part;
    Object.assign(scene.books.part, {
      book: async (uid: string, entries: Parameters<typeof book>[1]) => {
        await book(uid, entries.slice(1));
        return { rejected: entries.slice(0, 1).map(({ id }) => id) };
      },
    });
    await settleOne(1n);
    await settleOne(2n);
    await ledger.flush();
    expect(scene.books.part.entries().map(({ cost }) => cost)).toEqual([2n]);
    expect(scene.log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(scene.counted.get('gateway_operator_ledger_rejected_total')).toBe(1);
  });

  test('is away makes a flush fail with a message', async () => {
    await settleOne(1n);
    scene.books.behaviour = 'refuses';
    await expect(ledger.flush()).rejects.toThrow('booking entries in PostgreSQL');
  });
});

describe('an outbox that cannot be written', () => {
  test('admits nothing, and nothing stays held', async () => {
    scene.outbox.behaviour = 'refuses';
    expect(await tryHold(requestOf(100n, key))).toMatchObject({ outcome: 'unavailable' });
    scene.outbox.behaviour = 'up';
    await scene.time.advance(10);
    expect(await tryHold(requestOf(100n, key))).toMatchObject({ outcome: 'held' });
  });

  test('lets a reply end only when PostgreSQL has its settlement', async () => {
    const hold = heldOf(await ledger.hold(requestOf(100n, key)));
    scene.outbox.behaviour = 'refuses';
    const settled = ledger.settle(hold, settlementOf(30n));
    await scene.time.advance(5);
    await settled;
    expect(scene.books.part.entries()).toMatchObject([{ cost: 30n }]);
  });

  test('for a while: a settlement is booked only after it is written, so its record does not stay for ever', async () => {
    const hold = heldOf(await ledger.hold(requestOf(100n, key)));
    scene.outbox.behaviour = 'hangs';
    const settled = ledger.settle(hold, settlementOf(30n));
    await scene.time.advance(500);
    scene.outbox.behaviour = 'up';
    await scene.time.advance(500);
    await settled;
    expect(scene.books.part.entries()).toMatchObject([{ cost: 30n }]);
    expect(scene.folder.records).toEqual([]);
  });

  test('breaks off the reply when PostgreSQL is away too', async () => {
    const hold = heldOf(await ledger.hold(requestOf(100n, key)));
    scene.outbox.behaviour = 'refuses';
    scene.books.behaviour = 'refuses';
    const settled = expect(ledger.settle(hold, settlementOf(30n))).rejects.toThrow();
    await scene.time.advance(5);
    await settled;
    scene.books.behaviour = 'up';
    await scene.time.advance(1000);
    expect(scene.books.part.entries()).toMatchObject([{ cost: 30n }]);
  });
});

test('requests are refused until the start has succeeded', async () => {
  const another = scene.process();
  expect(await another.hold(requestOf(1n, key))).toMatchObject({ failure: { reason: 'unavailable' } });
});

test('more than a hundred thousand unbooked entries mean that PostgreSQL is away', async () => {
  const free = scopeOf('free');
  await settleOne(1n);
  scene.books.behaviour = 'refuses';
  for (let done = 0; done < 100_000; done += 2000) {
    const holds = await Promise.all(Array.from({ length: 2000 }, () => ledger.hold(requestOf(0n, free))));
    await Promise.all(holds.map((held) => ledger.settle(heldOf(held), settlementOf(0n))));
    await scene.time.advance(5);
  }
  expect(await tryHold(requestOf(0n, free))).toMatchObject({ outcome: 'unavailable' });
});
