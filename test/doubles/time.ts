// Manual time: a clock that only the test moves, and a timer on that clock.
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export interface ManualTime {
  readonly clock: Clock;
  readonly timer: Timer;
  /** Runs every timer that is due within `millis`, in order, with all its consequences. */
  advance(millis: Millis): Promise<void>;
  /** A machine's sleep: the clock jumps, and timers that became due meanwhile fire once, late. */
  jump(millis: Millis): Promise<void>;
  /** Runs everything that needs no time. */
  settle(): Promise<void>;
  /** The number of timers that have neither fired nor been cancelled. */
  armed(): number;
}

export function createManualTime(start: Millis = Date.UTC(2026, 0, 1)): ManualTime {
  let now = start;
  let sequence = 0;
  const due = new Map<number, { readonly at: Millis; readonly callback: () => void }>();

  const next = (before: Millis): number | undefined => {
    let first: number | undefined;
    for (const [id, { at }] of due) {
      if (at <= before && (first === undefined || at < (due.get(first)?.at ?? at))) first = id;
    }
    return first;
  };

  /** A turn of the event loop: every promise that can proceed has done so. */
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  const advance = async (millis: Millis): Promise<void> => {
    const until = now + millis;
    await settle();
    for (let id = next(until); id !== undefined; id = next(until)) {
      const entry = due.get(id);
      due.delete(id);
      now = Math.max(now, entry?.at ?? now);
      entry?.callback();
      await settle();
    }
    now = Math.max(now, until);
  };

  return {
    clock: { now: () => now },
    timer(millis, callback) {
      const id = sequence++;
      due.set(id, { at: now + Math.max(0, millis), callback });
      return () => due.delete(id);
    },
    settle,
    armed: () => due.size,
    advance,
    jump(millis) {
      now += millis;
      return advance(0);
    },
  };
}
