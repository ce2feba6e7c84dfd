// Cost of the script for Redis by the size of the call: counters of one key or of many, with and without asks.
import { randomUUID } from 'node:crypto';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import { spendWindow } from '#core/money/window.ts';
import type { AccountCall, CounterStore } from '#core/ports/counter-store.ts';
import { startRedis, whyNoRedis } from '../../support/redis.ts';
import { watchRedis } from '../redis-watch.ts';
import { table } from '../table.ts';
import { COST, makeScope, SURROUNDINGS } from './measured.ts';

/** Counters and asks of a call. */
const SIZES = [
  [3, 0],
  [3, 1],
  [34, 32],
  [256, 0],
  [256, 64],
] as const;
const CALLS = 400;
const WARM_UP = 50;
const LIMIT = 1_000_000_000_000_000n;
const EPOCH = 1;

export async function benchBatches(): Promise<string> {
  const missing = whyNoRedis();
  if (missing !== undefined) return `Calls were skipped: ${missing}.`;
  const server = await startRedis();
  const watch = await watchRedis(server);
  const { evaluate, close } = openRedis(server.connection, SURROUNDINGS);
  try {
    const rows: string[][] = [];
    for (const [counters, asks] of SIZES) {
      const accounts = createRedisCounterStore({ evaluate, instanceUid: randomUUID() });
      await accounts.begin(EPOCH, true);
      const spend = await createSpending(accounts, counters, asks);
      await spend(WARM_UP);
      const before = await watch.cpu();
      await spend(CALLS);
      const cost = ((await watch.cpu()) - before) / CALLS;
      rows.push([`${counters}`, `${asks}`, cost.toFixed(0), (cost / counters).toFixed(1)]);
    }
    const head = ['counters a call', 'asks', 'µs CPU of Redis a call', 'a counter'];
    return `The script by call: every counter is spent from, ${CALLS} calls one after the other.\n\n${table(head, rows)}`;
  } finally {
    watch.close();
    await close();
    await server.stop();
  }
}

async function createSpending(accounts: CounterStore, counters: number, asks: number) {
  const of = Array.from({ length: counters }, () => {
    const scope = makeScope('key');
    return { scopeId: scope.scopeId, window: spendWindow(scope, Date.now()) };
  });
  await accounts.load(
    EPOCH,
    of.map((counter) => ({ ...counter, spent: 0n })),
  );
  const account = randomUUID();
  let number = 0;
  return async (calls: number): Promise<void> => {
    for (let made = 0; made < calls; made += 1) {
      number += 1;
      const line = { limit: LIMIT, spend: COST, risk: COST, returned: 0n, carriedOver: 0n, ahead: 0n };
      const call: AccountCall = {
        epoch: EPOCH,
        account,
        callNumber: number,
        lease: 20_000,
        deadline: Date.now() + 60_000,
        batch: number,
        bookedBatch: number - 1,
        rateChanges: [],
        accountsToForget: [],
        finishesAccount: false,
        changes: of.map((counter) => ({ ...counter, ...line })),
        requests: Array.from({ length: asks }, (_, at) => ({
          counters: [at % counters, (at + 1) % counters, (at + 2) % counters],
          amount: COST,
          minAmount: COST,
        })),
      };
      const { outcome } = await accounts.call(call);
      if (outcome !== 'done') throw new Error(`the store answered ${outcome}`);
    }
  };
}
