// Cost of the gateway with everything on, against a bare pass-through: throughput, CPU, added latency, calls to the
// store.
import { type Place, type Server, type StoreName, startPlace } from './gateway/place.ts';
import { type Kind, PACE, REPLIES } from './gateway/replies.ts';
import { ADDED, addedOf, type Pair, RATES, ratePerCore, ratesOf } from './gateway/rounds.ts';
import { pins } from './pinned.ts';
import { table } from './table.ts';

/**
 * Options: workloads with these words in their names, fewer rounds, a folder for profiles of the gateway
 * (gateway/place.ts).
 */
const { BENCH_ONLY = '', BENCH_ROUNDS = '15' } = process.env;
const ROUNDS = Number(BENCH_ROUNDS);

interface Workload {
  readonly name: string;
  readonly kinds: ReadonlyArray<Kind>;
  readonly connections: number;
  /** Gateways on one store that share the connections and their core; one, if absent. */
  readonly gateways?: number;
  readonly seconds?: number;
  /** Fewer rounds, where they are long. */
  readonly rounds?: number;
  /** Connections start one after the other within so many milliseconds. */
  readonly spread?: number;
  /** Latencies that are also compared. */
  readonly added?: ReadonlyArray<'whole' | 'first'>;
}

const BUSY: ReadonlyArray<Workload> = [
  { name: 'plain, 32 connections', kinds: ['plain'], connections: 32 },
  { name: 'streamed, 32 connections', kinds: ['streamed'], connections: 32 },
];
const ALONE: ReadonlyArray<Workload> = [
  { name: 'plain, 1 connection', kinds: ['plain'], connections: 1, added: ['whole'] },
  { name: 'streamed, 1 connection', kinds: ['streamed'], connections: 1, added: ['first', 'whole'] },
];
const LONG = 'half streamed, bodies of 300 KB, 32 connections';
const EVENTS = REPLIES.short.events;
/** Streams that do not fill the core: the latency of the gateway, not that of a queue. */
const STREAMS: Workload = {
  name: `${EVENTS} events ${PACE} ms apart, 64 connections`,
  kinds: ['short'],
  connections: 64,
  seconds: 2,
  spread: EVENTS * PACE,
  added: ['first'],
};
const WORKLOADS: Readonly<Record<StoreName, ReadonlyArray<Workload>>> = {
  memory: [...BUSY, ...ALONE],
  Redis: [
    ...BUSY,
    // More connections keep the core busy: its capacity.
    ...BUSY.map(({ kinds }) => ({ name: `${kinds[0]}, 128 connections`, kinds, connections: 128 })),
    ...ALONE,
    STREAMS,
    {
      name: `${REPLIES.paced.events} events ${PACE} ms apart, 128 connections`,
      kinds: ['paced'],
      connections: 128,
      rounds: Math.min(7, ROUNDS),
    },
    { name: LONG, kinds: ['longPlain', 'longStreamed'], connections: 32 },
    // Last: the gateways stay.
    ...[2, 4].map((gateways): Workload => {
      return { name: `plain, 32 connections, ${gateways} gateways`, kinds: ['plain'], connections: 32, gateways };
    }),
  ],
};

const ROUTES = ['messages', 'translated', 'responses'] as const;
/**
 * Each route, and as many streams at the same time as a team of agents has. A stream that is cut, or costs another sum,
 * fails the run.
 */
const BY_ROUTE: ReadonlyArray<Workload> = [
  ...BUSY,
  ...ROUTES.flatMap((route): Workload[] => [
    { name: `${route}, 32 connections`, kinds: [route], connections: 32 },
    { name: `${route} streamed, 32 connections`, kinds: [`${route}Streamed`], connections: 32, added: ['first'] },
  ]),
  { name: 'embeddings, 32 connections', kinds: ['embeddings'], connections: 32 },
  {
    name: '512 streams at the same time',
    kinds: ['paced'],
    connections: 512,
    rounds: Math.min(3, ROUNDS),
    spread: 1000,
  },
];

/** Rounds on a new gateway that are not counted: it is compiled while it serves, and takes twice as long. */
const WARM_UP = 8;
/** The same before each workload. */
const WARM_UP_OF_WORKLOAD = 2;
const SECONDS = 1;
interface GatewayMeasurement {
  readonly name: string;
  readonly workload: Workload;
  readonly pairs: ReadonlyArray<Pair>;
}

/** Each route that spends, with the store in memory. */
export function benchRoutes(): Promise<string> {
  return benchGateway({ memory: BY_ROUTE, Redis: [] });
}

