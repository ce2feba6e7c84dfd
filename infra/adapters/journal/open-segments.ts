// Open segments of a journal: each is synced every second while it has new data, and closed when nothing more is
// written to it.
import { open } from 'node:fs/promises';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';

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
  isUnsynced: boolean;
  /** A write failed half way: the next write starts with a line feed. */
  hasTornTail: boolean;
}

interface Dependencies {
  readonly folder: string;
  readonly log: Log | undefined;
  readonly metrics: Pick<Metrics, 'add'> | undefined;
  readonly timer: Timer;
  /** Called every second, before the files are synced. */
  readonly keepAlive: () => void;
}

const SYNC_EVERY = 1000;

export function createOpenSegments({ folder, log, metrics, timer, keepAlive }: Dependencies) {
  const openSegments = new Set<OpenSegment>();
  const retiredSegments = new Set<OpenSegment>();
  let running: Promise<void> | undefined;
  /** The reason why segments cannot be synced; logged once, not every second. */
  let lastFailure: string | undefined;
  let cancel = (): void => undefined;

  const sync = async (segment: OpenSegment): Promise<void> => {
    if (segment.isUnsynced) {
      segment.isUnsynced = false;
      try {
        await segment.file.datasync();
      } catch (error) {
        segment.isUnsynced = true;
        throw error;
      }
    }
    if (retiredSegments.delete(segment)) await close(segment);
  };
  const close = async (segment: OpenSegment): Promise<void> => {
    openSegments.delete(segment);
    await segment.file.close();
  };
  const isDue = (): boolean => [...openSegments].some((segment) => segment.isUnsynced || retiredSegments.has(segment));
  const syncAll = async (): Promise<void> => throwAll(await Promise.allSettled([...openSegments].map(sync)));

  const pass = async (): Promise<void> => {
    try {
      keepAlive();
      if (running !== undefined) throw new Error('the previous sync has not ended');
      if (isDue()) {
        running = syncAll().finally(() => {
          running = undefined;
        });
        await running;
      }
      if (lastFailure !== undefined) log?.info('the journal is synced again', { folder });
      lastFailure = undefined;
    } catch (error) {
      metrics?.add('gateway_operator_ledger_failures_total', { step: 'sync' });
      const why = reasonAndCausesOf(error);
      if (why !== lastFailure) log?.error(UNSYNCED, { folder, why });
      lastFailure = why;
    }
  };
  // The next pass is certain, whatever happens in this pass.
  const every = (): void => {
    cancel = timer(SYNC_EVERY, every);
    void pass();
  };
  cancel = timer(SYNC_EVERY, every);

  return {
    add: (segment: OpenSegment): void => void openSegments.add(segment),
    /**
     * Retires a segment, to which nothing more is written: the next pass closes it. `isCopied`: another segment on disk
     * has its data.
     */
    retire(segment: OpenSegment, isCopied: boolean): void {
      if (isCopied) segment.isUnsynced = false;
      retiredSegments.add(segment);
    },
    stop: (): void => cancel(),
    sync: syncAll,
    /** Closes all files, synced or not. */
    close: async (): Promise<void> => throwAll(await Promise.allSettled([...openSegments].map(close))),
  };
}

/** Throws the errors, if there are any. */
function throwAll(results: ReadonlyArray<PromiseSettledResult<unknown>>): void {
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, '');
}

const UNSYNCED =
  'the journal cannot be synced: a kill of the process loses nothing, but a power loss may lose everything since the last sync; check the disk';
