// The journal on disk: append-only files, one write a tick, fsync every second; a compaction deletes dropped records
// (LEDGER 6).
import { fstatSync, mkdirSync, writeSync } from 'node:fs';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Journal, JournalRecord } from '#core/ports/journal.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';
import { createOpenLines, type Line } from './open-lines.ts';
import { createOpenSegments, type OpenSegment, openFile, type SegmentFile } from './open-segments.ts';
import { takeFolder } from './ownership.ts';
import { createPage, idOf } from './record.ts';
import { copyLines, listSegments, readSegment, removeSegments, segmentPath } from './segments.ts';

export interface JournalOptions {
  /** The folder, created if it is missing. `createJournal` throws `FolderInUse` while another process has it. */
  readonly folder: string;
  readonly log?: Log;
  /** Gets failures that no caller sees, in `gateway_operator_ledger_failures_total`. */
  readonly metrics?: Pick<Metrics, 'add'>;
  readonly timer?: Timer;
  /** The bytes of dropped records that stay on disk without a compaction. */
  readonly slack?: number;
  /** The write call; returns how many bytes it wrote. Default: Node's. */
  readonly write?: (descriptor: number, bytes: Uint8Array, from: number) => number;
  /** Opens a segment to append to it. Default: Node's. */
  readonly open?: (path: string) => Promise<SegmentFile>;
}

/** Appends that wait for the page's write: it succeeds for all of them, or for none. */
interface PageAppends {
  readonly ids: string[];
  /** The line of each id; its position is set by the write. */
  readonly lines: Line[];
  readonly written: PromiseWithResolvers<void>;
}

const SLACK = 4 * 1024 * 1024;
const MAX_SEGMENTS = 8;
/** The time after which a reply or a step of a stop no longer waits for the disk. */
const DISK_TIMEOUT = 2000;

