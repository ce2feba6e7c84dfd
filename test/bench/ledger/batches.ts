// Cost of the script for Redis by the size of the batch, for one key and for as many keys as requests.
import { randomUUID } from 'node:crypto';
import { createRedisStore } from '#adapters/redis/store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { Counter, HoldOperation, SettleNote, Store, StoreCall } from '#core/ports/store.ts';
import { spendWindow } from '#core/window.ts';
import { startRedis, whyNoRedis } from '../../redis.ts';
import { watchCpu } from '../redis-cpu.ts';
import { table } from '../table.ts';
import { COST, makeScope, SETTLEMENT, SURROUNDINGS } from './measured.ts';

const SIZES = [1, 4, 32];
const KEYS = [1, 32];
const CALLS = 400;
const WARM_UP = 50;
const BOOKED_TOGETHER = 1000;
const LIMIT = 1_000_000_000_000_000n;
const EPOCH = 1;

/** Each call settles the holds of the one before, as the ledger does under load; settled ids are forgotten in thousands. */
export async function benchBatches(): Promise<string> {
  const missing = whyNoRedis();
  if (missing !== undefined) return `Batches were skipped: ${missing}.`;
  const server = await startRedis();
  const watch = await watchCpu(server);
  const { evaluate, close } = openRedis(server.connection, SURROUNDINGS);
  try {
    const rows: string[][] = [];
    for (const size of SIZES) {
      const costs: string[] = [];
      for (const keys of KEYS.filter((count) => count <= size)) {
        const store = createRedisStore({ evaluate, instanceUid: randomUUID() });
        await store.begin(EPOCH);
        const life = await createLife(store, keys);
        await life(WARM_UP, size);
        const before = await watch.cpu();
        await life(CALLS, size);
        costs.push((((await watch.cpu()) - before) / (CALLS * size)).toFixed(1));
      }
      rows.push([`${size}`, ...costs, ...KEYS.slice(costs.length).map(() => '')]);
    }
    const head = ['holds and settlements a call', 'one key, µs CPU of Redis each', '32 keys'];
    return `The script by batch: hold, settle and forget of three scopes, ${CALLS} calls one after the other.\n\n${table(head, rows)}`;
  } finally {
    watch.close();
    await close();
    await server.stop();
  }
}

async function createLife(store: Store, keys: number) {
  const make = (kind: 'key' | 'user' | 'team'): Counter => {
    const scope = makeScope(kind);
    return { scopeId: scope.scopeId, window: spendWindow(scope, Date.now()), limit: LIMIT };
  };
  const [user, team] = [make('user'), make('team')];
  const payers = Array.from({ length: keys }, () => [make('key'), user, team]);
  const nothing: StoreCall = { epoch: EPOCH, settles: [], releases: [], renewals: [], loads: [], holds: [] };
  const loads = [...new Set(payers.flat())].map((counter) => ({ ...counter, spent: 0n }));
  await store.call({ ...nothing, loads });
  const from = { process: randomUUID(), acknowledged: 0 };
  let held: ReadonlyArray<HoldOperation> = [];
  let booked: { readonly id: string; readonly kind: 'settled' }[] = [];
  return async (calls: number, size: number): Promise<void> => {
    for (let call = 0; call < calls; call += 1) {
      const settles = held.map(({ id, note }) => ({ id, cost: COST, note: toSaid(note.charges) }));
      held = Array.from({ length: size }, (_, at) => toHold(payers[at % keys] ?? []));
      const reply = await store.call({ ...nothing, from, settles, holds: held });
      if (reply.outcome !== 'done' || reply.holds.some(({ outcome }) => outcome !== 'held'))
        throw new Error('a hold was not taken');
      booked.push(...settles.map(({ id }) => ({ id, kind: 'settled' as const })));
      if (booked.length < BOOKED_TOGETHER) continue;
      await store.forget(booked);
      booked = [];
    }
  };
}

const toHold = (counters: ReadonlyArray<Counter>): HoldOperation => ({
  ...{ id: SURROUNDINGS.ids.next(), amount: 2n * COST, minAmount: COST, counters },
  note: { charges: counters, model: 'sample-small', identifier: 'sample-small-1' },
  ...{ deadline: Date.now() + 60_000, lease: 60_000 },
});

const toSaid = (charges: ReadonlyArray<ScopeWindow>): SettleNote => {
  const { cost: _cost, ...rest } = SETTLEMENT;
  return { ...rest, kind: 'settled', charges, settledAt: Date.now() };
};
