// A process that reserves and settles as fast as it can over one store, or makes bare round trips to the store as often.
import { randomUUID } from 'node:crypto';
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import { createRedisCounterStore, type Evaluate } from '#adapters/redis/counter-store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import { openUpstash } from '#adapters/redis/upstash.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { CounterStore } from '#core/ports/counter-store.ts';
import { EPOCHS, makeScope, NO_JOURNAL, requestOf, SETTLEMENT, SINK, SURROUNDINGS } from './measured.ts';

export type SpendOrder =
  | { readonly type: 'spend'; readonly millis: number }
  /** The number of bare round trips, and how many run concurrently. */
  | { readonly type: 'travel'; readonly trips: number; readonly abreast: number };

export interface SpendResult {
  /** The number of settled holds. */
  readonly pairs: number;
  readonly trips: number;
  /** Concurrent round trips, on average. */
  readonly abreast: number;
  readonly seconds: number;
  /** Microseconds of CPU in all. */
  readonly cpu: number;
}

const CLIENTS = 32;

async function serve(connection: StoreConnection): Promise<void> {
  const evaluate = evaluateOf(connection);
  const instanceUid = randomUUID();
  const { clock } = SURROUNDINGS;
  const isMemory = connection.type === 'memory';
  const { accounts, counted } = counting(
    isMemory ? createMemoryCounterStore({ clock, epoch: 0 }) : createRedisCounterStore({ evaluate, instanceUid }),
  );
  const own = { instanceUid, counterStore: accounts, epochs: EPOCHS, database: SINK, journal: NO_JOURNAL };
  const ledger = createLedger({ ...SURROUNDINGS, ...own, tick: (callback) => void setImmediate(callback) });
  await ledger.start();
  // As in a team: each user has a key, and all pay from one team.
  const [user, team] = [makeScope('user'), makeScope('team')];
  const requests = Array.from({ length: CLIENTS }, () => requestOf([makeScope('key'), user, team]));

  const spend = async (millis: number): Promise<number> => {
    const end = performance.now() + millis;
    let pairs = 0;
    const client = async (request: (typeof requests)[number]) => {
      while (performance.now() < end) {
        const reservation = await ledger.reserve(request);
        if (!reservation.ok) throw new Error(`refused: ${JSON.stringify(reservation.failure)}`);
        await ledger.settle(reservation.value, SETTLEMENT);
        pairs += 1;
      }
    };
    await Promise.all(requests.map(client));
    await ledger.flush();
    return pairs;
  };
  const travel = async (trips: number, abreast: number): Promise<void> => {
    let left = trips;
    const traveller = async () => {
      while (left > 0) {
        left -= 1;
        await evaluate("return 'here'", `{${instanceUid}}:meta`, []);
      }
    };
    await Promise.all(Array.from({ length: abreast }, traveller));
  };

  process.on('message', async (order: SpendOrder) => {
    const before = counted();
    const began = performance.now();
    const cpu = process.cpuUsage();
    const pairs = order.type === 'spend' ? await spend(order.millis) : await travel(order.trips, order.abreast);
    const { user: ours, system } = process.cpuUsage(cpu);
    const after = counted();
    const trips = after.trips - before.trips;
    const spent: SpendResult = {
      pairs: pairs ?? 0,
      trips,
      abreast: (after.abreast - before.abreast) / trips,
      seconds: (performance.now() - began) / 1000,
      cpu: ours + system,
    };
    process.send?.(spent);
  });
  process.send?.('ready');
}

/** Memory has no round trip: a resolved promise. */
function evaluateOf(connection: StoreConnection): Evaluate {
  if (connection.type === 'memory') return async () => undefined;
  return (connection.type === 'redis' ? openRedis(connection, SURROUNDINGS) : openUpstash(connection)).evaluate;
}

/** The store, and a count of its calls. */
function counting(accounts: CounterStore) {
  let [trips, abreast, underWay] = [0, 0, 0];
  const call: CounterStore['call'] = async (one) => {
    trips += 1;
    underWay += 1;
    abreast += underWay;
    try {
      return await accounts.call(one);
    } finally {
      underWay -= 1;
    }
  };
  return { accounts: { ...accounts, call }, counted: () => ({ trips, abreast }) };
}

process.on('disconnect', () => process.exit(0));
await serve(JSON.parse(process.argv[2] ?? ''));
