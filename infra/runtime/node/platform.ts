// The platform of a Node process: time, randomness, hashes, timers.
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { createIds } from '#adapters/process/ids.ts';
import { processTimer } from '#adapters/process/timer.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Hash, Mac, ProcessMemory, Random } from '#core/ports/platform.ts';

/** The bytes of an idle gateway: its code, Node itself and a full cache of policies. */
const OWN = 128 * 1024 * 1024;

/** The memory limit of the container; undefined: none. */
export function processMemory(limit = process.constrainedMemory(), machine = totalmem()): ProcessMemory | undefined {
  return limit > 0 && limit < machine ? { limit, heap: getHeapStatistics().heap_size_limit, own: OWN } : undefined;
}

export type NodeDependencies = ReturnType<typeof nodeDependencies>;

export function nodeDependencies() {
  let loaded: typeof import('node:crypto') | undefined;
  /**
   * `node:crypto`, loaded for the first hash or id, which many cold starts do not need, and kept: `getBuiltinModule`
   * takes as long as a hash.
   */
  const crypto = () => {
    loaded ??= process.getBuiltinModule('node:crypto');
    return loaded;
  };
  const clock: Clock = { now: () => Date.now() };
  const random: Random = (count) => crypto().randomBytes(count);
  const hash: Hash = (text) => crypto().hash('sha256', text, 'hex');
  const mac: Mac = (secret, text) => crypto().createHmac('sha256', secret).update(text).digest('hex');
  return { clock, random, ids: createIds({ clock, random }), hash, mac, timer: processTimer };
}
