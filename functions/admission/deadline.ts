// How long may an answer take? The API server says so in `?timeout=`, and an answer after that is worth nothing.
import type { Timer } from '#core/ports/platform.ts';

/** What admission.k8s.io/v1 waits where nothing is said; nobody may wait longer than 30 s. */
const DEFAULT = 10_000;
const LONGEST = 30_000;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** Milliseconds of `?timeout=5s`, as Go writes durations. */
export function toTimeout(text: string | null): number {
  const parts = [...(text ?? '').matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m)/g)];
  const written = parts.map(([all]) => all).join('');
  if (parts.length === 0 || written !== text) return DEFAULT;
  const millis = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0), 0);
  return Math.min(Math.max(millis, 1), LONGEST);
}

export interface Countdown {
  readonly late: Promise<'late'>;
  /** Lets go of the timer. */
  readonly stop: () => void;
}

/** Ends a tenth (at least 100 ms, at most half) before the API server does, so that the answer still arrives. */
export function startCountdown(timer: Timer, timeout: number): Countdown {
  const reserve = Math.min(Math.max(timeout / 10, 100), timeout / 2);
  let stop = () => {};
  const late = new Promise<'late'>((resolve) => {
    stop = timer(timeout - reserve, () => resolve('late'));
  });
  return { late, stop };
}
