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
  if (operation.counters.some(({ window }) => now < window.start || window.end <= now)) return { outcome: 'window' };
  const absent = operation.counters.flatMap((_, index) => (found[index] === undefined ? [index] : []));
  if (absent.length > 0) return { outcome: 'absent', counters: absent };
  return judgeLoaded(
    operation,
    operation.counters.map(({ limit }, index) => ({ limit, spent: 0n, held: 0n, ...found[index] })),
  );
}

function judgeLoaded(
  { amount: asked, least: wanted }: HoldOperation,
  counters: ReadonlyArray<{ readonly limit: Nano; readonly spent: Nano; readonly held: Nano }>,
): HoldAnswer {
  const least = wanted < asked ? wanted : asked;
  // What spend has reached stays refused, also for what costs nothing.
  const exceeded = counters.findIndex(({ limit, spent }) => spent >= limit || limit - spent < least);
  if (exceeded >= 0) return { outcome: 'exceeded', counter: exceeded, spent: counters[exceeded]?.spent ?? 0n };
  // Spend that leaves less than was asked clamps; all scopes give the same.
  let amount = asked;
  for (const { limit, spent } of counters) if (limit - spent < amount) amount = limit - spent;
  // Holds of others are only in the way of what costs something.
  const busy = amount === 0n ? -1 : counters.findIndex(({ limit, spent, held }) => spent + held + amount > limit);
  if (busy >= 0) return { outcome: 'busy', counter: busy };
  return { outcome: 'held', amount };
}
