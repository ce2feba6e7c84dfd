// Entries per second that PostgreSQL takes from the ledger, and the CPU of both.

import { randomUUID } from 'node:crypto';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import { spendWindow } from '#core/money/window.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { ONE_STORE } from '../../support/one-store.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { cpuOf } from '../pinned.ts';
import { median, spread, table } from '../table.ts';
import { makeScope, SETTLEMENT, SURROUNDINGS } from './measured.ts';

const ENTRIES = 40_000;
/** A batch holds what a gateway settles in 100 ms, or what waits while another is under way; the last is a backlog. */
const CASES = [
  { gateways: 1, size: 500 },
  { gateways: 1, size: 2000 },
  { gateways: 2, size: 500 },
  { gateways: 2, size: 2000 },
  { gateways: 1, size: ENTRIES },
];
const [KEYS, USERS, TEAMS] = [1000, 100, 10];
const ROUNDS = 3;
const EPOCH = 1;

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
    const epochs = database.epochs(uid, ONE_STORE);
    await epochs.raise(0, 0);
    await epochs.open(EPOCH);
    const entries = createEntries();
    const rows: string[][] = [];
    for (const { gateways, size } of CASES) {
      const accounts = Array.from({ length: gateways }, () => createAccount(database, uid));
      const rounds: Round[] = [];
      for (let round = -1; round < ROUNDS; round += 1) {
        const queue = Array.from({ length: ENTRIES / size }, () => entries(size));
        const [began, cpu, theirs] = [performance.now(), process.cpuUsage(), await cpuOfBackends(postgres)];
        const run = async (book: Book) => {
          for (let batch = queue.pop(); batch !== undefined; batch = queue.pop()) await book(batch);
        };
        await Promise.all(accounts.map(run));
        const { user, system } = process.cpuUsage(cpu);
        const seconds = (performance.now() - began) / 1000;
        const used = (await cpuOfBackends(postgres)) - theirs;
        if (round >= 0) rounds.push({ seconds, ours: user + system, postgres: used * 1000 });
      }
      rows.push(row(gateways, size, rounds));
    }
    await database.close();
    const [{ count } = { count: '' }] = await postgres.query<{ count: string }>(
      connection,
      'select count(*) from gateway_operator.ledger_row',
    );
    const due = CASES.length * (ROUNDS + 1) * ENTRIES;
    if (Number(count) !== due) throw new Error(`${due} entries were booked, PostgreSQL has ${count}`);
    const head = [
      'booking concurrently',
      'entries of a batch',
      'entries/s',
      'from to',
      'our µs CPU',
      'µs CPU of PostgreSQL',
      'PostgreSQL busy',
    ];
    return `Booking: ${ROUNDS} rounds of ${ENTRIES} entries, three charges each, from ${KEYS} keys, in numbered batches of one account per gateway; fsync on.\n\n${table(head, rows)}`;
  } finally {
    await postgres.stop();
  }
}

type Book = (entries: ReadonlyArray<LedgerRow>) => Promise<void>;

/** A gateway's account: its batches are numbered, and its row says which are booked. */
function createAccount(database: Pick<Database, 'ledgerDatabase'>, instanceUid: string): Book {
  const ledgerDatabase = database.ledgerDatabase(instanceUid, SURROUNDINGS.random);
  const id = randomUUID();
  let batch = 0;
  return async (entries) => {
    batch += 1;
    const account = { id, batch, callNumber: batch };
    const { outcome, rejected } = await ledgerDatabase.bookBatch({
      epoch: EPOCH,
      account,
      storeCalls: batch,
      rows: entries,
    });
    if (outcome !== 'booked' || rejected.length > 0) throw new Error(`${outcome}, ${rejected.length} rejected`);
  };
}

function row(gateways: number, size: number, rounds: ReadonlyArray<Round>): string[] {
  const rates = rounds.map(({ seconds }) => ENTRIES / seconds);
  return [
    ...[gateways === 1 ? 'one gateway' : `${gateways} gateways`, `${size}`],
    ...[median(rates).toFixed(0), spread(rates)],
    median(rounds.map(({ ours }) => ours / ENTRIES)).toFixed(1),
    median(rounds.map((round) => round.postgres / ENTRIES)).toFixed(1),
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

function createEntries(): (count: number) => LedgerRow[] {
  const make = (count: number) =>
    Array.from({ length: count }, () => {
      const scope = makeScope('key');
      return { scopeId: scope.scopeId, window: spendWindow(scope, Date.now()) };
    });
  const [keys, users, teams] = [make(KEYS), make(USERS), make(TEAMS)];
  let made = 0;
  return (count) =>
    Array.from({ length: count }, (): LedgerRow => {
      made += 1;
      const scopeWindows = [keys, users, teams].flatMap((of) => of[made % of.length] ?? []);
      return {
        ...SETTLEMENT,
        id: SURROUNDINGS.ids.next(),
        kind: 'settled',
        scopeWindows,
        settledAt: Date.now(),
      };
    });
}
