// Does money stay right whatever is killed, in whatever order? A storm by seed, and what is wrong after it.
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { eventually } from '../../stack.ts';
import { type Bed, type Key, makeBed, PRICE } from './bed.ts';
import { ask, type Seen, startLoad } from './load.ts';

export interface Storm {
  readonly seed: number;
  readonly gateways: number;
  readonly millis: number;
}

export interface Aftermath {
  readonly faults: ReadonlyArray<string>;
  readonly statuses: Readonly<Record<string, number>>;
  readonly completed: number;
  /** Milliseconds until the slowest refusal. */
  readonly slowest: number;
  /** Sentences; empty: all is right. */
  readonly wrong: ReadonlyArray<string>;
}

/** More than any request of ours can hold: a token a byte of its text, and 40 tokens of output. */
const MOST_HELD = 200n * PRICE.input + 40n * PRICE.output;
const LIMITS = [10n ** 15n, 4_000_000n];

export async function weather({ seed, gateways, millis }: Storm): Promise<Aftermath> {
  const bed = await makeBed(gateways, LIMITS);
  try {
    const load = startLoad(bed, 12);
    await pause(500);
    const faults = await strike(bed, random(seed), millis);
    await recovered(bed);
    const seen = await load.end();
    return { faults, ...(await judge(bed, seen)) };
  } finally {
    await bed.stop();
  }
}

/** Numbers between 0 and 1, the same for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Fault = readonly [name: string, happen: (bed: Bed, next: () => number) => Promise<void>];

const FAULTS: ReadonlyArray<Fault> = [
  [
    'a gateway is killed',
    async ({ gateways }, next) => {
      const gateway = gateways[Math.floor(next() * gateways.length)];
      await gateway?.kill();
      await pause(next() * 500);
      await gateway?.start();
    },
  ],
  [
    'the store comes back empty',
    async ({ redis }, next) => {
      await redis.kill();
      redis.lose();
      await pause(next() * 600);
      await redis.start();
    },
  ],
  [
    'the store comes back with an old snapshot',
    async (bed, next) => {
      await command(bed, 'SAVE');
      await pause(200 + next() * 600);
      await bed.redis.kill();
      await pause(next() * 300);
      await bed.redis.start();
    },
  ],
  [
    'the store is frozen, and then runs late calls',
    async ({ redis }, next) => {
      const thaw = redis.freeze();
      await pause(300 + next() * 2500);
      thaw();
    },
  ],
  [
    'PostgreSQL is killed',
    async ({ postgres }, next) => {
      await postgres.kill();
      await pause(next() * 1000);
      await postgres.start();
    },
  ],
  [
    'PostgreSQL is frozen',
    async ({ postgres }, next) => {
      const thaw = postgres.freeze();
      await pause(300 + next() * 2000);
      thaw();
    },
  ],
  [
    'gateway and store are killed together',
    async ({ gateways, redis }, next) => {
      const gateway = gateways[Math.floor(next() * gateways.length)];
      await Promise.all([gateway?.kill(), redis.kill()]);
      redis.lose();
      await pause(next() * 300);
      await Promise.all([gateway?.start(), redis.start()]);
    },
  ],
];

/** One after the other; a quarter of them while the one before has only just ended. */
async function strike(bed: Bed, next: () => number, millis: number): Promise<string[]> {
  const struck: string[] = [];
  for (const until = Date.now() + millis; Date.now() < until; ) {
    const [name, happen] = FAULTS[Math.floor(next() * FAULTS.length)] ?? FAULTS[0] ?? [];
    if (name === undefined || happen === undefined) break;
    struck.push(name);
    await happen(bed, next);
    await pause(next() < 0.25 ? 0 : 300 + next() * 1200);
  }
  return struck;
}

async function command({ redis }: Bed, ...words: [string, ...string[]]): Promise<unknown> {
  const { host, port } = redis.connection;
  const client = new Redis({ host, port, protocol: 2 });
  client.on('error', () => undefined);
  return client.call(...words).finally(() => client.disconnect());
}

/** Nobody helps: every gateway lets a request through again. */
async function recovered({ gateways, keys }: Bed): Promise<void> {
  const [key] = keys;
  if (key === undefined) return;
  for (const { url } of gateways) {
    await eventually(
      () => ask(url, key, true),
      ({ completed }) => completed !== undefined,
      20_000,
    );
  }
}

