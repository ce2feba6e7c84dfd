// A million VirtualKeys and twenty million ledger rows: how fast, how large, how exact; then a gateway with random keys.
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { storeName } from '#core/ports/backends.ts';
import { type Place, type Server, startPlace } from './gateway/place.ts';
import type { Round } from './gateway/rounds.ts';
import { COST, insertKeys } from './large/keys.ts';
import type { SpenderOrder, SpenderReport } from './large/spender.ts';
import { cpuOf, forkPinned } from './pinned.ts';
import { benchLargeResync } from './resync.ts';
import { median, table } from './table.ts';

const KEYS = Number(process.env.BENCH_KEYS ?? 1_000_000);
const ROWS = Number(process.env.BENCH_ROWS ?? 20_000_000);
const STEPS = [0.05, 0.25, 0.5, 1].map((share) => ROWS * share);
const PROCESSES = 3;
/** Bytes of disk for PostgreSQL with its write-ahead log, by row and by VirtualKey; and for everything else. */
const [BYTES_OF_ROW, BYTES_OF_KEY, OTHER_BYTES] = [750, 3500, 1.5e9];
const ROUNDS = 5;
const SECONDS = 5;

export async function benchLarge(): Promise<string> {
  const missing = whyTooSmall();
  if (missing !== undefined) return missing;
  const place = await startPlace();
  try {
    if (place.redis === undefined) return 'Not measured: there is no redis-server.';
    const began = performance.now();
    const filled = await insertKeys(place.world, KEYS);
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    say(`${count(KEYS)} VirtualKeys are in PostgreSQL after ${seconds} s`);
    const booked = await book(place, filled);
    return [booked, await serve(place)].join('\n\n');
  } finally {
    await place.close();
  }
}

export async function benchLargeObjects(): Promise<string> {
  return benchLargeResync(Math.min(KEYS, 100_000));
}

/** Why the disk is too small; undefined: it is large enough. */
function whyTooSmall(): string | undefined {
  const { bavail, bsize } = statfsSync(tmpdir());
  const [free, needed] = [bavail * bsize, ROWS * BYTES_OF_ROW + KEYS * BYTES_OF_KEY + OTHER_BYTES];
  if (free >= needed) return undefined;
  return `Not measured: ${tmpdir()} has ${gigabytes(free)} of free disk, and ${gigabytes(needed)} are needed. Set TMPDIR to a larger disk, or BENCH_ROWS and BENCH_KEYS to smaller numbers.`;
}

interface Step {
  readonly rows: number;
  readonly seconds: number;
  readonly bytes: number;
}

/**
 * Several processes reserve and settle the first rows. The others are only booked: through the ledger all of them would
 * take some hours, because random keys share no calls to Redis.
 */
async function book(place: Place, filled: KeyTable): Promise<string> {
  const { world } = place;
  const query = <R extends object>(text: string) => world.postgres.query<R>(world.database, text);
  const sizeNow = async () => Number((await query<{ bytes: string }>(SIZE))[0]?.bytes);
  const before = await sizeNow();
  const [through = 0, ...thresholds] = STEPS;
  const ledger = await charge(place, filled, { through: 'ledger', requests: through });
  const steps: Step[] = [{ rows: ledger.charged, seconds: ledger.seconds, bytes: (await sizeNow()) - before }];
  const cpu = [cpuRow('reserved, settled and booked', ledger)];
  for (const threshold of thresholds) {
    const rows = steps.at(-1)?.rows ?? 0;
    const booked = await charge(place, filled, { through: 'rows', requests: threshold - rows });
    steps.push({ rows: rows + booked.charged, seconds: booked.seconds, bytes: (await sizeNow()) - before });
    cpu.push(cpuRow(`only booked, from ${count(rows)} rows`, booked));
  }
  const [total] = await query<{ rows: string; cost: string }>(TOTALS);
  const [above] = await query<{ scopes: string; cost: string }>(ABOVE_LIMIT);
  const due = BigInt(steps.at(-1)?.rows ?? 0) * COST;
  const cells = steps.map(({ rows, seconds, bytes }, at) => {
    const rate = (rows - (steps[at - 1]?.rows ?? 0)) / seconds;
    return [count(rows), rate.toFixed(0), (bytes / rows).toFixed(0), gigabytes(bytes)];
  });
  return [
    `${PROCESSES} processes without HTTP on one core, PostgreSQL and Redis on the other; random ones of ${count(KEYS)} VirtualKeys, three scopes of 30 days each. The first row reserves and settles; the others only book.`,
    table(['ledger rows', 'rows a second since the line above', 'bytes a row, all tables', 'in all'], cells),
    table(['CPU of a row, µs', 'our processes', 'PostgreSQL', 'Redis'], cpu),
    `Refused because a budget was spent: ${count(ledger.refused)}. Reservations that were repeated: ${count(ledger.repeated)}. Above a limit after the first line: ${ledger.above}.`,
    `Charged: ${due} nano-dollars. In the ledger: ${total?.rows} rows of ${total?.cost}. Lost: ${due - BigInt(total?.cost ?? 0)}. Scopes above their limit at the end, because rows that are only booked ask no limit: ${above?.scopes}.`,
  ].join('\n\n');
}

