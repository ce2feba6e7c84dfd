// What do clients see of one fault alone? Before, while it lasts, and until it works again by itself.
import { setTimeout as pause } from 'node:timers/promises';
import type { Bed, Key, StoreOfBed } from './bed.ts';
import { ask, recovered, type Seen } from './load.ts';
import { command } from './storm.ts';

export interface FaultApart {
  readonly name: string;
  /** With which store it can happen. */
  readonly stores: ReadonlyArray<StoreOfBed>;
  /** Milliseconds. */
  readonly lasts: number;
  /** Where nobody can know what is left of a budget, a request that needs to must be told so. */
  readonly refuses: boolean;
  /** Answers how it ends, and what was asked for on the way. */
  begin(bed: Bed): Promise<{ end(): unknown; readonly seen?: ReadonlyArray<Seen> }>;
}

const BOTH = ['memory', 'redis'] as const;
const ALL = ['memory', 'redis', 'upstash'] as const;
/** A policy is trusted for five seconds: with PostgreSQL away for longer nobody knows any key. */
const LONGER_THAN_POLICIES = 6500;

export const APART: ReadonlyArray<FaultApart> = [
  {
    ...{ name: 'kill -9 of the gateway', stores: BOTH, lasts: 500, refuses: false },
    async begin({ gateways }) {
      await gateways[0]?.kill();
      return { end: () => gateways[0]?.start() };
    },
  },
  {
    ...{ name: 'kill -9 of PostgreSQL', stores: ALL, lasts: LONGER_THAN_POLICIES, refuses: true },
    async begin({ postgres }) {
      await postgres.kill();
      return { end: postgres.start };
    },
  },
  {
    ...{ name: 'a PostgreSQL that is frozen', stores: ALL, lasts: 2500, refuses: true },
    begin: async ({ postgres }) => ({ end: postgres.freeze() }),
  },
  {
    ...{ name: 'kill -9 of Redis, which comes back empty', stores: ['redis'], lasts: 1500, refuses: true },
    async begin({ redis }) {
      await redis.kill();
      redis.lose();
      return { end: redis.start };
    },
  },
  {
    ...{ name: 'a Redis that was wiped', stores: ['redis'], lasts: 500, refuses: false },
    async begin(bed) {
      await command(bed, 'FLUSHALL');
      return { end: () => undefined };
    },
  },
  {
    ...{
      name: 'kill -9 of Redis, which comes back with an old snapshot',
      stores: ['redis'],
      lasts: 500,
      refuses: false,
    },
    async begin(bed) {
      await command(bed, 'SAVE');
      const [gateway] = bed.gateways;
      const [key] = bed.keys;
      // What the snapshot does not have.
      const forgotten = gateway === undefined || key === undefined ? [] : [await ask(gateway.url, key, true)];
      await bed.redis.kill();
      return { end: bed.redis.start, seen: forgotten };
    },
  },
  {
    ...{
      name: 'a Redis that is frozen, and then runs late calls',
      stores: ['redis', 'upstash'],
      lasts: 3000,
      refuses: true,
    },
    begin: async ({ redis }) => ({ end: redis.freeze() }),
  },
];

const BETWEEN = 150;

export interface Lived {
  /** All of it, for the judge. */
  readonly seen: ReadonlyArray<Seen>;
  /** What was answered while it lasted. */
  readonly meanwhile: ReadonlyArray<Seen>;
}

/** `fresh` was never asked for before: no process knows anything of it. */
export async function liveThrough(bed: Bed, fault: FaultApart, fresh: Key): Promise<Lived> {
  const [known = fresh] = bed.keys;
  const before = await recovered(bed, [known]);
  const { end, seen: onTheWay = [] } = await fault.begin(bed);
  const asked: Promise<Seen>[] = [];
  for (const until = Date.now() + fault.lasts; Date.now() < until; await pause(BETWEEN)) {
    const isStream = asked.length % 4 < 2;
    for (const { url } of bed.gateways) asked.push(ask(url, known, isStream), ask(url, fresh, isStream));
  }
  await end();
  const meanwhile = await Promise.all(asked);
  const after = await recovered(bed, [known, fresh]);
  return { meanwhile, seen: [...before, ...onTheWay, ...meanwhile, ...after] };
}
