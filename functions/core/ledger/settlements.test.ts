import { beforeEach, describe, expect, test } from 'vitest';
import type { Entry } from '../ports/books.ts';
import type { Hold } from '../ports/ledger.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import type { StartableLedger } from './ledger.ts';
import { createScene, heldOf, requestOf, type Scene, scopeOf, settlementOf } from './scene.promises.ts';

const MINUTE = 60_000;
const key = scopeOf('key', 100n);
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = scene.process();
  await ledger.start();
});

const booked = (): Array<Pick<Entry, 'kind' | 'cost'>> =>
  scene.books.part.entries().map(({ kind, cost }) => ({ kind, cost }));
const recordsOf = ({ id }: Hold): OutboxRecord[] =>
  scene.folder.records.filter((record) => id === ('entry' in record ? record.entry.id : record.id));
const spent = async (): Promise<unknown> => {
  const result = await ledger.spend([key]);
  return result.ok ? result.value[0]?.spent : result.failure;
};

describe('a settlement', () => {
  test('is booked within about 100 ms, with all its fields', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    await ledger.settle(hold, { ...settlementOf(30n), estimated: true });
    await scene.time.advance(110);
    const { charges, id } = hold;
    const tokens = { input: 1, output: 2, cachedInput: 0, cacheWrite: 0 };
    const said = { cost: 30n, tokens, model: 'small', identifier: 'small-1', estimated: true };
    expect(scene.books.part.entries()).toEqual([
      { id, kind: 'settled', charges, ...said, settledAt: Date.UTC(2026, 0, 10) },
    ]);
    expect(scene.folder.records).toEqual([]);
  });

  test('twice is once, and a release after it changes nothing', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    await Promise.all([
      ledger.settle(hold, settlementOf(30n)),
      ledger.settle(hold, settlementOf(50n)),
      ledger.release(hold),
    ]);
    await scene.time.advance(200);
    await ledger.settle(hold, settlementOf(50n));
    await ledger.release(hold);
    await scene.time.advance(200);
    expect(booked()).toEqual([{ kind: 'settled', cost: 30n }]);
    expect(await spent()).toBe(30n);
  });

  test('is durable before it resolves: a process that dies right after it books it at its next start', async () => {
    await ledger.settle(heldOf(await ledger.hold(requestOf(60n, key))), settlementOf(30n));
    expect(scene.folder.records.map(({ type }) => type)).toEqual(['hold', 'settle']);
    expect(scene.books.part.entries()).toEqual([]);
    void scene.process().start();
    await scene.time.advance(10);
    expect(booked()).toEqual([{ kind: 'settled', cost: 30n }]);
  });

  test('above its hold is booked in full and counts as an overrun', async () => {
    await ledger.settle(heldOf(await ledger.hold(requestOf(60n, key))), settlementOf(75n));
    await ledger.flush();
    expect(booked()).toEqual([{ kind: 'settled', cost: 75n }]);
    expect(scene.counted.get('gateway_operator_ledger_overruns_total')).toBe(1);
  });

  test('counts for the very next request', async () => {
    await ledger.settle(heldOf(await ledger.hold(requestOf(100n, key))), settlementOf(100n));
    expect(await ledger.hold(requestOf(1n, key))).toMatchObject({ failure: { reason: 'exceeded', spent: 100n } });
  });

  test('below zero is refused as a bug', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    await expect(ledger.settle(hold, settlementOf(-1n))).rejects.toThrow('-1');
  });
});

describe('a release', () => {
  test('frees everything and books nothing', async () => {
    const hold = heldOf(await ledger.hold(requestOf(100n, key)));
    await ledger.release(hold);
    await ledger.release(hold);
    await ledger.settle(hold, settlementOf(50n));
    expect((await ledger.hold(requestOf(100n, key))).ok).toBe(true);
    await ledger.flush();
    expect(booked()).toEqual([]);
  });

  test('leaves nothing of its hold in the outbox', async () => {
    await ledger.release(heldOf(await ledger.hold(requestOf(100n, key))));
    await scene.time.advance(10);
    expect(scene.folder.records).toEqual([]);
  });
});

test('a settlement reaches the disk before the store: a restart that finds only the hold never meets a store that knows more', async () => {
  const hold = heldOf(await ledger.hold(requestOf(60n, key)));
  scene.outbox.behaviour = 'hangs';
  void ledger.settle(hold, settlementOf(30n));
  await scene.time.advance(100);
  expect(await scene.store.part.read(hold.charges)).toEqual([0n]);
  scene.outbox.behaviour = 'up';
  await scene.time.advance(100);
  expect(await scene.store.part.read(hold.charges)).toEqual([30n]);
});

