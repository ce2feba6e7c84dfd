// Chaos by seed: everything around the money is killed in random order, and the money is verified.
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { random } from '../../support/random.ts';
import { type Harness, startHarness } from './harness.ts';
import { recovered, startLoad } from './load.ts';
import { type Verification, verify } from './verify.ts';

export interface Chaos {
  readonly seed: number;
  readonly gateways: number;
  readonly millis: number;
}

const LIMITS = [10n ** 15n, 4_000_000n];

export interface ChaosResult extends Verification {
  readonly faults: ReadonlyArray<string>;
}

export async function causeChaos({ seed, gateways, millis }: Chaos): Promise<ChaosResult> {
  const harness = await startHarness(gateways, LIMITS);
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

/** Faults one after the other; a quarter of them right after the end of the previous one. */
async function strike(harness: Harness, next: () => number, millis: number): Promise<string[]> {
  const struck: string[] = [];
  for (const until = Date.now() + millis; Date.now() < until; ) {
    const [name, happen] = FAULTS[Math.floor(next() * FAULTS.length)] ?? FAULTS[0] ?? [];
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
