// The time that a ledger refuses after its store was wiped under a thousand keys.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import { createLedger, type StartableLedger } from '#core/ledger/ledger.ts';
import { spendWindow } from '#core/money/window.ts';
import type { CounterStore } from '#core/ports/counter-store.ts';
import type { Reservation, ReservationParams } from '#core/ports/ledger.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { ONE_STORE } from '../../support/one-store.ts';
import { startPostgres } from '../../support/postgres.ts';
import { startRedis, whyNoRedis } from '../../support/redis.ts';
import { table } from '../table.ts';
import { COST, makeScope, NO_JOURNAL, requestOf, SETTLEMENT, SURROUNDINGS } from './measured.ts';

const SCOPES = 100_000;
const KEYS = 1000;
const [USERS, TEAMS] = [100, 10];
const ROUNDS = 3;
const AT_ONCE = 500;
/** Milliseconds after which idle escrow has gone back (LEDGER 3). */
const ESCROW_RETURNED = 2500;
const SPENT = 1_000_000n;

export async function benchWiped(): Promise<string> {
  const missing = whyNoRedis();
  if (missing !== undefined) return `A wiped store was skipped: ${missing}.`;
  const [postgres, server] = await Promise.all([startPostgres(), startRedis()]);
  const connection = await postgres.createDatabase();
  const database = createDatabase(connection, SURROUNDINGS);
  const { host, port } = server.connection;
  const direct = new Redis({ host, port, protocol: 2 });
  const redis = openRedis(server.connection, SURROUNDINGS);
  const uid = randomUUID();
  try {
    await database.migrate();
    await database.openInstance({ uid, namespace: 'default', name: 'bench' });
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: uid });
    const epochs = database.epochs(uid, ONE_STORE);
    const ledgerDatabase = { ...database, ...database.ledgerDatabase(uid, SURROUNDINGS.random) };
    const own = { instanceUid: uid, counterStore: accounts, database: ledgerDatabase, epochs, journal: NO_JOURNAL };
    const ledger = createLedger({ ...SURROUNDINGS, ...own });
    await ledger.start();
    const scopes = Array.from({ length: SCOPES }, () => makeScope('key'));
    const window = spendWindow(makeScope('key'), Date.now());
    await postgres.query(
      connection,
      'insert into gateway_operator.sum (scope_id, window_start, window_end, amount) select unnest($1::uuid[]), $2, $3, $4',
      [scopes.map(({ scopeId }) => scopeId), window.start, window.end, `${SPENT}`],
    );
    const requests = scopes.slice(0, KEYS).map((key, at) => {
      const [user, team] = [scopes[KEYS + (at % USERS)], scopes[KEYS + USERS + (at % TEAMS)]];
      return requestOf([key, user ?? key, team ?? key]);
    });
    const rows: string[][] = [];
    const usedBefore = await usedMemory(direct);
    let usedByCounters = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const { epoch } = await epochs.state();
      await loadAll(
        accounts,
        epoch,
        scopes.map(({ scopeId }) => ({ scopeId, window })),
      );
      usedByCounters = (await usedMemory(direct)) - usedBefore;
      const open = await Promise.all(requests.map((request) => insist(ledger, request)));
      const began = performance.now();
      await direct.flushall();
      const taken: number[] = [];
      const again = await Promise.all(
        requests.map(async (request) => {
          const reservation = await insist(ledger, request);
          taken.push(performance.now() - began);
          return reservation;
        }),
      );
      if ((await epochs.state()).epoch === epoch) throw new Error('the store was not rebuilt');
      rows.push([`${round + 1}`, Math.min(...taken).toFixed(0), Math.max(...taken).toFixed(0)]);
      await Promise.all([...open, ...again].map((reservation) => ledger.settle(reservation, SETTLEMENT)));
      await ledger.flush();
      // Idle escrow of this round would admit the requests of the next one without the wiped store.
      await pause(ESCROW_RETURNED);
    }
    await ledger.close();
    const [{ amount } = { amount: '' }] = await postgres.query<{ amount: string }>(
      connection,
      'select sum(amount)::text as amount from gateway_operator.sum',
    );
    const due = BigInt(SCOPES) * SPENT + BigInt(2 * KEYS * ROUNDS * 3) * COST;
    if (BigInt(amount) !== due) throw new Error(`PostgreSQL has ${amount} nano-dollars, not ${due}`);
    const head = ['FLUSHALL', 'first reservation after, ms', `all ${KEYS} keys have one after, ms`];
    return `A wiped Redis: ${SCOPES} scopes loaded and with a sum in PostgreSQL; ${KEYS} keys, their ${USERS} users and ${TEAMS} teams, each key with a request under way, want another immediately. At the end the sums are right to the nano-dollar. The counters took ${(usedByCounters / 1e6).toFixed(0)} MB of Redis.\n\n${table(head, rows)}`;
  } finally {
    direct.disconnect();
    await redis.close();
    await database.close();
    await Promise.all([server.stop(), postgres.stop()]);
  }
}

/** Bytes that the data of Redis takes. */
async function usedMemory(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}

async function insist(ledger: StartableLedger, request: ReservationParams): Promise<Reservation> {
  for (;;) {
    const reservation = await ledger.reserve(request);
    if (reservation.ok) return reservation.value;
    if (reservation.failure.reason !== 'unavailable') throw new Error(`refused: ${reservation.failure.reason}`);
    await pause(10);
  }
}

async function loadAll(accounts: CounterStore, epoch: number, counters: ReadonlyArray<ScopeWindow>): Promise<void> {
  for (let at = 0; at < counters.length; at += AT_ONCE)
    await accounts.load(
      epoch,
      counters.slice(at, at + AT_ONCE).map((of) => ({ ...of, spent: SPENT })),
    );
}
