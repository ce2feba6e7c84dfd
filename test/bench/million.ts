// A million requests to one gateway and to the bare pass-through: memory, and stalls of their event loops.
import { join } from 'node:path';
import type { Stall, WatchedLoop, WatchOrder } from './gateway/event-loop-watch.ts';
import { type Place, type Server, startPlace } from './gateway/place.ts';
import { ask } from './pinned.ts';
import { table } from './table.ts';

const PARTS = 10;
/** Requests of each part. */
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? '1000000') / PARTS;
const LOAD = { kinds: ['plain', 'streamed'], connections: 32, seconds: 3600 } as const;
const MIB = 2 ** 20;
/** Milliseconds. */
const STALL = 20;
/** Stalls that are printed one by one. */
const MAX_STALLS = 20;

interface Part {
  readonly seconds: number;
  readonly cpu: number;
  readonly watched: WatchedLoop;
}

export async function benchMillion(): Promise<string> {
  const place = await startPlace(join(import.meta.dirname, 'gateway/event-loop-watch.ts'));
  try {
    const store = place.stores.at(-1) ?? 'memory';
    const gateway = await place.start(store);
    const parts: { readonly gateway: Part; readonly bare: Part }[] = [];
    while (parts.length < PARTS) {
      const bare = await serve(place, place.bare);
      parts.push({ bare, gateway: await serve(place, gateway) });
    }
    await place.stop([gateway]);
    const rows = parts.flatMap(({ gateway, bare }, at) => [row(at, 'gateway', gateway), row(at, 'bare', bare)]);
    const head = [
      ...['requests', 'server', 'requests/s', 'CPU, µs/request', 'RSS, MiB', 'heap, MiB', 'late at p99.9, ms'],
      ...['longest stall, ms', 'its own', 'longest garbage, ms', 'stalls > 20 ms', 'of its own'],
    ];
    return [
      `${(PARTS * REQUESTS).toLocaleString('en')} requests, half streamed, 32 connections, store ${store}: ${PARTS} parts of ${REQUESTS} requests, in turn with the bare pass-through. Memory at the end of each part; the heap is the least in use after a pause for garbage, so it grows until old garbage is collected. A stall is the lateness of a timer of 5 ms; more than ${STALL} ms without the time in which another process had the core are its own.`,
      table(head, rows),
      stallsOf(parts.map(({ gateway }) => gateway)),
      await place.checkLedger(),
    ].join('\n\n');
  } finally {
    await place.close();
  }
}

async function serve(place: Place, server: Server): Promise<Part> {
  await order(server, 'begin');
  const { seconds, cpu } = await place.measure([server], { ...LOAD, requests: REQUESTS });
  return { seconds, cpu, watched: await order<WatchedLoop>(server, 'tell') };
}

const order = <T>({ process }: Server, what: WatchOrder): Promise<T> => ask<T>(process, what);

function row(part: number, name: string, { seconds, cpu, watched }: Part): string[] {
  const own = watched.stalls.filter((stall) => ownOf(stall) > STALL);
  return [
    ...[`${(part + 1) * REQUESTS}`, name, (REQUESTS / seconds).toFixed(0), cpu.toFixed(0)],
    ...[watched.rss / MIB, watched.heap / MIB].map((mib) => mib.toFixed(0)),
    ...[watched.p999, watched.max, watched.maxOwn, watched.maxGarbage].map((millis) => millis.toFixed(1)),
    ...[`${watched.stalls.length}`, `${own.length}`],
  ];
}

const ownOf = ({ millis, waited }: Stall): number => millis - waited;

/** The stalls of the gateway with the most time of its own, and where the time went. */
function stallsOf(parts: ReadonlyArray<Part>): string {
  const stalls = parts.flatMap(({ watched }, at) => watched.stalls.map((stall) => ({ ...stall, part: at + 1 })));
  if (stalls.length === 0) return `No stall of the gateway above ${STALL} ms.`;
  const rows = stalls
    .sort((a, b) => ownOf(b) - ownOf(a))
    .slice(0, MAX_STALLS)
    .map(({ part, ...stall }) => {
      const { at, millis, waited, cpu, garbage } = stall;
      return [part, at, millis, ownOf(stall), waited, cpu, garbage].map((value) => value.toFixed(0));
    });
  const head = ['part', 'after, ms', 'stall, ms', 'its own', 'core taken by another', 'CPU of the process', 'garbage'];
  return `Stalls of the gateway above ${STALL} ms: ${stalls.length}. Those with the most time of their own:\n\n${table(head, rows)}`;
}
