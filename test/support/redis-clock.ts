// The script of accounts with a clock that a test sets, so leases of hours end without waiting.
import type { Evaluate } from '#adapters/redis/counter-store.ts';
import type { Millis } from '#core/ports/money.ts';

export function underClock(evaluate: Evaluate, now: () => Millis): Evaluate {
  return (script, key, args) => {
    const set = script.replace("redis.call('TIME')", '{ ARGV[3], ARGV[4] }');
    if (set === script) throw new Error('the script reads no clock');
    return evaluate(set, key, [...args, `${Math.floor(now() / 1000)}`, `${(now() % 1000) * 1000}`]);
  };
}