interface ChargeReport extends Omit<SpenderReport, 'isDone'> {
  readonly seconds: number;
  /** Milliseconds of CPU. */
  readonly postgresCpu: number;
  readonly redisCpu: number;
  readonly above: string;
}

async function charge(
  { world, redis, watch }: Place,
  { instanceUid, anchor }: KeyTable,
  { through, requests }: Pick<SpenderOrder, 'through' | 'requests'>,
): Promise<ChargeReport> {
  const query = <R extends object>(text: string) => world.postgres.query<R>(world.database, text);
  const [{ epoch } = { epoch: '0' }] = await query<{ epoch: string }>(EPOCH);
  const order = { through, requests: Math.ceil(requests / PROCESSES), epoch: Number(epoch), instanceUid, anchor };
  const redisAtStart = (await watch?.cpu()) ?? Number.NaN;
  const postgres = createCpuCount(async () => (await query<{ pid: number }>(PIDS)).map(({ pid }) => pid));
  await postgres.read();
  const postgresAtStart = postgres.total();
  const began = performance.now();
  const spenders = Array.from({ length: PROCESSES }, () =>
    startSpender({
      ...order,
      connection: world.database,
      folder: mkdtempSync(join(world.folder, 'journal-')),
      keys: KEYS,
      ...(redis === undefined ? {} : { redis: redis.connection, store: storeName(redis.connection) }),
    }),
  );
  const ended = Promise.all(spenders.map(({ done }) => done));
  const isOver = ended.then(() => true);
  for (let round = 1; !(await Promise.race([isOver, pause(1000, false)])); round += 1) {
    await postgres.read();
    if (round % 30 === 0)
      say(`${count(sum(spenders.map(({ last }) => last().charged)))} of ${count(requests)} after ${round} s`);
  }
  const reports = await ended;
  const seconds = (performance.now() - began) / 1000;
  await postgres.read();
  const [above] = await query<{ scopes: string; cost: string }>(ABOVE_LIMIT);
  const all = (of: (report: SpenderReport) => number) => sum(reports.map(of));
  return {
    charged: all(({ charged }) => charged),
    refused: all(({ refused }) => refused),
    repeated: all(({ repeated }) => repeated),
    cpu: all(({ cpu }) => cpu),
    seconds,
    postgresCpu: postgres.total() - postgresAtStart,
    redisCpu: (((await watch?.cpu()) ?? Number.NaN) - redisAtStart) / 1000,
    above: `${above?.scopes} scopes, ${above?.cost} nano-dollars`,
  };
}

function cpuRow(name: string, { charged, cpu, postgresCpu, redisCpu }: ChargeReport): string[] {
  return [name, ...[cpu, postgresCpu, redisCpu].map((millis) => ((millis * 1000) / charged).toFixed(1))];
}

type KeyTable = Awaited<ReturnType<typeof insertKeys>>;