async function judge(bed: Bed, seen: ReadonlyArray<Seen>): Promise<Omit<Aftermath, 'faults'>> {
  const wrong: string[] = [];
  const charged = await settled(bed);
  const { spent, problems } = await compareCounters(bed);
  wrong.push(...problems);
  const billed = costOf(bed);
  for (const key of bed.keys) {
    const own = seen.filter((one) => one.key === key);
    const whole = own.reduce((all, { completed }) => all + (completed === undefined ? 0n : billed(completed)), 0n);
    const doubtful = BigInt(own.filter(({ isDoubtful }) => isDoubtful).length) * MOST_HELD;
    const paid = charged.get(key.scopeId) ?? 0n;
    // `recovered` completes some more of the first key.
    const more = key === bed.keys[0] ? BigInt(100 * bed.gateways.length) * MOST_HELD : 0n;
    if (paid < whole) wrong.push(`${whole - paid} nano-dollars of completed replies were not charged`);
    if (paid > whole + doubtful + more)
      wrong.push(`${paid - whole - doubtful - more} nano-dollars too much were charged`);
    if (paid > key.limit + doubtful) wrong.push(`a limit of ${key.limit} was exceeded: ${paid}`);
    if (spent.get(key.scopeId) !== paid) wrong.push(`entries are ${paid}, their sum is ${spent.get(key.scopeId)}`);
  }
  wrong.push(...(await twice(bed)));
  const statuses: Record<string, number> = {};
  for (const { status, code } of seen) {
    const name = `${status ?? 'no answer'} ${code ?? ''}`.trim();
    statuses[name] = (statuses[name] ?? 0) + 1;
  }
  const allowed = /^(200|no answer|429 budget_(held|exceeded)|503 ledger_unavailable)$/;
  wrong.push(...Object.keys(statuses).flatMap((name) => (allowed.test(name) ? [] : [`clients were told ${name}`])));
  const refused = seen.filter(({ status }) => status === 503).map(({ took }) => took);
  const completed = seen.filter((one) => one.completed !== undefined).length;
  return { wrong, statuses, completed, slowest: Math.round(Math.max(0, ...refused)) };
}

const costOf =
  ({ upstream }: Bed) =>
  (id: string): bigint => {
    const size = upstream.reported.get(id);
    return size === undefined ? 0n : BigInt(size.input) * PRICE.input + BigInt(size.output) * PRICE.output;
  };

/** What each scope was charged when nothing is on its way any more. */
async function settled({ postgres, connection }: Bed): Promise<Map<string, bigint>> {
  const read = () =>
    postgres.query<{ scope_id: string; cost: string }>(
      connection,
      'select scope_id, sum(cost)::text as cost from gateway_operator.charge group by scope_id order by scope_id',
    );
  let before = '';
  const rows = await eventually(
    async () => {
      await pause(1500);
      return read();
    },
    (now) => {
      const same = JSON.stringify(now) === before;
      before = JSON.stringify(now);
      return same;
    },
    30_000,
  );
  return new Map(rows.map(({ scope_id, cost }) => [scope_id, BigInt(cost)]));
}

/** Entries by PostgreSQL's sums; counters of the store that show something else are told. */
async function compareCounters({ store, database, keys }: Bed) {
  const { counters } = await store.loaded(0, 100);
  const sums = await database.sums(counters);
  const survey = await store.survey(counters);
  const problems = sums.flatMap((sum, at) => {
    const { spent, parts } = survey.counters[at] ?? { spent: undefined, parts: [] };
    const expected = sum.spent + parts.reduce((all, { cost }) => all + cost, 0n);
    return spent === expected
      ? []
      : [`a counter shows ${spent}, its entries ${sum.spent} and ${expected - sum.spent} unbooked`];
  });
  const loaded = keys.filter(({ scopeId }) => counters.some((counter) => counter.scopeId === scopeId));
  if (loaded.length < keys.length) problems.push('a counter is missing');
  return { spent: new Map(sums.map(({ scopeId, spent }) => [scopeId, spent])), problems };
}

/** A request has one settlement, or the end of a lease and what corrects it. */
async function twice({ postgres, connection }: Bed): Promise<string[]> {
  const rows = await postgres.query<{ id: string; kinds: string }>(
    connection,
    `select id, string_agg(kind, ' ' order by kind) as kinds from gateway_operator.entry group by id
     having count(*) > 1 and string_agg(kind, ' ' order by kind) <> 'correction expired'`,
  );
  return rows.map(({ id, kinds }) => `${id} was booked as ${kinds}`);
}

export type { Bed, Key };
