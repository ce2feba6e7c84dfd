// Entries per second that PostgreSQL takes from the ledger, and the CPU of both.

import { randomUUID } from 'node:crypto';
import { createDatabase } from '#adapters/postgres/database.ts';
import type { Entry } from '#core/ports/books.ts';
import { spendWindow } from '#core/window.ts';
import { bookEntries } from '../../book-entries.ts';
import { startPostgres, type TestPostgres } from '../../postgres.ts';
import { cpuOf } from '../pinned.ts';
import { median, spread, table } from '../table.ts';
import { makeScope, SETTLEMENT, SURROUNDINGS } from './measured.ts';

/** The size of the ledger's batches (booking.ts). */
const BATCH = 2000;
const [KEYS, USERS, TEAMS] = [1000, 100, 10];
const BATCHES = 20;
const ROUNDS = 3;
const GATEWAYS = [1, 2];

interface Round {
  readonly seconds: number;
  /** Microseconds of CPU: of this process, and of PostgreSQL's backends. */
  readonly ours: number;
  readonly postgres: number;
}

export async function benchBooking(): Promise<string> {
  const postgres = await startPostgres({ durable: true });
  try {
    const connection = await postgres.createDatabase();
    const database = createDatabase(connection, SURROUNDINGS);
    await database.migrate();
    const uid = randomUUID();
    await database.openInstance({ uid, namespace: 'default', name: 'bench' });
    const entries = createEntries();
    const rows: string[][] = [];
    for (const gateways of GATEWAYS) {
      const rounds: Round[] = [];
      for (let round = -1; round < ROUNDS; round += 1) {
        const queue = Array.from({ length: BATCHES }, () => entries(BATCH));
        const [began, cpu, theirs] = [performance.now(), process.cpuUsage(), await cpuOfBackends(postgres)];
        const book = async () => {
          for (let batch = queue.pop(); batch !== undefined; batch = queue.pop())
            await bookEntries(database, uid, batch);
        };
        await Promise.all(Array.from({ length: gateways }, book));
        const { user, system } = process.cpuUsage(cpu);
        const seconds = (performance.now() - began) / 1000;
        const used = (await cpuOfBackends(postgres)) - theirs;
        if (round >= 0) rounds.push({ seconds, ours: user + system, postgres: used * 1000 });
      }
      rows.push(row(gateways, rounds));
    }
    await database.close();
    const [{ count } = { count: '' }] = await postgres.query<{ count: string }>(
      connection,
      'select count(*) from gateway_operator.entry',
    );
    const due = GATEWAYS.length * (ROUNDS + 1) * BATCHES * BATCH;
    if (Number(count) !== due) throw new Error(`${due} entries were booked, PostgreSQL has ${count}`);
    const head = [
      'booking at once',
      'entries/s',
      'from to',
      'µs CPU of ours',
      'µs CPU of PostgreSQL',
      'PostgreSQL busy',
    ];
    return `Booking: ${ROUNDS} rounds of ${BATCHES} batches of ${BATCH} entries, three charges each, from ${KEYS} keys; fsync on.\n\n${table(head, rows)}`;
  } finally {
    await postgres.stop();
  }
}

function row(gateways: number, rounds: ReadonlyArray<Round>): string[] {
  const booked = BATCHES * BATCH;
  const rates = rounds.map(({ seconds }) => booked / seconds);
  return [
    gateways === 1 ? 'one gateway' : `${gateways} gateways`,
    ...[median(rates).toFixed(0), spread(rates)],
    median(rounds.map(({ ours }) => ours / booked)).toFixed(1),
    median(rounds.map((round) => round.postgres / booked)).toFixed(1),
    `${median(rounds.map((round) => (round.postgres / round.seconds) * 1e-4)).toFixed(0)} % of a core`,
  ];
}

/** Milliseconds of CPU of every current backend. */
async function cpuOfBackends({ connection, query }: TestPostgres): Promise<number> {
  const rows = await query<{ pid: number }>(
    connection,
    "select pid from pg_stat_activity where backend_type = 'client backend'",
  );
  return rows.reduce((sum, { pid }) => sum + (cpuOf({ pid }) ?? 0), 0);
}

function createEntries(): (count: number) => Entry[] {
  const make = (count: number) =>
    Array.from({ length: count }, () => {
      const scope = makeScope('key');
      return { scopeId: scope.scopeId, window: spendWindow(scope, Date.now()) };
    });
  const [keys, users, teams] = [make(KEYS), make(USERS), make(TEAMS)];
  let made = 0;
  return (count) =>
    Array.from({ length: count }, (): Entry => {
      made += 1;
      const charges = [keys, users, teams].flatMap((of) => of[made % of.length] ?? []);
      return { ...SETTLEMENT, id: SURROUNDINGS.ids.next(), kind: 'settled', charges, settledAt: Date.now() };
    });
}
