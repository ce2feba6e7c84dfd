// The measured gateways with everything on (key, budgets of key, user and team, journal, PostgreSQL), a bare
// pass-through, and their load.
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '#core/ports/cluster.ts';
import { resourceOf } from '../../../infra/packaging/manifests/apply.ts';
import { DEPLOYABLES, writeBundles } from '../../../infra/tools/build.ts';
import { withClaude } from '../../platforms/claude.ts';
import { mountSample } from '../../platforms/mounts.ts';
import { resyncOnce } from '../../platforms/node-process.ts';
import { startWorld, type TestWorld } from '../../platforms/world.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../support/redis.ts';
import { ask, type CoreTimes, cpuOf, forkPinned, next, pinSelf, printed, spawnPinned, timesOf } from '../pinned.ts';
import { watchRedis } from '../redis-watch.ts';
import type { UpstreamReport } from './fake-upstream.ts';
import type { Load, Order } from './load.ts';
import { type Kind, REPLIES } from './replies.ts';
import type { Round } from './rounds.ts';

export type StoreName = 'memory' | 'Redis';

export interface Server {
  readonly name: string;
  readonly process: ChildProcess;
  readonly port: number;
  readonly store?: StoreName;
}

export type Place = Awaited<ReturnType<typeof startPlace>>;

