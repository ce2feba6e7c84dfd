// The files of one database in the archive: written, compared with PostgreSQL, and read back before a day is dropped.
import { setImmediate } from 'node:timers/promises';
import type { ArchivedDays, ArchivedFile, ArchiveLease } from '#adapters/postgres/archived-days.ts';
import { idAfter } from '#adapters/postgres/archived-rows.ts';
import type { DropCheck } from '#adapters/postgres/partitions.ts';
import {
  type Archive,
  type ArchivedRow,
  haveSameFigures,
  type RowFigures,
  type RowFormat,
} from '#core/ports/archive.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Log } from '#core/ports/telemetry.ts';

export interface FileSize {
  /** The maximum rows of a file. */
  readonly rows: number;
  /** The rows that are read together. */
  readonly portion: number;
  /** The bytes, compressed, after which a file ends. */
  readonly bytes: number;
  /** The maximum bytes of a row group, before compression. Between two row groups the event loop continues. */
  readonly groupBytes: number;
}

/** A portion has all rows of its last id, so up to two rows more: the charge of a closed account, and its correction. */
const MAX_FURTHER_ROWS = 2;

/** The time of one resync for the archive. */
export interface ArchiveTime {
  /** Whether no file is begun and no portion is read any more: the rest of the time is for writing what was read. */
  isReadingOver(): boolean;
  /** Aborts at the end of the time. */
  readonly signal: AbortSignal;
}

export interface ArchiveContext {
  readonly archive: Archive;
  readonly format: RowFormat;
  readonly days: ArchivedDays;
  readonly lease: ArchiveLease;
  readonly size: FileSize;
  readonly time: ArchiveTime;
  readonly log: Log;
}

/** Writes files, the oldest day first, until all are written or the time for reading is over. */
export async function writeFiles(context: ArchiveContext, now: () => Millis): Promise<void> {
  const { days, lease, time } = context;
  while (!time.isReadingOver()) {
    const file = await days.nextFile(lease, now());
    if (file === undefined) return;
    const isLeased = await (file.figures === undefined
      ? writeFile(context, file)
      : compareFile(context, file, file.figures));
    // A process that was suspended for long leaves the work to the reconciler that has the lease now.
    if (!isLeased) return;
  }
}

/** Rows of an old day may have come: the charges of closed accounts, corrections, an old journal. */
async function compareFile({ days, lease }: ArchiveContext, file: ArchivedFile, figures: RowFigures): Promise<boolean> {
  return haveSameFigures(await days.figures(file), figures)
    ? days.recordCompared(lease, file)
    : days.recordIncomplete(lease, file);
}

/**
 * Writes the rows of a file. If they are too many or too large, or the time for reading is over, the rest is another
 * file. A file that is there is only replaced by one with all of its rows: the rest is written first.
 */
async function writeFile(
  { archive, format, days, lease, size, time }: ArchiveContext,
  file: ArchivedFile,
): Promise<boolean> {
  const written = format.create();
  const figures = { rows: 0, cost: 0n, ids: 0n };
  let [end, isFull] = [file.from, false];
  while (end !== file.until && !isFull) {
    const count = Math.min(size.portion, size.rows - figures.rows - MAX_FURTHER_ROWS);
    if (count <= 0) break;
    const rows = await days.rows({ from: end, until: file.until }, count);
    let unwritten = rows.length;
    for (const group of toGroups(rows, size.groupBytes)) {
      written.add(group);
      for (const { id, cost } of group) {
        figures.rows += 1;
        figures.cost += cost;
        figures.ids += BigInt(Number.parseInt(id.slice(-8), 16));
        end = idAfter(id);
      }
      unwritten -= group.length;
      isFull = written.size() >= size.bytes || time.isReadingOver();
      if (isFull) break;
      await setImmediate();
    }
    if (unwritten === 0 && rows.length < count) end = file.until;
  }
  if (file.isWritten && end !== file.until) return days.recordSplit(lease, file, end);
  if (figures.rows > 0 || file.isWritten) await archive.write(pathOf(lease, file), written.finish(), time.signal);
  const isLeased = await days.recordWritten(lease, file, { end, figures });
  if (!isLeased) await days.recordOverwritten(lease, file);
  return isLeased;
}

/**
 * Rows in groups of at most `maxBytes`, or of one id: the rows of an id stay together. A reply of PostgreSQL has a
 * maximum size, but many rows may name the same long list of scopes, which is written for each of them.
 */
function* toGroups(rows: ReadonlyArray<ArchivedRow>, maxBytes: number): Generator<ReadonlyArray<ArchivedRow>> {
  const sizes = new Map<ArchivedRow['scopes'], number>();
  let [group, bytes] = [[] as ArchivedRow[], 0];
  for (const row of rows) {
    const ofScopes = sizes.get(row.scopes) ?? row.scopes.reduce((sum, scope) => sum + bytesOf(scope), 0);
    sizes.set(row.scopes, ofScopes);
    const own = bytesOf(row) + ofScopes;
    if (bytes + own > maxBytes && group.length > 0 && group.at(-1)?.id !== row.id) {
      yield group;
      [group, bytes] = [[], 0];
    }
    group.push(row);
    bytes += own;
  }
  if (group.length > 0) yield group;
}

/** The bytes of numbers and ids of a row or a scope. */
const FIXED_BYTES = 128;

/** The maximum bytes of a row without its scopes, or of a scope. */
function bytesOf(object: object): number {
  let bytes = FIXED_BYTES;
  for (const value of Object.values(object)) if (typeof value === 'string') bytes += 3 * value.length;
  return bytes;
}

/** Readers select days by their folders (Hive's form). A file has the name of its first possible id. */
const pathOf = ({ folder }: ArchiveLease, { day, from }: ArchivedFile): string =>
  `${folder}/day=${day}/${from}.parquet`;

/** A day is dropped only if its files, read back, have all its rows. */
export function checkOf(context: ArchiveContext): DropCheck {
  const { days, lease } = context;
  return {
    isReady: (day) => areReadBack(context, day),
    isComplete: (query, day) => days.hasAllRows(query, lease, day),
  };
}

/** Reads the files of a day that were not read back yet. If the time is over, the next resync continues. */
async function areReadBack(context: ArchiveContext, day: string): Promise<boolean> {
  const { archive, days, lease, time, log } = context;
  for (;;) {
    const file = await days.nextUnread(lease, day);
    if (file === undefined) return true;
    const { figures } = file;
    if (figures === undefined || time.isReadingOver()) return false;
    if (await hasRows(context, file, figures)) await days.recordReadBack(lease, file);
    else {
      log.warn('a file of the archive lacks ledger rows; it is written again, and its day stays in PostgreSQL', {
        archive: archive.url,
        file: pathOf(lease, file),
      });
      await days.recordIncomplete(lease, file);
      return false;
    }
  }
}

/** Whether the archive has the file with these rows. */
async function hasRows({ archive, format, lease, time }: ArchiveContext, file: ArchivedFile, figures: RowFigures) {
  if (figures.rows === 0) return true;
  const bytes = await archive.read(pathOf(lease, file), time.signal);
  if (bytes === undefined) return false;
  // A file that cannot be read has no rows.
  const found = await format.figuresOf(bytes).catch(() => undefined);
  return found !== undefined && haveSameFigures(found, figures);
}
