// The rules by which every store takes a hold, in the order in which they are asked (LEDGER 3, 9).
import type { Millis, Nano } from '#core/ports/money.ts';
import type { Counter, HoldAnswer, HoldOperation } from '#core/ports/store.ts';
import type { CounterState } from './counters.ts';

type Found = ReadonlyArray<CounterState | undefined>;

/** `found` are the operation's counters, in order. */
export function decide(operation: HoldOperation, found: Found, now: Millis): HoldAnswer {
  const { counters, amount: asked, minAmount: wanted } = operation;
  for (const { window } of counters) if (now < window.start || window.end <= now) return { outcome: 'window' };
  if (found.includes(undefined)) return { outcome: 'absent', counters: absentIn(found) };
  const minAmount = wanted < asked ? wanted : asked;
  let amount = asked;
  for (let at = 0; at < counters.length; at += 1) {
    const spent = found[at]?.spent ?? 0n;
    const left = (counters[at]?.limit ?? 0n) - spent;
    // A limit that spend has reached refuses, also for requests that cost nothing.
    if (left <= 0n || left < minAmount) return { outcome: 'exceeded', counter: at, spent };
    // Spend that leaves less than was asked clamps; all scopes give the same.
    if (left < amount) amount = left;
  }
  const busy = amount === 0n ? -1 : busyIn(counters, found, amount);
  return busy >= 0 ? { outcome: 'busy', counter: busy } : { outcome: 'held', amount };
}

/** Holds of others are only in the way of what costs something. */
function busyIn(counters: ReadonlyArray<Counter>, found: Found, amount: Nano): number {
  for (let at = 0; at < counters.length; at += 1) {
    const { spent = 0n, held = 0n } = found[at] ?? {};
    if (held > 0n && spent + held + amount > (counters[at]?.limit ?? 0n)) return at;
  }
  return -1;
}

const absentIn = (found: Found): number[] => found.flatMap((counter, index) => (counter === undefined ? [index] : []));
