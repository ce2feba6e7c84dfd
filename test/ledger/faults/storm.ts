// Does money stay right whatever is killed, in whatever order? A storm by seed, and what is wrong after it.
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { random } from '../../random.ts';
import { type Aftermath, judge } from './aftermath.ts';
import { type Bed, makeBed } from './bed.ts';
import { recovered, startLoad } from './load.ts';

export interface Storm {
  readonly seed: number;
  readonly gateways: number;
  readonly millis: number;
}

const LIMITS = [10n ** 15n, 4_000_000n];

export interface Weathered extends Aftermath {
  readonly faults: ReadonlyArray<string>;
}

export async function weather({ seed, gateways, millis }: Storm): Promise<Weathered> {
  const bed = await makeBed(gateways, LIMITS);
  try {
    const load = startLoad(bed, 12);
    await pause(500);
    const faults = await strike(bed, random(seed), millis);
    const after = await recovered(bed, bed.keys.slice(0, 1));
    const seen = [...(await load.end()), ...after];
    return { faults, ...(await judge(bed, seen)) };
  } finally {
    await bed.stop();
  }
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

/** Said to the Redis itself. */
export async function command({ redis }: Bed, ...words: [string, ...string[]]): Promise<unknown> {
  const { host, port } = redis.connection;
  const client = new Redis({ host, port, protocol: 2 });
  client.on('error', () => undefined);
  return client.call(...words).finally(() => client.disconnect());
}
