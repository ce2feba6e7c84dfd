// Pauses between attempts: each is twice the one before, until an attempt succeeds.
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';

export interface BackOff {
  /** Calls `again` after the pause. Does nothing while an attempt is pending. */
  failed(again: () => void): void;
  succeeded(): void;
  /** Whether an attempt is scheduled. */
  isPending(): boolean;
  cancel(): void;
}

export function createBackOff(timer: Timer, first: Millis, max: Millis): BackOff {
  let pause = first;
  let cancelPending: (() => void) | undefined;
  return {
    failed(again) {
      if (cancelPending !== undefined) return;
      cancelPending = timer(pause, () => {
        cancelPending = undefined;
        again();
      });
      pause = Math.min(max, pause * 2);
    },
    succeeded() {
      pause = first;
    },
    isPending: () => cancelPending !== undefined,
    cancel() {
      cancelPending?.();
      cancelPending = undefined;
    },
  };
}