export async function benchGateway(all: typeof WORKLOADS = WORKLOADS): Promise<string> {
  const place = await startPlace();
  try {
    const measured: GatewayMeasurement[] = [];
    for (const store of place.stores) {
      const workloads = all[store].filter(({ name }) => `${name}, ${store}`.includes(BENCH_ONLY));
      if (workloads.length > 0) measured.push(...(await measureStore(place, store, workloads)));
    }
    return print(measured, place.stores, await place.checkLedger());
  } finally {
    await place.close();
  }
}

async function measureStore(
  place: Place,
  store: StoreName,
  workloads: ReadonlyArray<Workload>,
): Promise<GatewayMeasurement[]> {
  const gateways: Server[] = [];
  const measured: GatewayMeasurement[] = [];
  for (const workload of workloads) {
    while (gateways.length < (workload.gateways ?? 1)) {
      const gateway = await place.start(store);
      await alternate(place, [gateway], { ...WARMING, rounds: WARM_UP });
      gateways.push(gateway);
    }
    await alternate(place, gateways, { ...workload, rounds: WARM_UP_OF_WORKLOAD });
    measured.push({ name: `${workload.name}, ${store}`, workload, pairs: await alternate(place, gateways, workload) });
  }
  await place.stop(gateways);
  return measured;
}

const WARMING = { name: 'warm-up', kinds: ['plain', 'streamed'], connections: 32 } as const;

async function alternate(place: Place, gateways: ReadonlyArray<Server>, workload: Workload): Promise<Pair[]> {
  const { kinds, connections, seconds = SECONDS, spread = 0 } = workload;
  const order = { kinds, connections, seconds, spread };
  const pairs: Pair[] = [];
  while (pairs.length < (workload.rounds ?? ROUNDS)) {
    const bare = await place.measure([place.bare], order);
    pairs.push({ bare, gateway: await place.measure(gateways, order) });
  }
  return pairs;
}

function print(measured: ReadonlyArray<GatewayMeasurement>, stores: ReadonlyArray<StoreName>, ledger: string): string {
  const rates = measured.flatMap(({ name, workload: { kinds }, pairs }) =>
    ratesOf(name, kinds.length > 1 ? 0 : REPLIES[kinds[0] ?? 'plain'].events, pairs),
  );
  const added = measured.flatMap(({ name, workload, pairs }) =>
    (workload.added ?? []).map((until) => addedOf(name, until, pairs)),
  );
  const long = measured.find(({ workload }) => workload.name === LONG);
  return [
    `Gateway: ${ROUNDS} rounds of ${SECONDS} s each, in turn, after ${WARM_UP} on each new gateway and ${WARM_UP_OF_WORKLOAD} of each workload to warm up; medians, and ratios of neighbours; rounds in which the other core was full, or other programs took a tenth of the server's own, are dropped. ${
      pins
        ? 'The two in turn on one core; load, upstream, Redis and PostgreSQL on the other.'
        : 'Nothing is pinned to a core.'
    }`,
    table(RATES, rates),
    ...(added.length === 0
      ? []
      : [
          `Added latency; at p99 of all rounds together. With ${STREAMS.connections} connections, events come ${PACE} ms apart and streams start one after the other, so the core is mostly idle.`,
          table(ADDED, added),
        ]),
    ...(long === undefined ? [] : [perCore(long.pairs)]),
    ...(measured.some(({ workload }) => (workload.gateways ?? 1) > 1) ? [SEVERAL] : []),
    ledger,
    ...(stores.includes('Redis') ? [] : ['Redis as the store was skipped: there is no redis-server.']),
  ].join('\n\n');
}

/**
 * docs.litellm.ai/docs/benchmarks, read on 2026-10-12: prompts of 50,000 to 100,000 tokens, half streamed, budgets in
 * PostgreSQL and Redis, 33 Pods of 4 cores.
 */
const PUBLISHED = { requests: 3000, cores: 132 };

const perCore = (pairs: ReadonlyArray<Pair>): string =>
  `Bodies of 300 KB (75,000 tokens): ${ratePerCore(pairs).toFixed(0)} requests per second on the gateway's one core. LiteLLM publishes ${PUBLISHED.requests} on ${PUBLISHED.cores} cores with budgets on, ${(PUBLISHED.requests / PUBLISHED.cores).toFixed(0)} per core, on other machines.`;

const SEVERAL =
  'Several gateways share one core here, so requests per second do not grow with them: compare CPU per request (of all gateways), and CPU and calls of Redis.';
