// Cost of the gateway, with key, budgets of key, user and team, outbox and PostgreSQL, against a bare pass-through.
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { resourceOf } from '../../infra/manifests/apply.ts';
import { DEPLOYABLES, writeBundles } from '../../infra/tools/build.ts';
import { mountSample } from '../platforms/mounts.ts';
import { sweepOnce } from '../platforms/node-process.ts';
import { startWorld, type TestWorld } from '../platforms/world.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../redis.ts';
import type { Reported } from './fake-upstream.ts';
import type { Load, Order } from './load.ts';
import { ask, busyOf, type Core, cpuOf, forkPinned, next, pinSelf, pins, printed, spawnPinned } from './pinned.ts';
import { type CpuWatch, watchCpu } from './redis-cpu.ts';
import { EVENTS_OF, type Kind, USAGE_OF } from './replies.ts';
import { type Round, report } from './rounds.ts';
import { table } from './table.ts';

const SECONDS = 1;
/** Warm-up rounds: a gateway that has just started is compiled while it serves, and takes twice as long. */
const WARM_UP = 8;
const BUSY: ReadonlyArray<Workload> = [
  { name: 'plain, 32 connections', kind: 'plain', connections: 32 },
  { name: 'streamed, 32 connections', kind: 'streamed', connections: 32 },
];
const WORKLOADS: Readonly<Record<StoreName, ReadonlyArray<Workload>>> = {
  memory: [
    ...BUSY,
    // Not first: the first few thousand requests measure the compiler.
    { name: 'plain, 1 connection', kind: 'plain', connections: 1 },
    { name: `${EVENTS_OF.paced} events 20 ms apart, 128 connections`, kind: 'paced', connections: 128 },
  ],
  // More connections keep the core busy: its capacity.
  Redis: [...BUSY, ...BUSY.map(({ kind }) => ({ name: `${kind}, 128 connections`, kind, connections: 128 }))],
};
/** Options for profiling: workloads with these words in their names, fewer rounds, a folder for profiles of the gateway. */
const { BENCH_ONLY = '', BENCH_ROUNDS = '15', BENCH_PROFILE } = process.env;
const ROUNDS = Number(BENCH_ROUNDS);

type StoreName = 'memory' | 'Redis';

interface Workload {
  readonly name: string;
  readonly kind: Kind;
  readonly connections: number;
}

interface Server {
  readonly name: string;
  readonly process: ChildProcess;
  readonly port: number;
}

export async function benchGateway(): Promise<string> {
  // Everything else that it starts, such as PostgreSQL, stays off their core.
  pinSelf(1);
  const world = await startWorld();
  const redis = whyNoRedis() === undefined ? await startRedis() : undefined;
  const watch = redis === undefined ? undefined : await watchCpu(redis);
  const children: ChildProcess[] = [];
  const forked = (core: Core, program: string, args: ReadonlyArray<string> = []) => {
    const child = forkPinned(core, program, args);
    children.push(child);
    return child;
  };
  try {
    const upstream = forked(1, 'fake-upstream.ts');
    const base = `http://127.0.0.1:${(await next<{ port: number }>(upstream)).port}`;
    const { key, start } = await makeGateway(world, base);
    const proxy = forked(0, 'bare-proxy.ts', [base]);
    const bare = { name: 'bare', process: proxy, port: (await next<{ port: number }>(proxy)).port };
    const load = forked(1, 'load.ts');
    const rows: string[][] = [];
    const passed: Owed = { answers: 0, cost: 0n };
    const measureOn = async (store: StoreName): Promise<void> => {
      const gateway = await start(store === 'memory' ? undefined : redis);
      children.push(gateway.process);
      for (const workload of WORKLOADS[store].filter(({ name }) => `${name}, ${store}`.includes(BENCH_ONLY))) {
        const of = (server: Server) => ({ ...workload, port: server.port, key, seconds: SECONDS });
        const rounds: [Round[], Round[]] = [[], []];
        for (let round = -WARM_UP; round < ROUNDS; round += 1) {
          const alone = await measure(load, bare, of(bare), undefined);
          const measured = await measure(load, gateway, of(gateway), store === 'Redis' ? watch : undefined);
          passed.answers += measured.requests;
          passed.cost += BigInt(measured.requests) * costOf(workload.kind);
          if (round < 0) continue;
          rounds[0].push(alone);
          rounds[1].push(measured);
        }
        rows.push(...report(`${workload.name}, ${store}`, EVENTS_OF[workload.kind], rounds));
      }
      await stop(gateway);
    };
    await measureOn('memory');
    if (redis !== undefined) await measureOn('Redis');
    const sane = await checkBooks(world, passed);
    const reported = await ask<Reported>(upstream, {});
    const head = [
      'workload',
      'server',
      'requests/s',
      'ratio',
      'from to',
      'p50, ms',
      'CPU, µs/request',
      'µs/event',
      'ratio',
      'from to',
      'Redis, µs',
      'other core, %',
      'rounds',
    ];
    const skipped = redis === undefined ? `\n\nRedis as the store was skipped: ${whyNoRedis()}.` : '';
    return `Gateway: ${ROUNDS} rounds of ${SECONDS} s each, in turn, after ${WARM_UP} of each to warm up; medians, and ratios of neighbours; rounds in which the other core was full are dropped. ${
      pins
        ? 'The two in turn on one core; load, upstream, Redis and PostgreSQL on the other.'
        : 'Nothing is pinned to a core.'
    }\n\n${table(head, rows)}\n\n${sane}; the upstream saw ${reported.requests} requests of both servers.${skipped}`;
  } finally {
    for (const child of children) child.kill('SIGKILL');
    watch?.close();
    await redis?.stop();
    await world.stop();
  }
}

