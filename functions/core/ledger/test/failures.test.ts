import { beforeEach, describe, expect, test } from 'vitest';
import type { AccountReply } from '../../ports/counter-store.ts';
import type { StartableLedger } from '../ledger.ts';
import {
  createProcess,
  createScene,
  IMMORTAL,
  INJECTED,
  requestOf,
  type Scene,
  scopeOf,
  settlementOf,
  slow,
} from './scenario.promises.ts';

const key = scopeOf('key', 1000n);
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = await scene.start(IMMORTAL, scene.folder);
});

const costs = (): bigint[] => scene.entries.entries().map(({ cost }) => cost);
const problems = (): string[] =>
  scene.log.lines
    .filter(({ level }) => level !== 'info')
    .map(({ message, fields }) => `${message} ${fields.why ?? fields.error}`);
const throwing = (): never => {
  throw new Error(INJECTED);
};
/** Calls within the next seconds. */
async function callsIn(seconds: number): Promise<number> {
  const before = scene.calls.length;
  await scene.time.advance(1000 * seconds);
  return scene.calls.length - before;
}

describe('a ledger that is closed', () => {
  test.each(['refuses', 'hangs', 'loses'] as const)(
    'does nothing any more, whatever was under way, while PostgreSQL %s',
    async (behaviour) => {
      const hold = await scene.take(ledger, 10n, key);
      scene.database(behaviour);
      await scene.ended(ledger.settle(hold, settlementOf(5n)));
      await scene.time.advance(500);
      await scene.ended(ledger.close());
      // What was under way ends within its timeout.
      await scene.time.advance(10_000);
      const counted = new Map(scene.counted);
      await scene.time.advance(60_000);
      // What hangs in the part itself is the double's, which asks every 10 ms whether it is up again.
      scene.database('up');
      await scene.time.advance(1000);
      expect(scene.time.armed()).toBe(0);
      expect(scene.counted).toEqual(counted);
      expect(scene.gauges.get('gateway_operator_ledger_unbooked')).toBe(0);
    },
  );

  test('while it waits for another process to join an epoch asks nobody any more', async () => {
    const other = createProcess();
    await scene.start(other);
    const steps: string[] = [];
    const record = (method: string): undefined => void steps.push(method);
    const joining = await scene.start({ ...IMMORTAL, failureOf: record });
    other.is.frozen = true;
    scene.wipe();
    void joining.reserve(requestOf(1n, key));
    await scene.time.advance(300);
    expect(steps.at(-1)).toBe('beat');
    expect((await scene.ended(joining.close())).millis).toBeLessThan(100);
    const { length } = steps;
    expect(steps.at(-1)).toBe('leave');
    await scene.time.advance(5000);
    expect(steps.slice(length)).toEqual([]);
  });

  test('while a heartbeat is under way leaves after it', async () => {
    const done: string[] = [];
    const { part } = scene.epochs;
    const recorded = {
      ...part,
      beat: (...args: Parameters<typeof part.beat>) => part.beat(...args).finally(() => done.push('beat')),
      leave: (...args: Parameters<typeof part.leave>) => part.leave(...args).finally(() => done.push('leave')),
    };
    scene.epochs.part = slow(recorded, scene.time, (method) => (method === 'beat' ? 400 : 0));
    scene.wipe();
    void ledger.reserve(requestOf(1n, key));
    await scene.time.advance(100);
    await scene.ended(ledger.close());
    await scene.time.advance(1000);
    expect(done.at(-1)).toBe('leave');
  });
});

