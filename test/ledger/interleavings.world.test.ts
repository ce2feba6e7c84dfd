// Interleavings of two processes, one store and PostgreSQL: all orders in a small model, and a sample of them on a real Redis.
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRedisStore, type Evaluate } from '#adapters/redis/store.ts';
import { openRedis, type RedisConnection } from '#adapters/redis/tcp.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { createManualTime } from '../doubles/time.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../redis.ts';
import { next } from './model/next.ts';
import { type Adversity, type Edge, initial, keyOf, type State } from './model/state.ts';
import { isQuiet, verify } from './model/verdict.ts';
import { type StoreOfWalk, seenIn, walk } from './model/walk.ts';
import { createForgetfulStore } from './schedules/parts.ts';

interface Place {
  readonly state: State;
  readonly from: string | undefined;
  readonly edge: Edge | undefined;
}

/** All reachable states; throws with the whole history where one is wrong or has no next step. */
function explore(left: Adversity): Map<string, Place> {
  const start = initial(left);
  const places = new Map<string, Place>([[keyOf(start), { state: start, from: undefined, edge: undefined }]]);
  for (const [key, { state }] of places) {
    const edges = next(state);
    if (edges.length === 0 && !isQuiet(state)) throw new Error(`no step follows on\n${storyOf(places, key)}`);
    for (const edge of edges) {
      const to = keyOf(edge.to);
      const known = places.has(to);
      if (places.size > 2_000_000) throw new Error('there are more states than can be tried');
      if (!known) places.set(to, { state: edge.to, from: key, edge });
      const wrong = edge.wrong ?? (known ? undefined : verify(edge.to));
      if (wrong !== undefined) throw new Error(`${wrong}:\n${storyOf(places, key)}\n${edge.name}`);
    }
  }
  return places;
}

function pathTo(places: ReadonlyMap<string, Place>, key: string): Edge[] {
  const path: Edge[] = [];
  for (let at = places.get(key); at?.edge !== undefined; at = places.get(at.from ?? '')) path.unshift(at.edge);
  return path;
}
const storyOf = (places: ReadonlyMap<string, Place>, key: string): string =>
  pathTo(places, key)
    .map(({ name }) => name)
    .join('\n');

const missing = whyNoRedis();
const REQUEST_DEADLINE = 1_800_000;

const NOTHING: Adversity = { lost: 0, expired: 0, wiped: 0, slept: 0, restored: 0, died: 0 };
const USUAL: ReadonlyArray<Partial<Adversity>> = [
  { lost: 2 },
  { lost: 1, expired: 1 },
  { lost: 1, wiped: 1 },
  { expired: 1, wiped: 1 },
  { wiped: 1, slept: 1 },
  { restored: 1 },
  { died: 1, wiped: 1 },
  { died: 1, expired: 1 },
];
/** Sizes that only FAULT_STATES=all tries: some minutes, and gigabytes. */
const LARGE: ReadonlyArray<Partial<Adversity>> = [
  { died: 1, wiped: 1, expired: 1 },
  { died: 1, restored: 1 },
];
const TRIED = process.env.FAULT_STATES === 'all' ? [...USUAL, ...LARGE] : USUAL;

const memory = async (): Promise<StoreOfWalk> => {
  const { clock, advance } = createManualTime();
  const { store, ...forgetful } = createForgetfulStore(clock.now);
  let saved = 0;
  return {
    ...{ store, now: clock.now, advance, wipe: async () => forgetful.wipe() },
    async save() {
      saved = forgetful.steps();
    },
    async restore() {
      if (forgetful.steps() > saved) forgetful.restore(forgetful.steps() - saved);
    },
  };
};

describe(`the model, and the real store in memory and in Redis${missing === undefined ? '' : ` (not in Redis: ${missing})`}`, () => {
  let server: TestRedis;
  let client: RedisConnection;
  let raw: Redis;
  beforeAll(async () => {
    if (missing !== undefined) return;
    server = await startRedis();
    client = openRedis(server.connection, { log: createMemoryLog() });
    raw = new Redis({ host: server.connection.host, port: server.connection.port, protocol: 2 });
  });
  afterAll(async () => {
    raw?.disconnect();
    await client?.close();
    await server?.stop();
  });

  /** The script with a clock that the test sets, and a snapshot of its keys as Redis would write them. */
  const redis = async (): Promise<StoreOfWalk> => {
    const instanceUid = randomUUID();
    let now = Date.UTC(2026, 0, 1);
    let saved: ReadonlyArray<readonly [string, Buffer]> = [];
    const keys = (): Promise<string[]> => raw.keys(`{${instanceUid}}:*`);
    const drop = async (): Promise<void> => {
      for (const key of await keys()) await raw.del(key);
    };
    const evaluate: Evaluate = (script, key, words) => {
      const set = script.replace("redis.call('TIME')", '{ ARGV[#ARGV - 1], ARGV[#ARGV] }');
      if (set === script) throw new Error('the script does not call TIME as expected');
      return client.evaluate(set, key, [...words, `${Math.floor(now / 1000)}`, `${(now % 1000) * 1000}`]);
    };
    return {
      ...{ store: createRedisStore({ evaluate, instanceUid }), now: () => now, wipe: drop },
      async advance(millis) {
        now += millis;
      },
      async save() {
        saved = await Promise.all((await keys()).map(async (key) => [key, await raw.dumpBuffer(key)] as const));
      },
      async restore() {
        await drop();
        for (const [key, bytes] of saved) await raw.restore(key, 0, bytes);
      },
    };
  };

  test.each(TRIED)(
    'in any order (%o) no limit is exceeded, nothing is charged twice or lost, no request is refused without cause, and all headroom returns',
    async (left) => {
      const places = explore({ ...NOTHING, ...left });
      const quiet = [...places.values()].filter(({ state }) => isQuiet(state));
      expect(quiet.length).toBeGreaterThan(10);
      await goTheSameWay(places, memory, 200);
      if (missing === undefined) await goTheSameWay(places, redis, 40);
    },
    REQUEST_DEADLINE,
  );
});

/** Leads the real store to a sample of all states, and compares it with the model there. */
async function goTheSameWay(
  places: ReadonlyMap<string, Place>,
  make: () => Promise<StoreOfWalk>,
  count: number,
): Promise<void> {
  const keys = [...places.keys()];
  const every = Math.max(1, Math.floor(keys.length / count));
  for (let at = 0; at < keys.length; at += every) {
    const key = keys[at] ?? '';
    const real = walk(await make());
    await real.follow(pathTo(places, key)).catch((error) => {
      throw new Error(`${error.message}:\n${storyOf(places, key)}`);
    });
    const { state } = places.get(key) ?? {};
    if (state !== undefined && state.store.epoch > 0)
      expect([storyOf(places, key), await real.see()]).toEqual([storyOf(places, key), seenIn(state)]);
  }
}
