// What do functions get from a Worker: time, randomness, hashes, timers, the API server's address?
import { createHash } from 'node:crypto';
import { createIds } from '#adapters/ids.ts';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createFetchTransport } from '#adapters/kubernetes/fetch.ts';
import { createLog } from '#adapters/log.ts';
import type { Clock, Log } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import type { Random } from '#core/ports/platform.ts';
import type { NodeDependencies } from '../node.ts';

/** Bindings that every function has; secrets are set with `wrangler secret put`. */
export interface WorkerEnvironment {
  /** `https://…`, with a certificate that the platform trusts. */
  readonly API_SERVER: string;
  /** Token of the function's service account. */
  readonly API_TOKEN: string;
}

export function workerDependencies(): NodeDependencies {
  const clock: Clock = { now: () => Date.now() };
  const random: Random = (count) => crypto.getRandomValues(new Uint8Array(count));
  return {
    clock,
    random,
    ids: createIds({ clock, random }),
    hash: (text) => createHash('sha256').update(text).digest('hex'),
    timer: (millis, callback) => {
      const timer = setTimeout(callback, millis);
      return () => clearTimeout(timer);
    },
  };
}

export function workerLog(name: string): Log {
  return createLog({ write: (line) => console.log(line.trimEnd()), fields: { function: name } });
}

export function workerCluster({ API_SERVER: address, API_TOKEN: token }: WorkerEnvironment): Cluster {
  return createCluster({ request: createFetchTransport({ address, token, fetch: (...call) => fetch(...call) }) });
}
