import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMemoryStore } from '#adapters/memory/store.ts';
import type { Nano } from '../ports/money.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import type { StartableLedger } from './ledger.ts';
import {
  createScene,
  heldOf,
  IMMORTAL,
  type Process,
  requestOf,
  type Scene,
  scopeOf,
  settlementOf,
} from './scene.promises.ts';

const [key, team, open] = [scopeOf('key', 10_000n), scopeOf('team', 10_000n, { kind: 'team' }), scopeOf('open')];

/** A process that dies at its `steps`th outside step; `during`: the step is done, but the process never learns of it. */
function mortal(steps: number, during: boolean): Process {
  let taken = 0;
  let dead = false;
  return {
    isDead: () => dead,
    before() {
      if (!dead && taken === steps && !during) dead = true;
      if (!dead) taken += 1;
      return !dead;
    },
    after() {
      if (!dead && taken > steps && during) dead = true;
      return !dead;
    },
  };
}

/** A client's view of a request, by its hold's id. */
interface Seen {
  readonly id: string;
  readonly held: Nano;
  /** The charges that are allowed, whatever dies when. */
  may: ReadonlySet<Nano>;
}

/** A gateway's workload: requests that complete, fail, keep streaming, and one whose machine slept. */
async function live(scene: Scene, process: Process, seen: Seen[]): Promise<void> {
  const ledger = scene.process(process);
  const pause = (millis: number): Promise<void> =>
    new Promise((resolve) => scene.time.timer(millis, () => process.isDead() || resolve()));

  const request = async (amount: Nano): Promise<{ hold: Parameters<StartableLedger['settle']>[0]; seen: Seen }> => {
    const hold = heldOf(await ledger.hold(requestOf(amount, key, team, open)));
    const one: Seen = { id: hold.id, held: hold.amount, may: new Set([hold.amount]) };
    seen.push(one);
    return { hold, seen: one };
  };
  const settle = async ({ hold, seen: one }: Awaited<ReturnType<typeof request>>, cost: Nano): Promise<void> => {
    one.may = new Set([...one.may, cost]);
    await ledger.settle(hold, settlementOf(cost));
    one.may = new Set([cost]);
  };

  await ledger.start();
  const [completes, fails, streams] = [await request(100n), await request(200n), await request(300n)];
  await settle(completes, 11n);
  ledger.progress(streams.hold, () => 31n);
  streams.seen.may = new Set([300n, 31n]);
  await pause(1500);
  streams.seen.may = new Set([31n]);
  fails.seen.may = new Set([200n, 0n]);
  await ledger.release(fails.hold);
  fails.seen.may = new Set([0n]);
  const sleeps = await request(400n);
  void scene.time.jump(120_000);
  // This call ends their leases; later settlements and releases become corrections.
  streams.seen.may = new Set([300n, 31n]);
  await request(0n);
  await pause(300);
  await settle(sleeps, 41n);
  await settle(await request(500n), 51n);
  streams.seen.may = new Set([300n, 31n, 0n]);
  await ledger.release(streams.hold);
  streams.seen.may = new Set([0n]);
  await request(600n);
  await pause(300);
}

/** Runs until the process dies, dies again during recovery, then recovers. Returns whether the first death happened. */
async function dieAndRecover(step: number, during: boolean, again: number, storeDies: boolean): Promise<boolean> {
  const scene = createScene();
  const seen: Seen[] = [];
  const first = mortal(step, during);
  void live(scene, first, seen);
  // One process before the machine sleeps, one after.
  await scene.time.advance(5000);
  await scene.time.advance(5000);
  // A process that survived the workload is killed now.
  const lived = !first.isDead();
  if (storeDies) scene.store.part = createMemoryStore(scene.time);
  if (again >= 0) {
    const second = mortal(again, during);
    void scene.process(second).start();
    await scene.time.advance(3000);
    if (storeDies) scene.store.part = createMemoryStore(scene.time);
  }
  const last = scene.process(IMMORTAL);
  const started = last.start();
  await scene.time.advance(3000);
  await started;
  // Holds that only the store knows end with their leases.
  await scene.time.jump(61_000);
  const spent = last.spend([key]);
  await scene.time.advance(300);
  await last.hold(requestOf(0n, open));
  await scene.time.advance(300);

  const entries = scene.books.part.entries();
  const names = entries.map(({ id, kind }) => `${kind} ${id}`);
  expect(new Set(names).size).toBe(names.length);
  for (const { id, may } of seen) {
    const charged = entries.filter((entry) => entry.id === id).reduce((sum, { cost }) => sum + cost, 0n);
    expect([...may], `${id} was charged ${charged}`).toContain(charged);
  }
  const total = entries.reduce((sum, { cost }) => sum + cost, 0n);
  expect(await spent).toMatchObject({ ok: true });
  expect(await last.spend([key])).toMatchObject({ value: [{ spent: total }] });
  await last.close();
  return !lived;
}

describe.each([
  ['the store dies with the process', true],
  ['the store lives on', false],
])('when a process dies at any step and %s', (_, storeDies) => {
  test.each([
    ['just before the step', false],
    ['during the step, before it learns of it', true],
  ])(
    'every completed reply is charged exactly once, and every other request at most its hold (%s)',
    async (_name, during) => {
      let step = 0;
      while (await dieAndRecover(step, during, -1, storeDies)) step += 1;
      expect(step).toBeGreaterThan(30);
    },
  );

  test('the same is true when the process dies again during recovery', async () => {
    const property = fc.asyncProperty(fc.nat(60), fc.nat(12), fc.boolean(), async (step, again, during) => {
      await dieAndRecover(step, during, again, storeDies);
    });
    await fc.assert(property, { numRuns: 150 });
  });
});