describe('one request whose callback throws', () => {
  test('ends neither the renewal of the lease nor the progress of other streams, and is charged at its size if the process dies', async () => {
    const process = createProcess();
    const mortal = await scene.start(process);
    const [bad, good] = [await scene.take(mortal, 100n, key), await scene.take(mortal, 100n, key)];
    mortal.trackStream(bad, throwing);
    mortal.trackStream(good, () => 7n);
    expect(await callsIn(30)).toBeGreaterThanOrEqual(25);
    expect(problems().filter((line) => line.includes(INJECTED))).toHaveLength(1);
    await scene.take(mortal, 1n, key);
    process.is.dead = true;
    await scene.time.advance(60_000);
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(100n + 7n + 1n);
  });

  test('is charged at its size also if it threw after it had told what it cost', async () => {
    const hold = await scene.take(ledger, 100n, key);
    let known = () => 7n;
    ledger.trackStream(hold, () => known());
    await scene.time.advance(2000);
    known = throwing;
    await scene.time.advance(2000);
    const next = await scene.start(IMMORTAL, { records: [...scene.folder.records] });
    await scene.time.advance(2000);
    await scene.ended(next.flush());
    expect(costs()).toContain(100n);
  });

  test('stops no charge of other requests when the process ends', async () => {
    const [bad, good] = [await scene.take(ledger, 100n, key), await scene.take(ledger, 20n, key)];
    ledger.trackStream(bad, throwing);
    ledger.trackStream(good, () => 7n);
    await scene.ended(ledger.chargeLive());
    await scene.ended(ledger.close());
    expect(costs().toSorted()).toEqual([100n, 7n]);
  });

  test('stops nobody from learning that the lease is lost, nor the next account', async () => {
    const process = createProcess();
    const mortal = await scene.start(process);
    const [bad, good] = [await scene.take(mortal, 100n, key), await scene.take(mortal, 100n, key)];
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
    await scene.time.advance(60_000);
    process.is.frozen = false;
    await scene.time.advance(3000);
    expect(isTold).toBe(true);
    await scene.take(mortal, 1n, key);
  });
});

test('a beat that fails half way is followed by the next one: the lease is renewed', async () => {
  const failing = await scene.start({ ...IMMORTAL, failureOf: (method) => (method === 'set' ? 'throws' : undefined) });
  await scene.take(failing, 10n, key);
  expect(await callsIn(30)).toBeGreaterThanOrEqual(25);
  expect(problems()).toContainEqual(expect.stringContaining(INJECTED));
});

describe('a disk that refuses the first record of an account', () => {
  test('at the start: the process goes on without a disk', async () => {
    const fresh = await scene.start({
      ...IMMORTAL,
      failureOf: (method) => (method === 'append' ? 'rejects' : undefined),
    });
    const hold = await scene.take(fresh, 10n, key);
    await scene.ended(fresh.settle(hold, settlementOf(5n)));
    expect(costs()).toEqual([5n]);
  });

  test('at a rebuild: the process goes on without a disk', async () => {
    scene.journal.behaviour = 'refuses';
    scene.wipe();
    await scene.time.advance(4000);
    const hold = await scene.take(ledger, 10n, key);
    await scene.ended(ledger.settle(hold, settlementOf(5n)));
    expect(costs()).toEqual([5n]);
  });
});

describe('an error while an answer of the store is applied', () => {
  /** The store answers this once. */
  function answerOnce(change: (reply: Extract<AccountReply, { outcome: 'done' }>) => AccountReply): void {
    const { part } = scene.store;
    scene.store.part = {
      ...part,
      async call(call) {
        const reply = await part.call(call);
        if (reply.outcome !== 'done' || call.requests.length === 0) return reply;
        scene.store.part = part;
        return change(reply);
      },
    };
  }

  test('refuses the request that it belongs to, immediately, with the reason', async () => {
    answerOnce((reply) => ({
      ...reply,
      replies: reply.replies.map(() => ({ outcome: 'exceeded', counter: 9, spent: 0n })),
    }));
    const bad = scene.tryHold(ledger, requestOf(10n, key));
    const { value, millis } = await bad;
    expect(value).toMatchObject({
      failure: { reason: 'unavailable', why: expect.stringContaining('a counter that was not asked for') },
    });
    expect(millis).toBeLessThan(100);
    expect(problems()).toContainEqual(expect.stringContaining('a counter that was not asked for'));
    await scene.take(ledger, 10n, key);
  });

  test('of the whole call is told, and the account is left for another one', async () => {
    const before = await scene.take(ledger, 10n, key);
    answerOnce((reply) => ({ ...reply, counters: Object.defineProperty([...reply.counters], 0, { get: throwing }) }));
    const { outcome } = await scene.tryHold(ledger, requestOf(900n, key));
    expect(outcome).toBe('reserved');
    expect(problems()).toHaveLength(1);
    expect([...scene.counted.keys()]).toContain('gateway_operator_ledger_failures_total');
    await scene.ended(ledger.settle(before, settlementOf(10n)));
    await scene.ended(ledger.flush());
    // What the lost account had at risk was charged, and is taken back.
    expect(costs().reduce((sum, cost) => sum + cost, 0n)).toBe(10n);
    expect(await scene.spent(ledger, key)).toBe(10n);
  });
});
