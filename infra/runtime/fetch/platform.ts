// The platform of a fetch handler: time, randomness, hashes, timers, the API server's address.
import { createHash } from 'node:crypto';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createFetchTransport } from '#adapters/kubernetes/fetch.ts';
import { createLog } from '#adapters/telemetry/log.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import type { ProcessMemory } from '#core/ports/platform.ts';
import type { EndingMetrics, Log } from '#core/ports/telemetry.ts';
import { type NodeDependencies, nodeDependencies } from '../node/platform.ts';

/** Bindings and variables by name. */
export type Bindings = Readonly<Record<string, unknown>>;

/**
 * The context of a request on a platform that ends a process after its response, unless `waitUntil` gets the further
 * work.
 */
export interface Execution {
  waitUntil(work: Promise<unknown>): void;
}

/** Dependencies as on Node, but for the hash: Workers have no one-shot `hash`. */
export const workerDependencies = (): NodeDependencies => ({
  ...nodeDependencies(),
  hash: (text) => createHash('sha256').update(text).digest('hex'),
});

const MIB = 1024 * 1024;

/**
 * An isolate has 128 MB, and a body takes several times its size while it is read. The platform ends a request whose
 * client has left after 30 s, without a word.
 */
export const WORKER_MEMORY: ProcessMemory = {
  limit: 128 * MIB,
  own: 32 * MIB,
  largestBody: 8 * MIB,
  maxRequestTime: 60_000,
};

export function workerLog(name: string): Log {
  return createLog({ write: (line) => console.log(line.trimEnd()), fields: { function: name } });
}

/** Metrics that nobody can read: Workers serve none (DESIGN 7). */
export const NO_METRICS: EndingMetrics = { add() {}, set() {}, observe() {}, async retain() {} };

interface Api {
  readonly API_SERVER: string;
  readonly API_TOKEN: string;
}

export const workerCluster = ({ API_SERVER: address, API_TOKEN: token }: Api): Cluster =>
  createCluster({ request: createFetchTransport({ address, token, fetch: (...call) => fetch(...call) }) });

/** The response, or 500: the reason is in the log, not in the response. */
export async function orFail(name: string, respond: () => Promise<Response> | Response): Promise<Response> {
  try {
    return await respond();
  } catch (error) {
    workerLog(name).error('not answered', { why: reasonOf(error) });
    return new Response('see the log of this Worker', { status: 500 });
  }
}
