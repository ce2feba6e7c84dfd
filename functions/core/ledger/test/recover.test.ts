import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { JournalRecord } from '../../ports/journal.ts';
import type { Reservation } from '../../ports/ledger.ts';
import type { Nano } from '../../ports/money.ts';
import { IMMORTAL, type Process } from './processes.fixture.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const [key, team, open] = [scopeOf('key', 10_000n), scopeOf('team', 10_000n, { kind: 'team' }), scopeOf('open')];

/**
 * A process that dies at its `steps`th outside step; `during`: the step is done, but the process never learns of it.
 */
function mortal(steps: number, during: boolean): Process & { kill(): void } {
  let taken = 0;
  let dead = false;
  return {
    isDead: () => dead,
    kill() {
      dead = true;
    },
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

/** A client's view of a request, by its reservation's id. */
interface Outcome {
  readonly id: string;
  readonly reservation: Reservation;
  /**
   * The charges that are allowed, whatever dies when. A reservation whose record was never written is charged nothing:
   * its reply did not complete.
   */
  may: ReadonlySet<Nano>;
}

/** A gateway's workload: requests that complete, fail, and keep streaming. */
async function live(scenario: Scenario, process: Process, seen: Outcome[]): Promise<void> {
  const ledger = scenario.process(process);
  const pause = (millis: number): Promise<void> =>
    new Promise((resolve) => scenario.time.timer(millis, () => process.isDead() || resolve()));
  const request = async (amount: Nano): Promise<Outcome> => {
    const reservation = heldOf(await ledger.reserve(requestOf(amount, key, team, open)));
    const one: Outcome = { id: reservation.id, reservation, may: new Set([reservation.amount, 0n]) };
    seen.push(one);
    return one;
  };
  const settle = async (one: Outcome, cost: Nano): Promise<void> => {
    one.may = new Set([...one.may, cost]);
    await ledger.settle(one.reservation, settlementOf(cost));
    one.may = new Set([cost]);
  };

  await ledger.start();
  const [completes, fails, streams] = [await request(100n), await request(200n), await request(300n)];
  await settle(completes, 11n);
  ledger.trackStream(streams.reservation, () => 31n);
  streams.may = new Set([300n, 31n, 0n]);
  await pause(1500);
  streams.may = new Set([31n]);
  fails.may = new Set([200n, 0n]);
  await ledger.release(fails.reservation);
  fails.may = new Set([0n]);
  await settle(await request(500n), 51n);
  await request(600n);
  await pause(300);
}

/** Runs until the process dies, dies again during recovery, then recovers. Returns whether the first death happened. */
async function dieAndRecover(step: number, during: boolean, again: number, storeDies: boolean): Promise<boolean> {
  const scenario = createScenario();
  const seen: Outcome[] = [];
  const first = mortal(step, during);
  void live(scenario, first, seen);
  await scenario.time.advance(5000);
  // A process that survived the workload is killed now.
  const lived = !first.isDead();
  first.kill();
  if (storeDies) scenario.wipe();
  if (again >= 0) {
    const second = mortal(again, during);
    const restarted = scenario.process(second).start();
    restarted.catch(() => undefined);
    await scenario.time.advance(3000);
    second.kill();
    if (storeDies) scenario.wipe();
  }
  const last = await scenario.start(IMMORTAL, scenario.folder);
  await scenario.time.advance(25_000);
  await last.reserve(requestOf(0n, open));
  await scenario.time.advance(300);

  const entries = scenario.ledgerRows.all();
  const names = entries.map(({ id, kind }) => `${kind} ${id}`);
  expect(new Set(names).size).toBe(names.length);
  for (const { id, may } of seen) {
    const charged = entries.filter((entry) => entry.id === id).reduce((sum, { cost }) => sum + cost, 0n);
    expect([...may], `${id} was charged ${charged}`).toContain(charged);
  }
  const requests = new Set(seen.map(({ id }) => id));
  const known = (kind: string) => entries.filter((entry) => entry.kind === kind);
  const others = known('settled').filter(({ id }) => !requests.has(id));
  expect(others.every(({ cost, estimated }) => estimated && cost <= 600n)).toBe(true);
  // What was charged in the name of an account is taken back.
  const taken = (kind: string) => known(kind).reduce((sum, { cost }) => sum + cost, 0n);
  expect(taken('expired') + taken('correction')).toBe(0n);
  expect(await scenario.spent(last, key)).toBe(entries.reduce((sum, { cost }) => sum + cost, 0n));
  await scenario.ended(last.close());
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
    'every completed reply is charged exactly once, and every other request at most its reservation (%s)',
    async (_name, during) => {
      let step = 0;
      while (await dieAndRecover(step, during, -1, storeDies)) step += 1;
      expect(step).toBeGreaterThan(30);
    },
  );

  test('the same is true when the process dies again during recovery', async () => {
    const property = fc.asyncProperty(fc.nat(60), fc.nat(25), fc.boolean(), async (step, again, during) => {
      await dieAndRecover(step, during, again, storeDies);
    });
    await fc.assert(property, { numRuns: runs(150) });
  });
});

