// A gateway process that reserves, streams and settles as fast as it can until it is killed, and prints what its
// clients saw.

import { writeSync } from 'node:fs';
import { createJournal } from '#adapters/journal/journal.ts';
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Reservation } from '#core/ports/ledger.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { ONE_STORE } from '../support/one-store.ts';
import type { TestRedis } from '../support/redis.ts';

export interface Order {
  readonly connection: DatabaseConnection;
  readonly folder: string;
  readonly instanceUid: string;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /** The Redis that has the counters. Absent: they are in the memory of the process. */
  readonly redis?: TestRedis['connection'];
  /** The name of the counter store in PostgreSQL. Absent: one name for all. */
  readonly store?: string;
}

const log = { info: () => undefined, warn: console.error, error: console.error };

/** A ledger over the real database and journal, as in the local stack or in a Pod. */
export function openLedger({ connection, folder, instanceUid, redis, store = ONE_STORE.store }: Order) {
  const { clock, ids, timer, random } = nodeDependencies();
  const database = createDatabase(connection, { log });
  const journal = createJournal({ folder, log });
  const { scopesOfOtherInstances } = database;
  const ledgerDatabase = { ...database.ledgerDatabase(instanceUid, random), scopesOfOtherInstances };
  const client = redis && openRedis(redis, { log });
  const ledger = createLedger({
    instanceUid,
    database: ledgerDatabase,
    journal,
    counterStore:
      client === undefined
        ? createMemoryCounterStore({ clock, epoch: 0 })
        : createRedisCounterStore({ evaluate: client.evaluate, instanceUid }),
    clock,
    ids,
    timer,
    log,
    epochs: database.epochs(instanceUid, { ...ONE_STORE, store }),
    processName: client === undefined ? 'memory' : ids.next(),
    metrics: { add: () => undefined, set: () => undefined, observe: () => undefined },
  });
  const close = async (): Promise<void> => {
    await ledger.close();
    await journal.close();
    await client?.close();
    await database.close();
  };
  return { ledger, database, close };
}

const print = (...words: ReadonlyArray<string | bigint>): unknown => writeSync(1, `${words.join(' ')}\n`);

/**
 * The output lines: `reserved id amount`, `grows id amount`, `grown id amount`, `settled id cost` (the client has its last
 * byte), `released id`, `refused reason`.
 */
async function spend(order: Order): Promise<never> {
  const { ledger } = openLedger(order);
  await ledger.start();
  print('started');
  const grow = async (reservation: Reservation, by: bigint): Promise<void> => {
    print('grows', reservation.id, reservation.amount + by);
    if ((await ledger.grow(reservation, by)).ok) print('grown', reservation.id, reservation.amount);
  };
  const client = async (): Promise<never> => {
    for (;;) {
      const amount = BigInt(1 + Math.floor(Math.random() * 1000));
      const result = await ledger.reserve({
        scopes: order.scopes,
        amount,
        minAmount: 1n,
        model: 'small',
        identifier: 'small-1',
      });
      if (!result.ok) {
        print('refused', result.failure.reason);
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      const { id } = result.value;
      print('reserved', id, result.value.amount);
      if (Math.random() < 0.3) await grow(result.value, BigInt(1 + Math.floor(Math.random() * 100)));
      const cost = (result.value.amount * BigInt(Math.floor(Math.random() * 1001))) / 1000n;
      ledger.trackStream(result.value, () => cost / 2n);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
      if (Math.random() < 0.2) {
        await ledger.release(result.value);
        print('released', id);
        continue;
      }
      const tokens = { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 };
      await ledger.settle(result.value, { cost, tokens, model: 'small', identifier: 'small-1', estimated: false });
      print('settled', id, cost);
    }
  };
  return Promise.race(Array.from({ length: 16 }, client));
}

if (process.argv[2] !== undefined && import.meta.main) await spend(JSON.parse(process.argv[2]));
