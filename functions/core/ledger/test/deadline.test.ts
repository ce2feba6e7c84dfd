import { beforeEach, describe, expect, test } from 'vitest';
import type { AccountCall } from '../../ports/counter-store.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, IMMORTAL, slow } from './processes.fixture.ts';
import { createScenario, outcome, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const [key, other] = [scopeOf('key', 100n), scopeOf('other', 1000n)];
const unavailable = { outcome: 'unavailable', millis: 900 };
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start();
});

const answerTo = (amount: bigint, meanwhile?: Readonly<Record<number, () => unknown>>) =>
  scenario.tryReservation(ledger, requestOf(amount, key), meanwhile);
const pace = (millis: () => number): void => {
  scenario.store.part = slow(scenario.store.part, scenario.time, millis);
};

describe('a request is refused within a second of its arrival when a part does not answer:', () => {
  test('the store, the database', async () => {
    scenario.database.behaviour = 'hangs';
    expect(await answerTo(1n)).toMatchObject(unavailable);
    scenario.database.behaviour = 'up';
    await scenario.time.advance(3000);
    expect(await answerTo(1n)).toMatchObject({ outcome: 'reserved' });
    scenario.store.behaviour = 'hangs';
    await scenario.time.advance(1000);
    expect(await answerTo(1n)).toMatchObject(unavailable);
    expect(await scenario.ended(ledger.spend([key]))).toMatchObject({ value: { ok: false }, millis: 900 });
  });

  test('the time that authentication took counts too', async () => {
    scenario.store.behaviour = 'hangs';
    const request = { ...requestOf(1n, key), waited: 300 };
    expect(await scenario.tryReservation(ledger, request)).toMatchObject({ outcome: 'unavailable', millis: 600 });
    expect(await scenario.ended(ledger.spend([key], 300))).toMatchObject({ value: { ok: false }, millis: 600 });
  });

  test('a part that is asked after others have answered has half a second all the same', async () => {
    scenario.store.behaviour = 'hangs';
    const request = { ...requestOf(1n, key), waited: 800 };
    expect(await scenario.tryReservation(ledger, request)).toMatchObject({ outcome: 'unavailable', millis: 500 });
  });

  test('each on its own, also where a later one is refused first', async () => {
    scenario.store.behaviour = 'hangs';
    const began = scenario.time.clock.now();
    const after: number[] = [];
    const watch = (waited: number) =>
      ledger.reserve({ ...requestOf(1n, key), waited }).then(() => after.push(scenario.time.clock.now() - began));
    void watch(0);
    await scenario.time.advance(100);
    void watch(400);
    await scenario.time.advance(1500);
    expect(after).toEqual([600, 900]);
  });
});

describe('a read of spend', () => {
  /** The scopes of a VirtualKey in this namespace. */
  const scopesIn = (namespace: string) => [{ ...key, object: { namespace, name: 'key' } }];

  test('whose part does not answer leaves its place at its deadline', async () => {
    const { part } = scenario.store;
    scenario.store.part = { ...part, read: () => new Promise(() => undefined) };
    const reads = Promise.all(['a', 'b', 'c', 'd'].map((namespace) => ledger.spend(scopesIn(namespace))));
    const { value, millis } = await scenario.ended(reads);
    expect([value.map(({ ok }) => ok), millis]).toEqual([[false, false, false, false], 900]);
    scenario.store.part = part;
    expect(await scenario.ended(ledger.spend(scopesIn('e')))).toMatchObject({ value: { ok: true }, millis: 0 });
  });

  test('begins no step after its deadline', async () => {
    const steps: string[] = [];
    const next = scenario.process({ ...IMMORTAL, failureOf: (method) => void steps.push(method) }, { records: [] });
    expect(await scenario.ended(next.spend([key]))).toMatchObject({ value: { ok: false }, millis: 900 });
    await scenario.ended(next.start());
    await scenario.time.advance(100);
    expect(steps).not.toContain('read');
  });

  test('is refused immediately if too many of its namespace wait', async () => {
    scenario.store.behaviour = 'hangs';
    let refused = 0;
    const reads = Array.from({ length: 1000 }, () => ledger.spend(scopesIn('a')).then(() => (refused += 1)));
    await scenario.time.settle();
    expect(refused).toBeGreaterThan(800);
    await scenario.ended(Promise.all(reads));
  });
});

