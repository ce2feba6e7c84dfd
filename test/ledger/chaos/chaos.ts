// Chaos by seed: everything around the money is killed in random order, and the money is verified.
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.ts';
import { random } from '../../support/random.ts';
import { type Harness, type Servers, startHarness } from './harness.ts';
import { recovered, startLoad } from './load.ts';
import { type Verification, verify } from './verify.ts';

export interface Chaos {
  readonly seed: number;
  readonly gateways: number;
  readonly millis: number;
  /** Absent: one Redis and one PostgreSQL. */
  readonly servers?: Servers;
}

const LIMITS = [10n ** 15n, 4_000_000n];

export interface ChaosResult extends Verification {
  readonly faults: ReadonlyArray<string>;
}

export async function causeChaos({ seed, gateways, millis, servers = {} }: Chaos): Promise<ChaosResult> {
  const harness = await startHarness(gateways, LIMITS, servers);
  try {
    const load = startLoad(harness, 12);
    await pause(500);
    const faults = await strike(harness, random(seed), millis);
    const after = await recovered(harness, harness.keys.slice(0, 1));
    const seen = [...(await load.end()), ...after];
    return { faults, ...(await verify(harness, seen)) };
  } finally {
    await harness.stop();
  }
}

type Fault = readonly [name: string, happen: (harness: Harness, next: () => number) => Promise<void>];

const OF_ALL: ReadonlyArray<Fault> = [
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
];

const OF_REDIS: ReadonlyArray<Fault> = [
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
    async (harness, next) => {
      await command(harness, 'SAVE');
      await pause(200 + next() * 600);
      await harness.redis.kill();
      await pause(next() * 300);
      await harness.redis.start();
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

const OF_REPLICAS: ReadonlyArray<Fault> = [
  ['a replica takes over', ({ sentinel, cluster }) => (sentinel ?? cluster)?.failOver() ?? Promise.resolve()],
  [
    'a replica takes over with an old state',
    async ({ sentinel, cluster }, next) => {
      await (sentinel ?? cluster)?.failOverToLateReplica(() => pause(200 + next() * 600));
    },
  ],
  [
    'a replica takes over while a gateway is killed',
    async ({ sentinel, cluster, gateways }, next) => {
      const gateway = gateways[Math.floor(next() * gateways.length)];
      await Promise.all([gateway?.kill(), (sentinel ?? cluster)?.failOver()]);
      await gateway?.start();
    },
  ],
];

const OF_SLOTS: ReadonlyArray<Fault> = [
  [
    'the slot of the instance moves',
    async (harness, next) => {
      const end = await beginMove(harness, Math.floor(next() * 8));
      await pause(next() * 2000);
      await end();
    },
  ],
];

const PROMOTION: Fault = [
  'a standby of PostgreSQL takes over',
  ({ replicated }) => replicated?.failOver() ?? Promise.resolve(),
];
/** As often as all that Redis does. */
const OF_STANDBYS = [PROMOTION, PROMOTION, PROMOTION, PROMOTION];

/** Begins to move the slot of the instance with so many of its Redis keys; returns a function that ends the move. */
export async function beginMove({ cluster, instanceUid, counterStore }: Harness, keys: number) {
  const move = await cluster?.beginMove(instanceUid);
  await move?.moveKeys(keys);
  return async () => {
    await move?.end();
    // The connection of the harness follows with its next call.
    const isFollowing = () => counterStore.accounts(false, 1).then(Boolean, () => false);
    await eventually(isFollowing, Boolean);
  };
}

const FAULTS = {
  redis: [...OF_ALL, ...OF_REDIS],
  sentinel: [...OF_ALL, ...OF_REPLICAS],
  cluster: [...OF_ALL, ...OF_REPLICAS, ...OF_SLOTS, ...OF_SLOTS],
  memory: OF_ALL,
  upstash: OF_ALL,
};

/** Faults one after the other; a quarter of them right after the end of the previous one. */
export async function strike(harness: Harness, next: () => number, millis: number): Promise<string[]> {
  const struck: string[] = [];
  const faults = [...FAULTS[harness.kind], ...(harness.replicated === undefined ? [] : OF_STANDBYS)];
  for (const until = Date.now() + millis; Date.now() < until; ) {
    const [name, happen] = faults[Math.floor(next() * faults.length)] ?? [];
    if (name === undefined || happen === undefined) break;
    struck.push(name);
    await happen(harness, next);
    await pause(next() < 0.25 ? 0 : 300 + next() * 1200);
  }
  return struck;
}

/** Sends a command to Redis itself. */
export async function command({ redis }: Harness, ...words: [string, ...string[]]): Promise<unknown> {
  const { host, port } = redis.connection;
  const client = new Redis({ host, port, protocol: 2 });
  client.on('error', () => undefined);
  return client.call(...words).finally(() => client.disconnect());
}