/** Stops the gateway, which books everything settled. */
async function stop({ process }: Server): Promise<void> {
  const ended = new Promise<number | null>((resolve) => process.once('exit', resolve));
  process.kill('SIGTERM');
  if ((await ended) !== 0) throw new Error('the gateway did not stop cleanly');
}

/** The sample through reconcile, and its gateway from mounted files. The key is alice's, whose user and team have budgets. */
async function makeGateway(world: TestWorld, upstream: string) {
  await writeBundles(
    world.folder,
    DEPLOYABLES.filter(({ output }) => /^node\/(reconcile|gateway)/.test(output)),
  );
  await world.apply(world.sample());
  const bundle = (name: string) => join(world.folder, `node/${name}.mjs`);
  await sweepOnce(bundle('reconcile'), { KUBECONFIG: world.kubeconfig, GATEWAY_PROCESSES: 'one' });
  const alice = await world.cluster.get(resourceOf('VirtualKey'), 'default', 'alice');
  const { keyValue } = (alice?.status ?? {}) as { keyValue?: string };
  if (keyValue === undefined) throw new Error('alice has no key');
  const mounts = await mountSample(world.cluster, join(world.folder, 'mounts'));
  writeFileSync(join(mounts.CREDENTIALS_DIR, 'sample-model-small/apiBase'), `${upstream}/v1`);
  const start = async (redis?: TestRedis): Promise<Server> => {
    const store = redis === undefined ? {} : { STORE_DIR: mountStore(join(world.folder, 'redis'), redis) };
    const environment = { HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', ...mounts, ...store };
    const profile = BENCH_PROFILE === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${BENCH_PROFILE}`];
    const process = spawnPinned(0, [...profile, bundle('gateway')], environment);
    const url = await printed(process, /"message":"listening".*"url":"([^"]+)"/);
    return { name: 'gateway', process, port: Number(new URL(url).port) };
  };
  return { key: keyValue, start };
}

function mountStore(folder: string, { connection: { host, port, password } }: TestRedis): string {
  mkdirSync(folder);
  for (const [name, text] of Object.entries({ host, port, password })) writeFileSync(join(folder, name), `${text}`);
  return folder;
}

async function measure(load: ChildProcess, server: Server, order: Order, watch: CpuWatch | undefined): Promise<Round> {
  const storeBefore = await watch?.cpu();
  const before = cpuOf(server.process);
  const busyBefore = busyOf(1);
  const measured = await ask<Load>(load, order);
  const busyAfter = busyOf(1);
  const after = cpuOf(server.process);
  if (Object.keys(measured.refused).length > 0) {
    throw new Error(`${server.name} refused: ${JSON.stringify(measured.refused)}`);
  }
  const cpu = before === undefined || after === undefined ? undefined : ((after - before) * 1000) / measured.requests;
  const storeAfter = await watch?.cpu();
  const ofStore = storeBefore === undefined || storeAfter === undefined ? undefined : storeAfter - storeBefore;
  return {
    ...measured,
    cpu,
    storeCpu: ofStore === undefined ? undefined : ofStore / measured.requests,
    others:
      busyBefore === undefined || busyAfter === undefined
        ? undefined
        : (100 * (busyAfter.busy - busyBefore.busy)) / (busyAfter.all - busyBefore.all),
  };
}

interface Owed {
  answers: number;
  cost: bigint;
}

/** The cost in nano-dollars at the sample's prices: $0.15 and $0.60 per million tokens. */
function costOf(kind: Kind): bigint {
  const { prompt_tokens, completion_tokens } = USAGE_OF[kind];
  return BigInt(prompt_tokens) * 150n + BigInt(completion_tokens) * 600n;
}

/** Compares booked entries with the clients' answers, to the nano-dollar: a bench that loses money proves nothing. */
async function checkBooks({ postgres, database }: TestWorld, { answers, cost }: Owed): Promise<string> {
  const [booked] = await postgres.query<{ entries: string; cost: string }>(
    database,
    'select count(*) as entries, coalesce(sum(cost), 0)::text as cost from gateway_operator.entry',
  );
  if (Number(booked?.entries) !== answers || BigInt(booked?.cost ?? 0) !== cost) {
    throw new Error(`${answers} answers cost ${cost}, but ${booked?.entries} entries of ${booked?.cost} are booked`);
  }
  return `Booked: ${answers} entries, ${cost} nano-dollars: as many as the answers of clients, at their cost`;
}
