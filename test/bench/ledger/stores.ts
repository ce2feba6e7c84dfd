// Cost of reservation and settle on each store, beside as many bare round trips.
import type { StoreConnection } from '#core/ports/backends.ts';
import { startRedis, whyNoRedis } from '../../support/redis.ts';
import { TOKEN } from '../../support/upstash.ts';
import { ask, forkPinned, next, pins } from '../pinned.ts';
import { watchRedis } from '../redis-watch.ts';
import { median, spread, table } from '../table.ts';
import type { SpendOrder, SpendResult } from './spender.ts';

const ROUNDS = 5;
const MILLIS = 800;
/** Warm-up requests: cold code is slower, and a busy machine takes longer to warm up. */
const WARM_UP_PAIRS = 12_000;

interface Round {
  readonly ledger: SpendResult;
  readonly bare: SpendResult;
  /** Microseconds of the server's CPU, for the ledger and for bare round trips; absent without a server. */
  readonly server: readonly [number, number] | undefined;
}

export async function benchStores(): Promise<string> {
  const rows = [...row('memory', await measure({ type: 'memory' }))];
  const missing = whyNoRedis();
  if (missing === undefined) rows.push(...(await measureServers()));
  const head = [
    'store',
    'what',
    'hold + settle/s',
    'from to',
    'ratio',
    'µs CPU each',
    'µs CPU of the server',
    'a call',
  ];
  const where = pins ? 'The ledger on one core, Redis and the front of Upstash on the other.' : 'Nothing is pinned.';
  const skipped = missing === undefined ? '' : `\n\nRedis and Upstash were skipped: ${missing}.`;
  return `Hold and settle, three scopes, 32 at a time: ${ROUNDS} rounds of ${MILLIS} ms, in turn with as many bare round trips; medians. ${where}\n\n${table(head, rows)}${skipped}`;
}

async function measureServers(): Promise<string[][]> {
  const server = await startRedis();
  const watch = await watchRedis(server);
  const front = forkPinned(1, ['ledger/upstash-front.ts'], [JSON.stringify(server.connection)]);
  try {
    const { url } = await next<{ url: string }>(front);
    const redis = row('Redis, TCP', await measure(server.connection, watch.cpu));
    return [...redis, ...row('Upstash, HTTP', await measure({ type: 'upstash', url, token: TOKEN }, watch.cpu))];
  } finally {
    front.kill('SIGKILL');
    watch.close();
    await server.stop();
  }
}

async function measure(connection: StoreConnection, cpuOfServer?: () => Promise<number>): Promise<Round[]> {
  const child = forkPinned(0, ['ledger/spender.ts'], [JSON.stringify(connection)]);
  try {
    await next(child);
    const rounds: Round[] = [];
    const order = async (order: SpendOrder): Promise<readonly [SpendResult, number]> => {
      const before = (await cpuOfServer?.()) ?? 0;
      const spent = await ask<SpendResult>(child, order);
      return [spent, ((await cpuOfServer?.()) ?? 0) - before];
    };
    for (let warmed = 0; rounds.length < ROUNDS; ) {
      const [ledger, used] = await order({ type: 'spend', millis: MILLIS });
      const abreast = Math.max(1, Math.round(ledger.abreast));
      const [bare, usedByBare] = await order({ type: 'travel', trips: ledger.trips, abreast });
      const server = cpuOfServer === undefined ? undefined : ([used, usedByBare] as const);
      if (warmed >= WARM_UP_PAIRS) rounds.push({ ledger, bare, server });
      warmed += ledger.pairs;
    }
    return rounds;
  } finally {
    child.kill('SIGKILL');
  }
}

function row(store: string, rounds: ReadonlyArray<Round>): string[][] {
  const row = (what: string, of: 'ledger' | 'bare', place: 0 | 1): string[] => {
    // The round trips are as many as the ledger's calls.
    const rates = rounds.map((round) => round.ledger.pairs / round[of].seconds);
    const ratio = median(rounds.map(({ ledger, bare }, at) => ((rates[at] ?? 0) * bare.seconds) / ledger.pairs));
    const server = rounds.map((round) => (round.server?.[place] ?? Number.NaN) / round.ledger.pairs);
    return [
      ...[store, what, median(rates).toFixed(0), spread(rates), `${ratio.toFixed(2)} ×`],
      median(rounds.map((round) => round[of].cpu / round.ledger.pairs)).toFixed(1),
      rounds[0]?.server === undefined ? '' : median(server).toFixed(1),
      median(rounds.map(({ ledger }) => ledger.pairs / ledger.trips)).toFixed(1),
    ];
  };
  const ledger = row('ledger', 'ledger', 0);
  // Memory has no round trip.
  return store === 'memory' ? [ledger.with(4, '')] : [row('bare round trips', 'bare', 1), ledger];
}
