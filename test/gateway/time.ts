// The time of a test, which the test sets.

export const NOW = Date.UTC(2026, 10, 21, 12);

/** A time that passes only by calls. */
export function createTime(start = NOW) {
  let now = start;
  const timers = new Set<{ at: number; callback: () => void }>();
  const tick = (millis: number) => {
    now += millis;
    for (const timer of [...timers].filter(({ at }) => at <= now)) {
      timers.delete(timer);
      timer.callback();
    }
  };
  return {
    now: () => now,
    timer: (millis: number, callback: () => void) => {
      const timer = { at: now + millis, callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    waiting: () => timers.size,
    /** Lets so long pass, and everything that was waiting for it happen. */
    pass: async (millis: number) => {
      tick(millis);
      await settleDown();
    },
    /** The same, and whoever waited continues later. */
    tick,
  };
}

/** Lets every promise that is ready continue. */
export async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
