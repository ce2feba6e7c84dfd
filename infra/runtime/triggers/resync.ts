// Resyncs of the schedule: one each minute, and further ones while something is under way.
import { readReport } from './trigger.ts';

export interface ResyncDependencies {
  /** Runs one resync and returns its report. Rejects if the reconciler does not reply with 200. */
  readonly ask: () => Promise<string>;
  readonly now: () => number;
  readonly pause: (millis: number) => Promise<unknown>;
  /** Whether no further resync is needed after this report. Default: nothing is under way. */
  readonly isDone?: (report: string) => boolean;
}

/** Milliseconds between two resyncs. A gateway takes seconds to start. */
const PAUSE = 5_000;
/** Milliseconds until the next request if there was no reply: most likely the function is starting. */
const RETRY = 1_000;
/** Milliseconds in which further resyncs begin. After that, the resync of the next minute continues. */
const LAST = 50_000;

const isSettled = (report: string): boolean => !readReport(report).underWay;

/**
 * Returns the last report, or rejects with the last failure. A function that does not run yet (during an update or an
 * installation) gets another request.
 */
export async function resyncUntilDone({ ask, now, pause, isDone = isSettled }: ResyncDependencies): Promise<string> {
  const began = now();
  const isOver = () => now() - began >= LAST;
  for (;;) {
    try {
      const report = await ask();
      if (isOver() || isDone(report)) return report;
      await pause(PAUSE);
    } catch (error) {
      if (isOver()) throw error;
      await pause(RETRY);
    }
  }
}