describe('a lease', () => {
  test('is renewed while the request runs, however long it streams', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    await scene.time.advance(20 * MINUTE);
    await ledger.settle(hold, settlementOf(30n));
    await ledger.flush();
    expect(booked()).toEqual([{ kind: 'settled', cost: 30n }]);
  });

  test('ends after an hour for a hold that is never ended: headroom returns even after a bug', async () => {
    await ledger.hold(requestOf(60n, key));
    await scene.time.advance(63 * MINUTE);
    expect(await spent()).toBe(60n);
    await ledger.hold(requestOf(0n, key));
    await scene.time.advance(200);
    expect(booked()).toEqual([{ kind: 'expired', cost: 60n }]);
  });

  test('that ended while the process slept is charged at its size, and the settlement that follows is a correction', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    const asleep = scene.time.jump(2 * MINUTE);
    await ledger.hold(requestOf(0n, key));
    await asleep;
    await scene.time.advance(200);
    expect(booked()).toEqual([{ kind: 'expired', cost: 60n }]);
    await ledger.settle(hold, settlementOf(20n));
    await ledger.settle(hold, settlementOf(20n));
    await scene.time.advance(200);
    expect(booked()).toEqual([
      { kind: 'expired', cost: 60n },
      { kind: 'correction', cost: -40n },
    ]);
    expect(await spent()).toBe(20n);
    expect(await scene.books.part.sums(hold.charges)).toMatchObject([{ spent: 20n }]);
    expect(recordsOf(hold)).toEqual([]);
  });

  test('that ended more than a day before its settlement is charged once all the same', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    const asleep = scene.time.jump(2 * MINUTE);
    await ledger.hold(requestOf(0n, key));
    await asleep;
    await scene.time.advance(200);
    const weekend = scene.time.jump(60 * 60 * MINUTE);
    await ledger.hold(requestOf(0n, key));
    await weekend;
    await ledger.settle(hold, settlementOf(20n));
    await scene.time.advance(3000);
    const own = scene.books.part.entries().filter(({ id }) => id === hold.id);
    expect(own.map(({ kind, cost }) => [kind, cost])).toEqual([
      ['expired', 60n],
      ['correction', -40n],
    ]);
    await ledger.maintain();
    expect(await spent()).toBe(20n);
  });

  test('that ended is charged at the streamed cost of its last renewal', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    let known = 9n;
    ledger.progress(hold, () => known);
    known = 7n;
    await scene.time.advance(16_000);
    const asleep = scene.time.jump(2 * MINUTE);
    await ledger.hold(requestOf(0n, key));
    await asleep;
    await scene.time.advance(200);
    expect(booked()).toEqual([{ kind: 'expired', cost: 7n }]);
  });

  test('that ended before the release is refunded', async () => {
    const hold = heldOf(await ledger.hold(requestOf(60n, key)));
    const asleep = scene.time.jump(2 * MINUTE);
    await ledger.hold(requestOf(0n, key));
    await asleep;
    await ledger.release(hold);
    await scene.time.advance(200);
    expect(booked()).toEqual([
      { kind: 'expired', cost: 60n },
      { kind: 'correction', cost: -60n },
    ]);
    expect(await spent()).toBe(0n);
    expect(recordsOf(hold)).toEqual([]);
  });
});

test('progress is in the outbox within a second, at most once per second and only when it changed', async () => {
  const hold = heldOf(await ledger.hold(requestOf(60n, key)));
  let known = 1n;
  ledger.progress(hold, () => known);
  for (; known < 20n; known += 1n) {
    await scene.time.advance(100);
  }
  await scene.time.advance(5000);
  expect(scene.folder.records.filter(({ type }) => type === 'progress')).toEqual([
    { type: 'progress', id: hold.id, known: 10n },
    { type: 'progress', id: hold.id, known: 20n },
  ]);
});

describe('a stop', () => {
  test('books every settlement, refuses new holds, and leaves requests in flight to the next start', async () => {
    const [first, second] = [
      heldOf(await ledger.hold(requestOf(10n, key))),
      heldOf(await ledger.hold(requestOf(20n, key))),
    ];
    await ledger.settle(first, settlementOf(5n));
    await ledger.close();
    expect(booked()).toEqual([{ kind: 'settled', cost: 5n }]);
    expect(await ledger.hold(requestOf(1n, key))).toMatchObject({ failure: { reason: 'unavailable' } });
    expect(scene.folder.records).toMatchObject([{ type: 'hold', id: second.id }]);
  });

  test('ends within its grace period when PostgreSQL does not answer', async () => {
    await ledger.settle(heldOf(await ledger.hold(requestOf(10n, key))), settlementOf(5n));
    scene.books.behaviour = 'hangs';
    let stopped = false;
    void ledger.close().then(() => {
      stopped = true;
    });
    await scene.time.advance(5100);
    expect(stopped).toBe(true);
    expect(scene.folder.records).toHaveLength(2);
  });
});
