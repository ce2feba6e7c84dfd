// The platform of a Node process: time, randomness, hashes, timers.
import { createIds } from '#adapters/ids.ts';
import type { Clock } from '#core/ports/clock.ts';
import { type Hash, MAX_TIMER, type Mac, type Random, type Timer } from '#core/ports/platform.ts';

export type NodeDependencies = ReturnType<typeof nodeDependencies>;

export function nodeDependencies() {
  let loaded: typeof import('node:crypto') | undefined;
  /** `node:crypto`, loaded for the first hash or id, which many cold starts do not need, and kept: `getBuiltinModule` takes as long as a hash. */
  const crypto = () => {
    loaded ??= process.getBuiltinModule('node:crypto');
    return loaded;
  };
  const clock: Clock = { now: () => Date.now() };
  const random: Random = (count) => crypto().randomBytes(count);
  const hash: Hash = (text) => crypto().hash('sha256', text, 'hex');
  const mac: Mac = (secret, text) => crypto().createHmac('sha256', secret).update(text).digest('hex');
  const timer: Timer = (millis, callback) => {
    const timeout = setTimeout(callback, Math.min(millis, MAX_TIMER));
    return () => clearTimeout(timeout);
  };
  return { clock, random, ids: createIds({ clock, random }), hash, mac, timer };
}
