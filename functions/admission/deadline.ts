// The deadline of a review: the API server sends its timeout in `?timeout=`, and ignores a later answer.
import type { Timer } from '#core/ports/platform.ts';

/** The default of admission.k8s.io/v1; its maximum is 30 s. */
const DEFAULT = 10_000;
const MAX = 30_000;

/**
 * The milliseconds that a review may take: a tenth less than the API server waits (`5s`), so that the answer arrives in
 * time.
 */
export function toMillis(timeout: string | undefined): number {
  const [, seconds] = /^([1-9][0-9]?)s$/.exec(timeout ?? '') ?? [];
  return (Math.min(seconds === undefined ? DEFAULT : Number(seconds) * 1000, MAX) * 9) / 10;
}

const TOO_LATE = 'the review could not be answered in time';

/** A signal that aborts at the deadline. `stop` ends the timer. */
export function createDeadline(timer: Timer, timeout: string | undefined) {
  const controller = new AbortController();
  return { signal: controller.signal, stop: timer(toMillis(timeout), () => controller.abort(new Error(TOO_LATE))) };
}
