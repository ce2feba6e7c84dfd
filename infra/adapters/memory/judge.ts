// May this hold be taken? The rules every store decides by, in the order in which they are asked (LEDGER 4, 5, 9).
import type { Millis, Nano } from '#core/ports/money.ts';
import type { HoldAnswer, HoldOperation } from '#core/ports/store.ts';
import type { CounterState } from './counters.ts';

/** `found` are the operation's counters, in order. */
export function judge(
  operation: HoldOperation,
  found: ReadonlyArray<CounterState | undefined>,
  now: Millis,
): HoldAnswer {
  const { counters, amount: asked, least: wanted } = operation;
  if (counters.some(({ window }) => now < window.start || window.end <= now)) return { outcome: 'window' };
  const absent = counters.flatMap((_, index) => (found[index] === undefined ? [index] : []));
  if (absent.length > 0) return { outcome: 'absent', counters: absent };
  const spentOf = (index: number): Nano => found[index]?.spent ?? 0n;
  const least = wanted < asked ? wanted : asked;
  // What spend has reached stays refused, also for what costs nothing.
  const exceeded = counters.findIndex(({ limit }, at) => spentOf(at) >= limit || limit - spentOf(at) < least);
  if (exceeded >= 0) return { outcome: 'exceeded', counter: exceeded, spent: spentOf(exceeded) };
  // Spend that leaves less than was asked clamps; all scopes give the same.
  let amount = asked;
  counters.forEach(({ limit }, at) => {
    const left = limit - spentOf(at);
    if (left < amount) amount = left;
  });
  // Holds of others are only in the way of what costs something.
  const isBusy = (limit: Nano, at: number): boolean => spentOf(at) + (found[at]?.held ?? 0n) + amount > limit;
  const busy = amount === 0n ? -1 : counters.findIndex(({ limit }, at) => isBusy(limit, at));
  return busy >= 0 ? { outcome: 'busy', counter: busy } : { outcome: 'held', amount };
}