export function createJournal({
  folder,
  log,
  metrics,
  timer = unrefTimer,
  slack = SLACK,
  write = writeSync,
  open = openFile,
}: JournalOptions): Journal {
  mkdirSync(folder, { recursive: true });
  const ownership = takeFolder(folder, log);
  const lines = createOpenLines();
  const page = createPage();
  /** Bytes per segment. Segments of earlier processes are known after `replay`. */
  const segments = new Map<number, number>();
  /** Bytes of all segments. */
  let size = 0;
  const inTime = <T>(work: Promise<T>) => withTimeout(timer, DISK_TIMEOUT, `the disk of ${folder}`, work);
  const earlierSegments = listSegments(folder);
  // The first append or the recovery reports it.
  earlierSegments.catch(() => undefined);
  let waiting: PageAppends | undefined;
  let draining: Promise<void> | undefined;
  let active: OpenSegment | undefined;
  let compacting: Promise<void> | undefined;
  let nextNumber: number | undefined;
  let isReplayed = false;
  let isClosed = false;
  /** Dropped bytes beyond which a compaction is tried. */
  let threshold = slack;
  const files = createOpenSegments({ folder, log, metrics, timer, keepAlive: ownership.keepAlive });

  const resize = (number: number, bytes: number): void => {
    size += bytes - (segments.get(number) ?? 0);
    segments.set(number, bytes);
  };

  const assertOwned = (): void => {
    const why = ownership.endReason();
    if (why !== undefined) throw new Error(why);
  };

  const activeSegment = async (): Promise<OpenSegment> => {
    assertOwned();
    if (active !== undefined) return active;
    nextNumber ??= ((await inTime(earlierSegments)).at(-1) ?? 0) + 1;
    const opening = open(segmentPath(folder, nextNumber));
    const file = await inTime(opening).catch((error) => {
      opening.then((late) => late.close()).catch(() => undefined);
      throw error;
    });
    active = { number: nextNumber, file, isUnsynced: false, hasTornTail: false };
    files.add(active);
    resize(nextNumber, 0);
    nextNumber += 1;
    return active;
  };

  /** Writes all appends since the last write with one call. */
  const drain = async (): Promise<void> => {
    while (waiting !== undefined) {
      const opened = active ?? (await activeSegment().catch((error: unknown) => ({ error })));
      const batch = waiting;
      waiting = undefined;
      try {
        if ('error' in opened) throw opened.error;
        writePage(opened, batch);
        batch.written.resolve();
      } catch (cause) {
        if (active !== undefined) active.hasTornTail = true;
        batch.written.reject(new Error(`writing the journal in ${folder}`, { cause }));
      }
      page.clear();
      compactWhenDue();
    }
    draining = undefined;
  };

  /**
   * A synchronous write: the page cache takes it within microseconds, and a thread pool would cost several times that.
   */
  const writePage = (to: OpenSegment, { ids, lines: written }: PageAppends): void => {
    assertOwned();
    // The length of a torn write is unknown until the file is asked.
    if (to.hasTornTail) resize(to.number, fstatSync(to.file.fd).size + 1);
    let end = segments.get(to.number) ?? 0;
    const bytes = page.bytes(to.hasTornTail);
    to.isUnsynced = true;
    for (let at = 0; at < bytes.length; ) at += write(to.file.fd, bytes, at);
    to.hasTornTail = false;
    written.forEach((line, index) => {
      line.segment = to.number;
      line.at = end;
      end += line.bytes;
      lines.add(ids[index] ?? '', line);
    });
    resize(to.number, end);
  };

  /**
   * Compacts: open records are copied to a new segment and the old segments removed; writes continue in the next
   * segment.
   */
  const compactWhenDue = (): void => {
    const droppedBytes = size - lines.bytes();
    const due = (droppedBytes > threshold && droppedBytes > lines.bytes()) || segments.size > MAX_SEGMENTS;
    if (!due || !isReplayed || isClosed || compacting !== undefined || active === undefined || !ownership.isOurs())
      return;
    const last = active;
    active = undefined;
    nextNumber = last.number + 2;
    compacting = compact(last)
      .then(
        () => {
          threshold = slack;
        },
        (error) => {
          threshold = droppedBytes + slack;
          metrics?.add('gateway_operator_ledger_failures_total', { step: 'compaction' });
          log?.warn('the journal could not be compacted', { folder, why: reasonAndCausesOf(error) });
        },
      )
      .finally(() => {
        compacting = undefined;
      });
  };

  const compact = async (last: OpenSegment): Promise<void> => {
    let isCopied = false;
    try {
      const target = last.number + 1;
      const bytes = await copyLines(folder, lines.upTo(last.number), target);
      isCopied = true;
      const old = [...segments.keys()].filter((number: number) => number <= last.number);
      if (bytes > 0) resize(target, bytes);
      await removeSegments(folder, old);
      for (const number of old) {
        resize(number, 0);
        segments.delete(number);
      }
    } finally {
      files.retire(last, isCopied);
    }
  };

  return {
    append(record) {
      const why = isClosed ? `the journal in ${folder} is closed` : ownership.endReason();
      if (why !== undefined) return Promise.reject(new Error(why));
      const bytes = page.add(record);
      waiting ??= { ids: [], lines: [], written: Promise.withResolvers<void>() };
      waiting.ids.push(idOf(record));
      waiting.lines.push({ segment: 0, at: 0, bytes, isProgress: record.type === 'progress' });
      draining ??= new Promise((tick) => setImmediate(tick)).then(drain);
      return waiting.written.promise;
    },

    async replay() {
      const records: JournalRecord[] = [];
      for (const number of await earlierSegments) {
        const content = await readSegment(folder, number);
        resize(number, content.bytes);
        if (content.damaged > 0) log?.error(DAMAGED, { file: segmentPath(folder, number), lines: content.damaged });
        for (const { line, record } of content.lines) {
          lines.add(idOf(record), line);
          records.push(record);
        }
      }
      isReplayed = true;
      return records;
    },

    drop(ids) {
      for (const id of ids) lines.drop(id);
    },

    discard() {
      if (isClosed) return;
      try {
        ownership.discard();
      } catch (error) {
        const why = reasonAndCausesOf(error);
        log?.error(UNDELETED, { folder, why });
      }
    },

    /** Closes all files and releases the folder, whatever fails; then rejects with the errors. */
    async close() {
      if (isClosed) return;
      isClosed = true;
      files.stop();
      const steps = new AsyncDisposableStack();
      steps.defer(ownership.release);
      steps.defer(async () => {
        if (isReplayed && lines.isEmpty() && ownership.isOurs()) await removeSegments(folder, [...segments.keys()]);
      });
      steps.defer(() => inTime(files.close()));
      steps.defer(() => inTime(Promise.all([draining, compacting]).then(files.sync)));
      await steps.disposeAsync();
    },
  };
}

const UNDELETED =
  'the discarded journal cannot be deleted: if the process is killed while it is there, its requests are charged less than they cost; check the disk';
const DAMAGED =
  'the journal has damaged lines, which were skipped: a reservation without its settlement is charged its whole amount, a request without any line is not charged';

const unrefTimer: Timer = (millis, callback) => {
  const timeout = setTimeout(callback, millis);
  timeout.unref();
  return () => clearTimeout(timeout);
};
