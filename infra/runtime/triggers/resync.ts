// Resyncs of the schedule: reconcile is asked to look everywhere, again while something is under way.
import { readReport } from './trigger.ts';

export interface ResyncDependencies {
  /** One resync; its report. Rejects when reconcile does not answer well. */
  readonly ask: () => Promise<string>;
  readonly now: () => number;
  readonly pause: (millis: number) => Promise<unknown>;
  /** Whether a report leaves nothing to ask again for. Default: nothing is under way. */
  readonly isDone?: (report: string) => boolean;
}

/** Milliseconds between two resyncs. A gateway takes seconds to start. */
const PAUSE = 5_000;
/** Milliseconds until a function is asked again that did not answer: it is being started, most likely. */
const RETRY = 1_000;
/** Milliseconds for which further resyncs are begun: then the next minute's run continues. */
const LAST = 50_000;

const isQuiet = (report: string): boolean => !readReport(report).underWay;

/**
 * Answers the last report, or rejects with the last failure. A function that is not there yet (an update, an
 * installation) is asked again.
 */
export async function resyncUntilDone({ ask, now, pause, isDone = isQuiet }: ResyncDependencies): Promise<string> {
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
