// Single faults as clients see them: before, meanwhile, and until requests are served again.
import { setTimeout as pause } from 'node:timers/promises';
import { beginMove, command } from './chaos.ts';
import type { Harness, Key, StoreKind } from './harness.ts';
import { ask, type ClientReply, recovered } from './load.ts';

export interface SingleFault {
  readonly name: string;
  /** The store with which the fault can happen. */
  readonly stores: ReadonlyArray<StoreKind>;
  /** The duration in milliseconds. */
  readonly lasts: number;
  /** Whether a request of an unloaded budget must get 503 meanwhile, because its remainder is unknown. */
  readonly refuses: boolean;
  /** Starts the fault; returns a function that ends it, and the requests sent on the way. */
  begin(harness: Harness): Promise<{ end(): unknown; readonly seen?: ReadonlyArray<ClientReply> }>;
}

const BOTH = ['memory', 'redis'] as const;
const REPLICATED = ['sentinel', 'cluster'] as const;
const ALL = ['memory', 'redis', 'upstash'] as const;
/** A policy is cached for five seconds: with PostgreSQL away for longer, no key is known. */
const LONGER_THAN_POLICIES = 6500;

export const SINGLE_FAULTS: ReadonlyArray<SingleFault> = [
  {
    name: 'kill -9 of the gateway',
    stores: BOTH,
    lasts: 500,
    refuses: false,
    async begin({ gateways }) {
      await gateways[0]?.kill();
      return { end: () => gateways[0]?.start() };
    },
  },
  {
    name: 'kill -9 of PostgreSQL',
    stores: ALL,
    lasts: LONGER_THAN_POLICIES,
    refuses: true,
    async begin({ postgres }) {
      await postgres.kill();
      return { end: postgres.start };
    },
  },
  {
    name: 'a PostgreSQL that is frozen',
    stores: ALL,
    lasts: 2500,
    refuses: true,
    begin: async ({ postgres }) => ({ end: postgres.freeze() }),
  },
  {
    name: 'kill -9 of Redis, which comes back empty',
    stores: ['redis'],
    lasts: 1500,
    refuses: true,
    async begin({ redis }) {
      await redis.kill();
      redis.lose();
      return { end: redis.start };
    },
  },
  {
    name: 'a Redis that was wiped',
    stores: ['redis'],
    lasts: 500,
    refuses: false,
    async begin(harness) {
      await command(harness, 'FLUSHALL');
      return { end: () => undefined };
    },
  },
  {
    name: 'kill -9 of Redis, which comes back with an old snapshot',
    stores: ['redis'],
    lasts: 500,
    refuses: false,
    async begin(harness) {
      await command(harness, 'SAVE');
      const [gateway] = harness.gateways;
      const [key] = harness.keys;
      // Ledger rows that the snapshot does not have.
      const forgotten = gateway === undefined || key === undefined ? [] : [await ask(gateway.url, key, true)];
      await harness.redis.kill();
      return { end: harness.redis.start, seen: forgotten };
    },
  },
  {
    name: 'a Redis that is frozen, and then runs late calls',
    stores: ['redis', 'upstash'],
    lasts: 3000,
    refuses: true,
    begin: async ({ redis }) => ({ end: redis.freeze() }),
  },
  {
    name: 'kill -9 of the primary, whose replica takes over',
    stores: REPLICATED,
    lasts: 1500,
    refuses: true,
    async begin({ sentinel, cluster }) {
      const isOver = (sentinel ?? cluster)?.failOver();
      return { end: () => isOver };
    },
  },
  {
    name: 'kill -9 of the primary, whose replica takes over with an old state',
    stores: REPLICATED,
    lasts: 1500,
    refuses: true,
    async begin({ sentinel, cluster, gateways: [gateway], keys: [key] }) {
      const forgotten: ClientReply[] = [];
      let isKilled = () => {};
      const killed = new Promise<void>((resolve) => {
        isKilled = resolve;
      });
      const isOver = (sentinel ?? cluster)?.failOverToLateReplica(async () => {
        if (gateway !== undefined && key !== undefined) forgotten.push(await ask(gateway.url, key, true));
        isKilled();
      });
      await killed;
      return { end: () => isOver, seen: forgotten };
    },
  },
  {
    name: 'a slot that moves to another node of the Cluster',
    stores: ['cluster'],
    lasts: 2500,
    refuses: true,
    begin: async (harness) => ({ end: await beginMove(harness, 3) }),
  },
];

const BETWEEN = 150;

export interface Observation {
  /** All requests, for the verification. */
  readonly seen: ReadonlyArray<ClientReply>;
  /** The replies during the fault. */
  readonly meanwhile: ReadonlyArray<ClientReply>;
}

/** `fresh` is a key without earlier requests: no process has it cached. */
export async function observeFault(harness: Harness, fault: SingleFault, fresh: Key): Promise<Observation> {
  const [known = fresh] = harness.keys;
  const before = await recovered(harness, [known]);
  const { end, seen: onTheWay = [] } = await fault.begin(harness);
  const asked: Promise<ClientReply>[] = [];
  for (const until = Date.now() + fault.lasts; Date.now() < until; await pause(BETWEEN)) {
    const isStream = asked.length % 4 < 2;
    for (const { url } of harness.gateways) asked.push(ask(url, known, isStream), ask(url, fresh, isStream));
  }
  await end();
  const meanwhile = await Promise.all(asked);
  const after = await recovered(harness, [known, fresh]);
  return { meanwhile, seen: [...before, ...onTheWay, ...meanwhile, ...after] };
}
