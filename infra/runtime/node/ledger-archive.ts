// The archive of a reconciler on Node: after each resync, days that have ended are written, and old days are dropped.
import { parquet } from '#adapters/archive/parquet.ts';
import type { WorkMemory } from '#adapters/backends/reply-memory.ts';
import { createArchivedDays } from '#adapters/postgres/archived-days.ts';
import type { Database } from '#adapters/postgres/database.ts';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Archive } from '#core/ports/archive.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';
import { type ArchiveTime, checkOf, type FileSize, writeFiles } from './archive-day.ts';

/** The maximum time of a resync for the archive, all databases together. */
const MAX_TIME: Millis = 10_000;
/** The part of it in which rows are read. The rest is for writing them. */
const MAX_READING: Millis = 7_000;
/** The maximum time, after that, in which all databases count the days that wait. */
const MAX_COUNTING: Millis = 5_000;
/**
 * The factors of the time for reading: after a resync in which a file could not be written, and after any other resync.
 * So a slow bucket gets smaller files. A database that cannot be read does not change this time.
 */
const AFTER_FAILURE = 0.5;
const AFTER_SUCCESS = 1.1;
const MIN_READING: Millis = 500;
const MIB = 1024 * 1024;
const SIZE: FileSize = { rows: 250_000, portion: 2500, bytes: 64 * MIB, groupBytes: 8 * MIB };

export interface LedgerArchiveDependencies {
  readonly archive: Archive;
  /** RETAIN_DAYS. */
  readonly keptDays: number | 'forever';
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'set'>;
  /** Smaller in tests. */
  readonly size?: FileSize;
}

export type LedgerArchive = ReturnType<typeof createLedgerArchive>;

export function createLedgerArchive(deps: LedgerArchiveDependencies) {
  const { archive, keptDays, clock, log, metrics, size = SIZE } = deps;
  const touched = new Set<Database>();
  let running: Promise<void> | undefined;
  let turn = 0;
  let reading = MAX_READING;
  const stopping = new AbortController();
  let hasWriteFailed = false;
  const watched: Archive = {
    ...archive,
    write: async (...call) => {
      try {
        await archive.write(...call);
      } catch (error) {
        hasWriteFailed = true;
        throw error;
      }
    },
  };

  async function workOn(database: Database, time: ArchiveTime): Promise<void> {
    const within = database.withWorkMemory(endingWith(time.signal));
    const days = createArchivedDays(database.session.withWorkMemory(endingWith(time.signal)));
    const lease = await days.lease(archive.url);
    // Another reconciler archives this database at the moment.
    if (lease === undefined) return;
    const context = { archive: watched, format: parquet, days, lease, size, time, log };
    try {
      await writeFiles(context, clock.now);
      if (time.isReadingOver()) return;
      const dropped = await within.dropDays(keptDays, clock.now(), {
        check: checkOf(context),
        isOver: time.isReadingOver,
      });
      if (dropped.length > 0)
        log.info('days of ledger rows were dropped; sums of current windows stay', { days: dropped });
    } finally {
      // If PostgreSQL does not answer, the lease ends by itself.
      await createArchivedDays(database.session)
        .release(lease)
        .catch(() => undefined);
    }
  }

  async function workOnAll(): Promise<void> {
    const databases = [...touched];
    touched.clear();
    turn += 1;
    const time = beginTime(stopping.signal, reading);
    hasWriteFailed = false;
    // Each resync begins with another database: one with many rows does not keep the others waiting.
    for (const place of databases.keys()) {
      const database = databases[(turn + place) % databases.length];
      if (database === undefined || time.isReadingOver()) break;
      await workOn(database, time).catch((error) => {
        if (stopping.signal.aborted) return;
        log.warn('cannot write days of ledger rows to the archive; they stay in PostgreSQL', {
          archive: archive.url,
          why: reasonAndCausesOf(error),
        });
      });
    }
    const next = reading * (hasWriteFailed ? AFTER_FAILURE : AFTER_SUCCESS);
    reading = Math.min(Math.max(next, MIN_READING), MAX_READING);
    if (databases.length > 0) await countWaitingDays(databases);
  }

  async function countWaitingDays(databases: ReadonlyArray<Database>): Promise<void> {
    const memory = endingWith(AbortSignal.any([stopping.signal, AbortSignal.timeout(MAX_COUNTING)]));
    const counts = await Promise.allSettled(
      databases.map(({ session }) =>
        createArchivedDays(session.withWorkMemory(memory)).waitingDays(archive.url, clock.now()),
      ),
    );
    // While a database cannot be asked, the metric stays as it was.
    if (counts.some(({ status }) => status === 'rejected')) return;
    const waiting = counts.reduce((sum, count) => sum + (count.status === 'fulfilled' ? count.value : 0), 0);
    metrics.set('gateway_operator_archive_waiting_days', waiting);
  }

  const work = (): Promise<void> => {
    running ??= workOnAll()
      .catch((error) => log.error('the archive ended with an error (our error)', { why: reasonAndCausesOf(error) }))
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  return {
    /** Takes a database that a resync has used. */
    add: (database: Database): void => void touched.add(database),
    /** Writes the days of these databases, for at most 10 s. Never rejects. A second call waits for the first. */
    work,
    /** Ends the work in progress: a file is whole in the archive, or not there. */
    stop: async (): Promise<void> => {
      stopping.abort(new Error('the reconciler stops'));
      await running;
    },
  };
}

/** For work with databases that ends with the signal: a tenant's database decides how long a call takes. */
const endingWith = (signal: AbortSignal): WorkMemory => ({ take: () => undefined, signal });

function beginTime(stopping: AbortSignal, reading: Millis): ArchiveTime {
  const began = performance.now();
  return {
    isReadingOver: () => stopping.aborted || performance.now() - began > reading,
    signal: AbortSignal.any([stopping, AbortSignal.timeout(MAX_TIME)]),
  };
}