describe('a start', () => {
  const reservation = (id: string, amount: Nano): JournalRecord => {
    const scopeWindows = [{ scopeId: 'key', window: { start: Date.UTC(2026, 0, 1), end: Date.UTC(2026, 0, 31) } }];
    return { type: 'reserve', id, amount, scopeWindows, model: 'small', identifier: 'small-1' };
  };
  const idOf = (index: number): string => `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`;

  test('fails while PostgreSQL is away, admits nothing, and may be repeated', async () => {
    const scenario = createScenario();
    scenario.folder.records.push(reservation(idOf(1), 10n));
    scenario.setPostgres('refuses');
    const ledger = scenario.process();
    await expect(ledger.start()).rejects.toThrow();
    expect((await scenario.tryReservation(ledger, requestOf(1n, key))).outcome).toBe('unavailable');
    scenario.setPostgres('up');
    await scenario.ended(ledger.start());
    await scenario.time.advance(500);
    expect(scenario.ledgerRows.all()).toMatchObject([{ kind: 'settled', cost: 10n, estimated: true }]);
    expect((await scenario.tryReservation(ledger, requestOf(1n, key))).outcome).toBe('reserved');
  });

  test('that failed continues by itself, and leaves its account for no second one', async () => {
    const scenario = createScenario();
    scenario.setPostgres('refuses');
    const ledger = scenario.process();
    await expect(ledger.start()).rejects.toThrow();
    scenario.setPostgres('up');
    await scenario.ended(ledger.start());
    await scenario.time.advance(1000);
    expect(new Set(scenario.calls.map(({ account }) => account)).size).toBe(1);
  });

  test('delays the requests that wake the process, and reads of spend', async () => {
    const scenario = createScenario();
    scenario.folder.records.push(reservation(idOf(1), 10n));
    scenario.setPostgres('hangs');
    const ledger = scenario.process();
    const started = ledger.start();
    const [held, spent] = [ledger.reserve(requestOf(1n, key)), ledger.spend([key])];
    await scenario.time.advance(500);
    scenario.setPostgres('up');
    await scenario.time.advance(200);
    await started;
    expect([(await held).ok, await spent]).toMatchObject([true, { value: [{ spent: 10n }] }]);
  });

  test('delays a request no longer than its deadline: 503 within a second of its arrival', async () => {
    const scenario = createScenario();
    scenario.setPostgres('hangs');
    const ledger = scenario.process();
    void ledger.start().catch(() => undefined);
    const refusals = [ledger.reserve(requestOf(1n, key)), ledger.reserve({ ...requestOf(1n, key), waited: 300 })];
    const over: number[] = [];
    refusals.forEach((one, index) => void one.then(() => over.push(index)));
    await scenario.time.advance(599);
    expect(over).toEqual([]);
    await scenario.time.advance(1);
    expect(over).toEqual([1]);
    await scenario.time.advance(300);
    expect(await Promise.all(refusals)).toMatchObject([
      { failure: { reason: 'unavailable', why: expect.stringContaining('the ledger starts') } },
      { failure: { reason: 'unavailable' } },
    ]);
  });

  test('recovers thousands of reservations', async () => {
    const scenario = createScenario();
    scenario.folder.records.push(...Array.from({ length: 1800 }, (_, index) => reservation(idOf(index), 2n)));
    const ledger = await scenario.start(IMMORTAL, scenario.folder);
    await scenario.time.advance(1000);
    expect(scenario.ledgerRows.all()).toHaveLength(1800);
    expect(scenario.folder.records.filter(({ type }) => type === 'reserve')).toEqual([]);
    expect(await scenario.spent(ledger, key)).toBe(3600n);
  });

  test('finds that PostgreSQL has a ledger row of its predecessor, and charges it no second time', async () => {
    const scenario = createScenario();
    const left = reservation(idOf(1), 10n);
    scenario.folder.records.push(left);
    if (left.type !== 'reserve') throw new Error('not a reservation');
    const { scopeWindows, model, identifier } = left;
    const tokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 };
    const rest = { scopeWindows, model, identifier, tokens, estimated: false, settledAt: 0 };
    scenario.ledgerRows.insert([{ id: idOf(1), kind: 'settled', cost: 7n, ...rest }]);
    const ledger = await scenario.start(IMMORTAL, scenario.folder);
    await scenario.time.advance(1000);
    expect(scenario.ledgerRows.all()).toMatchObject([{ kind: 'settled', cost: 7n }]);
    expect(await scenario.spent(ledger, key)).toBe(7n);
  });

  test('on a disk whose counters have left the store loads them, and raises no epoch', async () => {
    const scenario = createScenario();
    const first = mortal(10_000, false);
    const before = scenario.process(first);
    await scenario.ended(before.start());
    await scenario.take(before, 10n, key);
    await scenario.time.advance(50);
    first.kill();
    const { epoch } = await scenario.epochs.part.state();
    const successor = await scenario.start(IMMORTAL, scenario.folder);
    expect((await scenario.epochs.part.state()).epoch).toBe(epoch);
    await scenario.time.advance(1000);
    expect(await scenario.spent(successor, key)).toBe(10n);
  });
});
