import { beforeEach, describe, expect, test } from 'vitest';
import type { AccountReply } from '../../ports/counter-store.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, IMMORTAL, INJECTED, slow } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 1000n);
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start(IMMORTAL, scenario.folder);
});

const costs = (): bigint[] => scenario.ledgerRows.all().map(({ cost }) => cost);
const problems = (): string[] =>
  scenario.log.lines
    .filter(({ level }) => level !== 'info')
    .map(({ message, fields }) => `${message} ${fields.why ?? fields.error}`);
const throwing = (): never => {
  throw new Error(INJECTED);
};
/** Calls within the next seconds. */
async function callsIn(seconds: number): Promise<number> {
  const before = scenario.calls.length;
  await scenario.time.advance(1000 * seconds);
  return scenario.calls.length - before;
}

describe('a ledger that is closed', () => {
  test.each(['refuses', 'hangs', 'loses'] as const)(
    'does nothing any more, whatever was under way, while PostgreSQL %s',
    async (behaviour) => {
      const reservation = await scenario.take(ledger, 10n, key);
      scenario.setPostgres(behaviour);
      await scenario.ended(ledger.settle(reservation, settlementOf(5n)));
      await scenario.time.advance(500);
      await scenario.ended(ledger.close());
      // Steps in progress end within their timeouts.
      await scenario.time.advance(10_000);
      const counted = new Map(scenario.counted);
      await scenario.time.advance(60_000);
      // A hanging part ends its own steps: it checks every 10 ms whether it is up again.
      scenario.setPostgres('up');
      await scenario.time.advance(1000);
      expect(scenario.time.armed()).toBe(0);
      expect(scenario.counted).toEqual(counted);
      expect(scenario.gauges.get('gateway_operator_ledger_unbooked')).toBe(0);
    },
  );

  test('while it waits for another process to join an epoch asks nobody any more', async () => {
    const other = createProcess();
    await scenario.start(other);
    const steps: string[] = [];
    const record = (method: string): undefined => void steps.push(method);
    const joining = await scenario.start({ ...IMMORTAL, failureOf: record });
    other.is.frozen = true;
    scenario.wipe();
    void joining.reserve(requestOf(1n, key));
    await scenario.time.advance(300);
    expect(steps.at(-1)).toBe('heartbeat');
    expect((await scenario.ended(joining.close())).millis).toBeLessThan(100);
    const { length } = steps;
    expect(steps.at(-1)).toBe('leave');
    await scenario.time.advance(5000);
    expect(steps.slice(length)).toEqual([]);
  });

  test('while a heartbeat is under way leaves after it', async () => {
    const done: string[] = [];
    const { part } = scenario.epochs;
    const recorded = {
      ...part,
      heartbeat: (...args: Parameters<typeof part.heartbeat>) =>
        part.heartbeat(...args).finally(() => done.push('heartbeat')),
      leave: (...args: Parameters<typeof part.leave>) => part.leave(...args).finally(() => done.push('leave')),
    };
    scenario.epochs.part = slow(recorded, scenario.time, (method) => (method === 'heartbeat' ? 400 : 0));
    scenario.wipe();
    void ledger.reserve(requestOf(1n, key));
    await scenario.time.advance(100);
    await scenario.ended(ledger.close());
    await scenario.time.advance(1000);
    expect(done.at(-1)).toBe('leave');
  });
});