/** `preload`: a program that Node imports first into each server, and that answers on its message channel. */
export async function startPlace(preload?: string) {
  // Everything else that it starts, such as PostgreSQL, stays off their core.
  pinSelf(1);
  const imports = preload === undefined ? [] : ['--import', preload];
  const world = await startWorld();
  const redis = whyNoRedis() === undefined ? await startRedis() : undefined;
  const watch = redis === undefined ? undefined : await watchRedis(redis);
  const children: ChildProcess[] = [];
  const kept = (child: ChildProcess): ChildProcess => {
    children.push(child);
    return child;
  };
  const close = async (): Promise<void> => {
    for (const child of children) child.kill('SIGKILL');
    watch?.close();
    await redis?.stop();
    await world.stop();
  };
  try {
    const upstream = kept(forkPinned(1, ['gateway/fake-upstream.ts']));
    const base = `http://127.0.0.1:${(await next<{ port: number }>(upstream)).port}`;
    const { key, launch } = await makeGateways(world, base, redis);
    const proxy = kept(forkPinned(0, ['gateway/bare-proxy.ts', ...imports], [base]));
    const bare: Server = { name: 'bare', process: proxy, port: (await next<{ port: number }>(proxy)).port };
    const load = kept(forkPinned(1, ['gateway/load.ts']));
    const owed = { answers: 0, cost: 0n };

    /** A round of load on servers that share it. */
    const measure = async (servers: ReadonlyArray<Server>, order: Omit<Order, 'key' | 'ports'>): Promise<Round> => {
      const ofStore = servers[0]?.store === 'Redis' ? watch : undefined;
      const store = { cpu: (await ofStore?.cpu()) ?? Number.NaN, calls: (await ofStore?.calls()) ?? Number.NaN };
      const [before, own, other] = [cpuOfAll(servers), timesOf(0), timesOf(1)];
      const measured = await ask<Load>(load, { ...order, key, ports: servers.map(({ port }) => port) });
      const [after, ownAfter, otherAfter] = [cpuOfAll(servers), timesOf(0), timesOf(1)];
      const requests = measured.whole.length;
      if (Object.keys(measured.refused).length > 0) {
        throw new Error(`${servers[0]?.name} refused: ${JSON.stringify(measured.refused)}`);
      }
      if (!servers.includes(bare)) {
        owed.answers += requests;
        owed.cost += costOf(measured.answers);
      }
      return {
        ...measured,
        requests,
        cpu: ((after - before) * 1000) / requests,
        storeCpu: (((await ofStore?.cpu()) ?? Number.NaN) - store.cpu) / requests,
        storeCalls: ((((await ofStore?.calls()) ?? Number.NaN) - store.calls) * 1000) / requests,
        others: shareOf('busy', other, otherAfter),
        taken: shareOf('taken', own, ownAfter, after - before),
      };
    };

    return {
      world,
      redis,
      watch,
      bare,
      measure,
      close,
      stores: (redis === undefined ? ['memory'] : ['memory', 'Redis']) as ReadonlyArray<StoreName>,
      /** One more gateway process. */
      start: async (store: StoreName): Promise<Server> => {
        const child = kept(launch(store, imports));
        const url = await printed(child, /"message":"listening".*"url":"([^"]+)"/);
        return { name: 'gateway', process: child, port: Number(new URL(url).port), store };
      },
      /** Stops gateways, which books everything settled. */
      stop: async (gateways: ReadonlyArray<Server>): Promise<void> => void (await Promise.all(gateways.map(stop))),
      /** Call it when all gateways are stopped. */
      checkLedger: async (): Promise<string> => {
        const { requests } = await ask<UpstreamReport>(upstream, {});
        return `${await checkLedger(world, owed)}; the upstream saw ${requests} requests of both servers.`;
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * The sample through reconcile, and the files of its gateway. The key is alice's, whose user and team have budgets;
 * `copies`: further keys, of a budget each.
 */
export async function mountGateway(world: TestWorld, upstream: string, copies = 0) {
  await writeBundles(
    world.folder,
    DEPLOYABLES.filter(({ output }) => /^node\/(reconcile|gateway)/.test(output)),
  );
  const sample = withClaude(world.sample()).map(withLargeBudget);
  const names = Array.from({ length: copies }, (_, at) => `copy-${at}`);
  await world.apply([...sample, ...names.map((name) => copyOf(sample, name))]);
  const bundle = (name: string) => join(world.folder, `node/${name}.mjs`);
  await resyncOnce(bundle('reconcile'), { KUBECONFIG: world.kubeconfig, GATEWAY_PROCESSES: 'one' });
  const [key = '', ...others] = await Promise.all(['alice', ...names].map((name) => keyOf(world, name)));
  const mounts = await mountSample(world.cluster, join(world.folder, 'mounts'));
  for (const model of ['small', 'claude']) {
    writeFileSync(join(mounts.CREDENTIALS_DIR, `sample-model-${model}/apiBase`), `${upstream}/v1`);
  }
  return { key, others, mounts, bundle: bundle('gateway') };
}

async function keyOf(world: TestWorld, name: string): Promise<string> {
  const key = await world.cluster.get(resourceOf('VirtualKey'), 'default', name);
  const { keyValue } = (key?.status ?? {}) as { keyValue?: string };
  if (keyValue === undefined) throw new Error(`${name} has no key`);
  return keyValue;
}

/** The sample's own key under another name. */
function copyOf(sample: ReadonlyArray<KubeObject>, name: string): KubeObject {
  const key = sample.find(({ kind }) => kind === 'VirtualKey');
  const spec = { ...(key?.spec as object), keyAlias: name };
  return { ...key, metadata: { ...key?.metadata, name }, spec } as KubeObject;
}

/** Gateways on a core of their own. */
async function makeGateways(world: TestWorld, upstream: string, redis: TestRedis | undefined) {
  const { key, mounts, bundle } = await mountGateway(world, upstream);
  const stores = {
    memory: {},
    Redis: redis === undefined ? {} : { STORE_DIR: mountStore(join(world.folder, 'redis'), redis) },
  };
  const { BENCH_PROFILE } = process.env;
  const profile = BENCH_PROFILE === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${BENCH_PROFILE}`];
  let launched = 0;
  const launch = (store: StoreName, imports: ReadonlyArray<string>): ChildProcess => {
    launched += 1;
    const journal = join(mounts.JOURNAL_DIR, `${launched}`);
    mkdirSync(journal);
    const own = { HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', JOURNAL_DIR: journal };
    return spawnPinned(0, [...imports, ...profile, bundle], {
      environment: { ...mounts, ...stores[store], ...own },
      hasChannel: imports.length > 0,
    });
  };
  return { key, launch };
}

/** A thousand times the sample's budgets: a million requests and bodies of 300 KB cost more. */
function withLargeBudget(object: KubeObject): KubeObject {
  const spec = (object.spec ?? {}) as { readonly maxBudget?: string };
  return spec.maxBudget === undefined ? object : { ...object, spec: { ...spec, maxBudget: `${spec.maxBudget}000` } };
}

function mountStore(folder: string, { connection: { host, port, password } }: TestRedis): string {
  mkdirSync(folder);
  for (const [name, text] of Object.entries({ host, port, password })) writeFileSync(join(folder, name), `${text}`);
  return folder;
}

async function stop({ process }: Server): Promise<void> {
  const ended = new Promise<number | null>((resolve) => process.once('exit', resolve));
  process.kill('SIGTERM');
  if ((await ended) !== 0) throw new Error('the gateway did not stop cleanly');
}

/** Milliseconds of CPU of all; NaN where the system does not report them. */
function cpuOfAll(servers: ReadonlyArray<Server>): number {
  return servers.reduce((sum, { process }) => sum + (cpuOf(process) ?? Number.NaN), 0);
}

/**
 * Per cent of a core's time between two readings, without some milliseconds; NaN where the system does not report it.
 */
function shareOf(what: 'busy' | 'taken', before?: CoreTimes, after?: CoreTimes, without = 0): number {
  if (before === undefined || after === undefined) return Number.NaN;
  return Math.max(0, (100 * (after[what] - before[what] - without)) / (after.all - before.all));
}

/** The cost in nano-dollars at the sample's prices: $0.15 and $0.60 per million tokens. */
function costOf(answers: Load['answers']): bigint {
  return Object.entries(answers).reduce((sum, [kind, count]) => {
    const { prompt_tokens, completion_tokens } = REPLIES[kind as Kind].usage;
    return sum + BigInt(count) * (BigInt(prompt_tokens) * 150n + BigInt(completion_tokens) * 600n);
  }, 0n);
}

interface ExpectedCharge {
  readonly answers: number;
  readonly cost: bigint;
}

/** Compares ledger rows with the clients' answers, to the nano-dollar: a bench that loses money proves nothing. */
async function checkLedger({ postgres, database }: TestWorld, { answers, cost }: ExpectedCharge): Promise<string> {
  const [booked] = await postgres.query<{ rows: string; cost: string }>(
    database,
    'select count(*) as rows, coalesce(sum(cost), 0)::text as cost from gateway_operator.ledger_row',
  );
  if (Number(booked?.rows) !== answers || BigInt(booked?.cost ?? 0) !== cost) {
    throw new Error(`${answers} answers cost ${cost}, but ${booked?.rows} rows of ${booked?.cost} are booked`);
  }
  return `Booked: ${answers} ledger rows, ${cost} nano-dollars: as many as the answers of clients, at their cost`;
}
