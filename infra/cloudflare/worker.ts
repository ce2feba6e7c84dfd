// What do functions get from a Worker: time, randomness, hashes, timers, the API server's address?
import { createHash } from 'node:crypto';
import { createIds } from '#adapters/ids.ts';
import { createCluster, type KubeTransport } from '#adapters/kubernetes/cluster.ts';
import { createFetchTransport } from '#adapters/kubernetes/fetch.ts';
import { createLog } from '#adapters/log.ts';
import type { Clock, Log } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import { MAX_TIMER, type Random } from '#core/ports/platform.ts';
import { reasonOf } from '#core/reason.ts';
import type { NodeDependencies } from '../node/platform.ts';

export function workerDependencies(): NodeDependencies {
  const clock: Clock = { now: () => Date.now() };
  const random: Random = (count) => crypto.getRandomValues(new Uint8Array(count));
  return {
    clock,
    random,
    ids: createIds({ clock, random }),
    hash: (text) => createHash('sha256').update(text).digest('hex'),
    timer: (millis, callback) => {
      const timer = setTimeout(callback, Math.min(millis, MAX_TIMER));
      return () => clearTimeout(timer);
    },
  };
}

export function workerLog(name: string): Log {
  return createLog({ write: (line) => console.log(line.trimEnd()), fields: { function: name } });
}

interface Api {
  readonly API_SERVER: string;
  readonly API_TOKEN: string;
}

function workerTransport({ API_SERVER: address, API_TOKEN: token }: Api): KubeTransport {
  return createFetchTransport({ address, token, fetch: (...call) => fetch(...call) });
}

export const workerCluster = (api: Api): Cluster => createCluster({ request: workerTransport(api) });

/** The answer, or 500: why is for the log, not for whoever asked. */
export async function orFail(name: string, answer: () => Promise<Response> | Response): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    workerLog(name).error('not answered', { why: reasonOf(error) });
    return new Response('see the log of this Worker', { status: 500 });
  }
}
