// The platform of a Node process: time, randomness, hashes, timers.
import { createIds } from '#adapters/ids.ts';
import type { Clock, Ids } from '#core/ports/clock.ts';
import { type Hash, MAX_TIMER, type Random, type Timer } from '#core/ports/platform.ts';

export interface NodeDependencies {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly hash: Hash;
  readonly random: Random;
  readonly timer: Timer;
}

export function nodeDependencies(): NodeDependencies {
  let loaded: typeof import('node:crypto') | undefined;
  /** Loaded when the first hash or id is made: many a cold start makes none before its first answer. Asking Node again takes as long as a hash. */
  const crypto = () => {
    loaded ??= process.getBuiltinModule('node:crypto');
    return loaded;
  };
  const clock: Clock = { now: () => Date.now() };
  const random: Random = (count) => crypto().randomBytes(count);
  return {
    clock,
    random,
    ids: createIds({ clock, random }),
    hash: (text) => crypto().hash('sha256', text, 'hex'),
    timer: (millis, callback) => {
      const timer = setTimeout(callback, Math.min(millis, MAX_TIMER));
      return () => clearTimeout(timer);
    },
  };
}