describe('one request whose callback throws', () => {
  test('ends neither the renewal of the lease nor the progress of other streams, and is charged at its size if the process dies', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    const [bad, good] = [await scenario.take(mortal, 100n, key), await scenario.take(mortal, 100n, key)];
    mortal.trackStream(bad, throwing);
    mortal.trackStream(good, () => 7n);
    expect(await callsIn(30)).toBeGreaterThanOrEqual(25);
    expect(problems().filter((line) => line.includes(INJECTED))).toHaveLength(1);
    await scenario.take(mortal, 1n, key);
    process.is.dead = true;
    await scenario.time.advance(60_000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(100n + 7n + 1n);
  });

  test('is charged at its size also if it threw after it had told what it cost', async () => {
    const reservation = await scenario.take(ledger, 100n, key);
    let known = () => 7n;
    ledger.trackStream(reservation, () => known());
    await scenario.time.advance(2000);
    known = throwing;
    await scenario.time.advance(2000);
    const next = await scenario.start(IMMORTAL, { records: [...scenario.folder.records] });
    await scenario.time.advance(2000);
    await scenario.ended(next.flush());
    expect(costs()).toContain(100n);
  });

  test('stops no charge of other requests when the process ends', async () => {
    const [bad, good] = [await scenario.take(ledger, 100n, key), await scenario.take(ledger, 20n, key)];
    ledger.trackStream(bad, throwing);
    ledger.trackStream(good, () => 7n);
    await scenario.ended(ledger.chargeLive());
    await scenario.ended(ledger.close());
    expect(costs().toSorted()).toEqual([100n, 7n]);
  });

  test('stops nobody from learning that the lease is lost, nor the next account', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    const [bad, good] = [await scenario.take(mortal, 100n, key), await scenario.take(mortal, 100n, key)];
    let isTold = false;
    mortal.trackStream(bad, () => 1n, throwing);
    mortal.trackStream(
      good,
      () => 1n,
      () => {
        isTold = true;
      },
    );
    process.is.frozen = true;
    await scenario.time.advance(60_000);
    process.is.frozen = false;
    await scenario.time.advance(3000);
    expect(isTold).toBe(true);
    await scenario.take(mortal, 1n, key);
  });
});

test('periodic work that fails half way is done again: the lease is renewed', async () => {
  const failing = await scenario.start({
    ...IMMORTAL,
    failureOf: (method) => (method === 'set' ? 'throws' : undefined),
  });
  await scenario.take(failing, 10n, key);
  expect(await callsIn(30)).toBeGreaterThanOrEqual(25);
  expect(problems()).toContainEqual(expect.stringContaining(INJECTED));
});

describe('a disk that refuses the first record of an account', () => {
  test('at the start: the process continues without a disk', async () => {
    const fresh = await scenario.start({
      ...IMMORTAL,
      failureOf: (method) => (method === 'append' ? 'rejects' : undefined),
    });
    const reservation = await scenario.take(fresh, 10n, key);
    await scenario.ended(fresh.settle(reservation, settlementOf(5n)));
    expect(costs()).toEqual([5n]);
  });

  test('at a rebuild: the process continues without a disk', async () => {
    scenario.journal.behaviour = 'refuses';
    scenario.wipe();
    await scenario.time.advance(4000);
    const reservation = await scenario.take(ledger, 10n, key);
    await scenario.ended(ledger.settle(reservation, settlementOf(5n)));
    expect(costs()).toEqual([5n]);
  });
});

describe('an error while an answer of the store is applied', () => {
  /** The store answers this once. */
  function answerOnce(change: (reply: Extract<AccountReply, { outcome: 'done' }>) => AccountReply): void {
    const { part } = scenario.store;
    scenario.store.part = {
      ...part,
      async call(call) {
        const reply = await part.call(call);
        if (reply.outcome !== 'done' || call.requests.length === 0) return reply;
        scenario.store.part = part;
        return change(reply);
      },
    };
  }

  test('refuses the request that it belongs to, immediately, with the reason', async () => {
    answerOnce((reply) => ({
      ...reply,
      replies: reply.replies.map(() => ({ outcome: 'exceeded', counter: 9, spent: 0n })),
    }));
    const bad = scenario.tryReservation(ledger, requestOf(10n, key));
    const { value, millis } = await bad;
    expect(value).toMatchObject({
      failure: { reason: 'unavailable', why: expect.stringContaining('a counter that it does not name') },
    });
    expect(millis).toBeLessThan(100);
    expect(problems()).toContainEqual(expect.stringContaining('a counter that it does not name'));
    await scenario.take(ledger, 10n, key);
  });

  test('of the whole call is reported, and the account is left for another one', async () => {
    const before = await scenario.take(ledger, 10n, key);
    answerOnce((reply) => ({ ...reply, counters: Object.defineProperty([...reply.counters], 0, { get: throwing }) }));
    const { outcome } = await scenario.tryReservation(ledger, requestOf(900n, key));
    expect(outcome).toBe('reserved');
    expect(problems()).toHaveLength(1);
    expect([...scenario.counted.keys()]).toContain('gateway_operator_ledger_failures_total');
    await scenario.ended(ledger.settle(before, settlementOf(10n)));
    await scenario.ended(ledger.flush());
    // What the lost account had at risk was charged, and is taken back.
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(10n);
    expect(await scenario.spent(ledger, key)).toBe(10n);
  });
});
