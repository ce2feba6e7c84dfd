// Open segments of a journal: each is synced every second while it has new data, and closed when nothing more is
// written to it.
import { open } from 'node:fs/promises';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Log, Metrics } from '#core/ports/clock.ts';
import type { Timer } from '#core/ports/platform.ts';

/** The calls of a file that a journal needs. */
export interface SegmentFile {
  readonly fd: number;
  datasync(): Promise<void>;
  close(): Promise<void>;
}

export const openFile = (path: string): Promise<SegmentFile> => open(path, 'a');

export interface OpenSegment {
  readonly number: number;
  readonly file: SegmentFile;
  /** Whether a power loss would lose data of the segment. */
  unsynced: boolean;
  /** A write failed half way: the next write starts with a line feed. */
  torn: boolean;
}

interface Dependencies {
  readonly folder: string;
  readonly log: Log | undefined;
  readonly metrics: Pick<Metrics, 'add'> | undefined;
  readonly timer: Timer;
  /** Called every second, before the files are synced. */
  readonly keep: () => void;
}

const SYNC_EVERY = 1000;

export function createOpenSegments({ folder, log, metrics, timer, keep }: Dependencies) {
  const opened = new Set<OpenSegment>();
  const retired = new Set<OpenSegment>();
  let running: Promise<void> | undefined;
  /** The reason why segments cannot be synced; logged once, not every second. */
  let trouble: string | undefined;
  let cancel = (): void => undefined;

  const sync = async (segment: OpenSegment): Promise<void> => {
    if (segment.unsynced) {
      segment.unsynced = false;
      try {
        await segment.file.datasync();
      } catch (error) {
        segment.unsynced = true;
        throw error;
      }
    }
    if (retired.delete(segment)) await close(segment);
  };
  const close = async (segment: OpenSegment): Promise<void> => {
    opened.delete(segment);
    await segment.file.close();
  };
  const isDue = (): boolean => [...opened].some((segment) => segment.unsynced || retired.has(segment));
  const syncAll = async (): Promise<void> => throwAll(await Promise.allSettled([...opened].map(sync)));

  const pass = async (): Promise<void> => {
    try {
      keep();
      if (running !== undefined) throw new Error('the sync before this one has not ended');
      if (isDue()) {
        running = syncAll().finally(() => {
          running = undefined;
        });
        await running;
      }
      if (trouble !== undefined) log?.info('the journal is synced again', { folder });
      trouble = undefined;
    } catch (error) {
      metrics?.add('gateway_operator_ledger_failures_total', { step: 'sync' });
      const why = reasonAndCausesOf(error);
      if (why !== trouble) log?.error(UNSYNCED, { folder, why });
      trouble = why;
    }
  };
  // The next pass is certain whatever becomes of this one.
  const every = (): void => {
    cancel = timer(SYNC_EVERY, every);
    void pass();
  };
  cancel = timer(SYNC_EVERY, every);

  return {
    add: (segment: OpenSegment): void => void opened.add(segment),
    /**
     * Retires a segment, to which nothing more is written: the next pass closes it. `isCopied`: its data are on disk
     * elsewhere.
     */
    retire(segment: OpenSegment, isCopied: boolean): void {
      if (isCopied) segment.unsynced = false;
      retired.add(segment);
    },
    stop: (): void => cancel(),
    sync: syncAll,
    /** Closes all files, synced or not. */
    close: async (): Promise<void> => throwAll(await Promise.allSettled([...opened].map(close))),
  };
}

/** Throws the errors, if there are any. */
function throwAll(results: ReadonlyArray<PromiseSettledResult<unknown>>): void {
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, '');
}

const UNSYNCED =
  'the journal cannot be synced: kills of the process lose nothing, a power loss may cost everything since the last sync; look at the disk';