describe('a distant store, 200 ms a call, is not unresponsive', () => {
  test('a reservation of a loaded budget is answered, and a refusal by reservations says so', async () => {
    await scenario.take(ledger, 1n, key);
    pace(() => 200);
    expect(await answerTo(50n)).toMatchObject({ outcome: 'reserved' });
    expect(await answerTo(60n)).toMatchObject({ outcome: 'held', millis: 900 });
  });

  test('a request takes what live reservations leave, also near its deadline', async () => {
    const first = await scenario.take(ledger, 100n, key);
    pace(() => 100);
    const answered = await answerTo(60n, { 550: () => ledger.settle(first, settlementOf(40n)) });
    expect(answered.outcome).toBe('reserved');
  });
});

describe('requests that wait for live reservations share one verdict:', () => {
  beforeEach(() => scenario.take(ledger, 100n, key).then(() => scenario.time.advance(100)));

  test.each([0, 100, 300])('the store is unresponsive, when it hangs %i ms after their arrival', async (at) => {
    const { outcome: came, millis } = await answerTo(1n, {
      [at]: () => {
        scenario.store.behaviour = 'hangs';
      },
    });
    expect(came).toBe('unavailable');
    expect(millis).toBe(900);
  });

  test.each([600, 700, 800])('live reservations, when it hangs after %i ms, near the end of the wait', async (at) => {
    const { outcome: came, millis } = await answerTo(1n, {
      [at]: () => {
        scenario.store.behaviour = 'hangs';
      },
    });
    expect(came).toBe('held');
    expect(millis).toBe(900);
    // The last question takes nothing, whenever the store runs it.
    scenario.store.behaviour = 'up';
    await scenario.time.advance(1500);
    expect(await scenario.spent(ledger, key)).toBe(0n);
  });

  test('a thousand of them', async () => {
    const all = Array.from({ length: 1000 }, () => ledger.reserve(requestOf(1n, key)));
    await scenario.time.advance(300);
    scenario.store.behaviour = 'hangs';
    const { value } = await scenario.ended(Promise.all(all));
    expect(new Set(value.map(outcome))).toEqual(new Set(['unavailable']));
  });
});

describe('a process that was paused', () => {
  test('reads the answers that arrived meanwhile before its deadlines count', async () => {
    const process = createProcess();
    const paused = await scenario.start(process);
    await scenario.take(paused, 1n, key);
    pace(() => 20);
    const held = await scenario.tryReservation(paused, requestOf(80n, key), {
      10: () => {
        process.is.frozen = true;
      },
      1400: () => {
        process.is.frozen = false;
      },
    });
    expect(held).toMatchObject({ outcome: 'reserved' });
  });
});

describe('a call that a store runs late', () => {
  test('takes nothing, also when its process is gone', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    await scenario.take(mortal, 0n, key);
    await scenario.take(ledger, 1n, other);
    const { part } = scenario.store;
    const late: (() => unknown)[] = [];
    scenario.store.part = {
      ...part,
      call: (call: AccountCall) =>
        call.requests.length > 0 ? new Promise(() => void late.push(() => part.call(call))) : part.call(call),
    };
    expect(await scenario.tryReservation(mortal, requestOf(99n, key))).toMatchObject(unavailable);
    process.is.dead = true;
    scenario.store.part = part;
    await scenario.time.advance(1000);
    for (const run of late) await run();
    expect(await answerTo(100n)).toMatchObject({ outcome: 'reserved' });
  });
});