describe('a start', () => {
  const hold = (id: string, amount: Nano): OutboxRecord => {
    const charges = [{ scopeId: 'key', window: { start: Date.UTC(2026, 0, 1), end: Date.UTC(2026, 0, 31) } }];
    return { type: 'hold', id, amount, charges, model: 'small', identifier: 'small-1' };
  };

  test('fails while PostgreSQL is away, admits nothing, and may be repeated', async () => {
    const scene = createScene();
    scene.folder.records.push(hold('00000000-0000-7000-8000-000000000001', 10n));
    scene.books.behaviour = 'refuses';
    const ledger = scene.process();
    await expect(ledger.start()).rejects.toThrow();
    expect((await ledger.hold(requestOf(1n, key))).ok).toBe(false);
    scene.books.behaviour = 'up';
    const started = ledger.start();
    await scene.time.advance(100);
    await started;
    expect(scene.books.part.entries()).toMatchObject([{ kind: 'expired', cost: 10n, estimated: true }]);
    expect((await ledger.hold(requestOf(1n, key))).ok).toBe(true);
  });

  test('delays the requests that wake the process, and reads of spend', async () => {
    const scene = createScene();
    scene.folder.records.push(hold('00000000-0000-7000-8000-000000000001', 10n));
    scene.books.behaviour = 'hangs';
    const ledger = scene.process();
    const started = ledger.start();
    const held = ledger.hold(requestOf(1n, key));
    const spent = ledger.spend([key]);
    await scene.time.advance(500);
    scene.books.behaviour = 'up';
    await scene.time.advance(200);
    await started;
    expect([(await held).ok, await spent]).toMatchObject([true, { value: [{ spent: 10n }] }]);
  });

  test('delays a request no longer than its deadline: 503 within a second of its arrival', async () => {
    const scene = createScene();
    scene.folder.records.push(hold('00000000-0000-7000-8000-000000000001', 10n));
    scene.books.behaviour = 'hangs';
    const ledger = scene.process();
    void ledger.start().catch(() => undefined);
    const refusals = [ledger.hold(requestOf(1n, key)), ledger.hold({ ...requestOf(1n, key), waited: 300 })];
    const over: number[] = [];
    refusals.forEach((one, index) => void one.then(() => over.push(index)));
    await scene.time.advance(599);
    expect(over).toEqual([]);
    await scene.time.advance(1);
    expect(over).toEqual([1]);
    await scene.time.advance(300);
    expect(await Promise.all(refusals)).toMatchObject([
      { failure: { reason: 'unavailable', why: expect.stringContaining('the ledger starts') } },
      { failure: { reason: 'unavailable' } },
    ]);
  });

  test('gives up after 10 s when PostgreSQL does not answer', async () => {
    const scene = createScene();
    scene.folder.records.push(hold('00000000-0000-7000-8000-000000000001', 10n));
    scene.books.behaviour = 'hangs';
    const failed = expect(scene.process().start()).rejects.toThrow('did not answer in');
    await scene.time.advance(10_000);
    await failed;
  });

  test('recovers thousands of holds, in chunks', async () => {
    const scene = createScene();
    const ids = Array.from(
      { length: 1800 },
      (_, index) => `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`,
    );
    scene.folder.records.push(...ids.map((id) => hold(id, 2n)));
    const ledger = scene.process();
    const started = ledger.start();
    await scene.time.advance(1000);
    await started;
    expect(scene.books.part.entries()).toHaveLength(1800);
    expect(scene.folder.records).toEqual([]);
    expect(await ledger.spend([scopeOf('key', 10_000n)])).toMatchObject({ value: [{ spent: 3600n }] });
  });

  test('neither misses nor doubles a late commit of its predecessor', async () => {
    const scene = createScene();
    const id = '00000000-0000-7000-8000-000000000001';
    const left = hold(id, 10n);
    scene.folder.records.push(left);
    const { withLedgerLock } = scene.books.part;
    Object.assign(scene.books.part, {
      // Every caller of the lock waits for that commit.
      async withLedgerLock(...of: Parameters<typeof withLedgerLock>) {
        if (left.type === 'hold') {
          const tokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 };
          const { charges, model, identifier } = left;
          const entry = { id, kind: 'settled' as const, charges, model, identifier, cost: 7n, tokens };
          await scene.books.part.book('instance-1', [{ ...entry, estimated: false, settledAt: 0 }]);
        }
        return withLedgerLock(...of);
      },
    });
    const ledger = scene.process();
    const started = ledger.start();
    await scene.time.advance(100);
    await started;
    expect(scene.books.part.entries()).toMatchObject([{ kind: 'settled', cost: 7n }]);
    expect(await ledger.spend([key])).toMatchObject({ value: [{ spent: 7n }] });
  });
});

test('a hold whose release reached the store and not the full disk costs nothing after a restart', async () => {
  const scene = createScene();
  const ledger = scene.process();
  await ledger.start();
  const hold = heldOf(await ledger.hold(requestOf(100n, key)));
  scene.outbox.behaviour = 'refuses';
  await ledger.release(hold);
  await scene.time.advance(50);
  scene.outbox.behaviour = 'up';
  const next = scene.process();
  scene.folder.records = [
    { type: 'hold', id: hold.id, amount: hold.amount, charges: hold.charges, model: 'small', identifier: 'small-1' },
  ];
  const started = next.start();
  await scene.time.advance(500);
  await started;
  expect(scene.books.part.entries()).toEqual([]);
  expect(await scene.store.part.read(hold.charges.slice(0, 1))).toEqual([0n]);
});
