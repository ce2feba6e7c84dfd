// Processes that share a Redis and compete for the last cent.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import { spendWindow } from '#core/money/window.ts';
import type { CounterChange } from '#core/ports/counter-store.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import type { Rush } from './last-cent.ts';

const missing = whyNoRedis();
const CENT = 10_000_000n;

const scopeOf = (scopeId: string, limit: bigint): ScopePolicy => ({
  scopeId,
  kind: 'key',
  name: scopeId,
  blocked: false,
  models: [],
  anchor: Date.now() - 3_600_000,
  budget: { limit: `${limit}`, duration: '30d', alignment: 'Rolling' },
});

const toChange = (scope: ScopePolicy): CounterChange => ({
  scopeId: scope.scopeId,
  window: spendWindow(scope, Date.now()),
  limit: BigInt(scope.budget?.limit ?? 0),
  spend: 0n,
  risk: 0n,
  returned: 0n,
  carriedOver: 0n,
  ahead: 0n,
});

interface Rusher {
  readonly child: ChildProcess;
  next(): Promise<string>;
}

/** A process that is ready to start. */
async function startRusher(order: Rush): Promise<Rusher> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'last-cent.ts'), JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => (await lines.next()).value ?? 'ended';
  expect(await next()).toBe('ready');
  return { child, next };
}

/** Runs processes concurrently; returns how many requests were reserved, and why the others were not. */
async function rush(order: Rush, processes: number): Promise<Record<string, number>> {
  const rushers = await Promise.all(Array.from({ length: processes }, () => startRusher(order)));
  for (const { child } of rushers) child.stdin?.write('now\n');
  const sum: Record<string, number> = {};
  for (const { child, next } of rushers) {
    const outcomes = JSON.parse(await next()) as Record<string, number>;
    if (child.exitCode === null) await once(child, 'exit');
    for (const [outcome, count] of Object.entries(outcomes)) sum[outcome] = (sum[outcome] ?? 0) + count;
  }
  return sum;
}

/** The present minute of the clock, or the next one: a limit counts by them, so a rush across two gets one more. */
async function minuteWithRoom(): Promise<void> {
  const left = MINUTE - (Date.now() % MINUTE);
  if (left < 15_000) await pause(left);
}

const MINUTE = 60_000;

describeUnless(missing, 'processes on one Redis', () => {
  let server: TestRedis;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  test.each([50, 500])(
    '%i requests each against ten a minute, for the key and its team together: exactly ten are reserved',
    async (requests) => {
      const limits = { rpmLimit: 10 };
      const scopes = [
        { ...scopeOf('key', CENT), limits },
        { ...scopeOf('team', CENT), limits: { rpmLimit: 1000, maxParallelRequests: 1000 } },
      ];
      const instanceUid = randomUUID();
      const order: Rush = { connection: server.connection, instanceUid, scopes, requests, amount: '1' };
      await minuteWithRoom();
      const counts = await rush(order, 2);
      expect(counts).toEqual({ reserved: 10, limited: 2 * requests - 10 });
    },
  );

  test.each([
    // The key has a cent left, the team a dollar: each reservation is a thousandth of the cent, so 1,000 of 2,000 fit
    // exactly.
    [2, 1000, CENT / 1000n, 1000],
    [1, 1000, CENT / 500n, 500],
    [2, 100, CENT / 100n, 100],
    [1, 100, CENT / 30n, 30],
    // The amounts do not divide evenly: 142 fit, and the rest is less than a reservation.
    [2, 500, CENT / 142n, 142],
  ])(
    '%i processes with %i requests each on the last cent, %s nano-dollars apiece: never above it, and as many as fit are reserved',
    async (processes, requests, amount, fit) => {
      const instanceUid = randomUUID();
      const scopes = [scopeOf('key', CENT), scopeOf('team', 100n * CENT)];
      const order: Rush = { connection: server.connection, instanceUid, scopes, requests, amount: `${amount}` };
      // Nothing is spent yet: the reason of every refusal is a reserved budget, never a spent one.
      expect(await rush(order, processes)).toEqual({ reserved: fit, held: processes * requests - fit });

      // The store agrees: the rest fits, and a nano-dollar more does not.
      const redis = openRedis(server.connection, { log: createMemoryLog() });
      const counterStore = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid });
      const rest = CENT - amount * BigInt(fit);
      const asks = [rest + 1n, rest].map((size) => ({ counters: [0, 1], amount: size, minAmount: size }));
      const reply = await counterStore.call({
        epoch: 1,
        account: randomUUID(),
        callNumber: 1,
        lease: 60_000,
        deadline: Date.now() + 60_000,
        batch: 1,
        bookedBatch: 0,
        changes: scopes.map(toChange),
        requests: asks,
        rateChanges: [],
        accountsToForget: [],
        finishesAccount: false,
      });
      expect(reply).toMatchObject({
        replies: [
          { outcome: 'held', counter: 0 },
          { outcome: 'reserved', amount: rest },
        ],
      });
      await redis.close();
    },
  );
});