/** Everything in the database: ledger rows, sums, claims and their indexes. */
const SIZE = 'select pg_database_size(current_database()) as bytes';
const EPOCH = 'select epoch from gateway_operator.store_epoch order by epoch desc limit 1';
const PIDS = 'select pid from pg_stat_activity';
const TOTALS = 'select count(*) as rows, coalesce(sum(cost), 0)::text as cost from gateway_operator.ledger_row';
const ABOVE_LIMIT = `
select count(*) as scopes, coalesce(sum(s.amount - (c.policy -> 'budget' ->> 'limit')::numeric), 0)::text as cost
from gateway_operator.sum s join gateway_operator.claim c using (scope_id)
where s.amount > (c.policy -> 'budget' ->> 'limit')::numeric`;

function startSpender(order: SpenderOrder) {
  const child: ChildProcess = forkPinned(0, ['large/spender.ts']);
  let last: SpenderReport = { charged: 0, refused: 0, repeated: 0, cpu: 0, isDone: false };
  const done = new Promise<SpenderReport>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`a process of the bench ended with ${code}`)));
    child.on('message', (report: SpenderReport) => {
      last = report;
      if (report.isDone) resolve(report);
    });
  });
  child.send(order);
  return { done: done.finally(() => child.disconnect()), last: () => last };
}

/** Milliseconds of CPU of processes that come and go: what each had when it was seen last. */
function createCpuCount(pidsNow: () => Promise<ReadonlyArray<number>>) {
  const seen = new Map<number, number>();
  return {
    read: async () => {
      for (const pid of await pidsNow()) seen.set(pid, cpuOf({ pid }) ?? seen.get(pid) ?? 0);
    },
    total: () => sum([...seen.values()]),
  };
}

/** One gateway and the bare pass-through in turn, each request with a random key. */
async function serve(place: Place): Promise<string> {
  const gateway = await place.start('Redis');
  const { world } = place;
  const readsNow = async () => {
    // Backends report their figures with a delay of up to a second.
    await pause(2000);
    const [reads] = await world.postgres.query<{ reads: string }>(world.database, POLICY_READS);
    return Number(reads?.reads);
  };
  const load = (server: Server, connections: number) =>
    place.measure([server], { kinds: ['plain'], connections, seconds: SECONDS, keys: KEYS });
  await load(gateway, 32);
  const rows: string[][] = [];
  for (const connections of [32, 1]) {
    const [ours, bare]: [Round[], Round[]] = [[], []];
    const before = await readsNow();
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await load(place.bare, connections));
      ours.push(await load(gateway, connections));
    }
    const reads = (await readsNow()) - before;
    const requests = sum(ours.map((round) => round.requests));
    const of = (rounds: Round[], value: (round: Round) => number) => median(rounds.map(value));
    const added = (share: number) => of(ours, (round) => at(round, share)) - of(bare, (round) => at(round, share));
    rows.push([
      `${connections}`,
      of(ours, (round) => round.requests / round.seconds).toFixed(0),
      of(bare, (round) => round.requests / round.seconds).toFixed(0),
      of(ours, ({ cpu }) => cpu).toFixed(0),
      of(bare, ({ cpu }) => cpu).toFixed(0),
      ...[0.5, 0.99].map((share) => (added(share) / 1000).toFixed(2)),
      (reads / requests).toFixed(2),
    ]);
  }
  await place.stop([gateway]);
  const head = [
    ...['connections', 'requests/s', 'bare', 'µs CPU', 'bare', 'added p50, ms', 'added p99, ms'],
    'policies read a request',
  ];
  return `One gateway on one core, Redis; each request with a random one of ${count(KEYS)} key values; ${ROUNDS} rounds of ${SECONDS} s in turn with the bare pass-through.\n\n${table(head, rows)}`;
}

/** Entries of the index of key values that look-ups have read: one for each policy that was not in the cache. */
const POLICY_READS = `select idx_tup_read as reads from pg_stat_user_indexes where indexrelname = 'key_value_hash'`;

const at = ({ whole }: Round, share: number): number => whole[Math.floor(whole.length * share)] ?? Number.NaN;
const sum = (values: ReadonlyArray<number>): number => values.reduce((all, value) => all + value, 0);
const count = (value: number): string => value.toLocaleString('en');
const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;
const say = (text: string): unknown => process.stdout.write(`${text}\n`);
