// How long may an answer take? The API server says so in `?timeout=`, and an answer after that is worth nothing.
import type { Timer } from '#core/ports/platform.ts';

/** What admission.k8s.io/v1 waits where nothing is said; nobody may wait longer than 30 s. */
const DEFAULT = 10_000;
const LONGEST = 30_000;
/** What API servers send. */
const SECONDS = /^([0-9]{1,9})s$/;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** Milliseconds of `?timeout=5s`, as Go writes durations. */
export function toTimeout(text: string | null): number {
  const seconds = SECONDS.exec(text ?? '')?.[1];
  if (seconds !== undefined) return Math.min(Math.max(Number(seconds) * 1000, 1), LONGEST);
  const parts = [...(text ?? '').matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m)/g)];
  const written = parts.map(([all]) => all).join('');
  if (parts.length === 0 || written !== text) return DEFAULT;
  const millis = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0), 0);
  return Math.min(Math.max(millis, 1), LONGEST);
}

export interface Countdown {
  /** Resolves when there is no more time: then what was found so far decides, if it refuses. The first call starts the timer. */
  readonly late: () => Promise<void>;
  /** Lets go of the timer. */
  readonly stop: () => void;
}

/** Ends a tenth (at least 100 ms, at most half) before the API server does, so that the answer still arrives. */
export function createCountdown(timer: Timer, timeout: () => number): Countdown {
  let stop = () => {};
  let late: Promise<void> | undefined;
  return {
    late: () => {
      late ??= new Promise((resolve) => {
        const millis = timeout();
        const reserve = Math.min(Math.max(millis / 10, 100), millis / 2);
        stop = timer(millis - reserve, resolve);
      });
      return late;
    },
    stop: () => stop(),
  };
}
