// Attempts that are repeated while an installation starts: webhooks and gateways work a few seconds after their objects
// exist.

export interface RetryDependencies {
  readonly now: () => number;
  readonly pause: (millis: number) => Promise<unknown>;
}

/** Milliseconds until an installation must have started: images are pulled, and there is a resync each minute. */
const MAX_DURATION = 180_000;
const PAUSE = 1_000;

/** Resolves with the first success; rejects with the last failure when the time is over. */
export async function retry<T>(attempt: () => Promise<T>, { now, pause }: RetryDependencies): Promise<T> {
  for (const began = now(); ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (now() - began >= MAX_DURATION) throw error;
      await pause(PAUSE);
    }
  }
}
