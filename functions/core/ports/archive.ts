// The archive: a folder or a bucket for files of ledger rows, which then may leave PostgreSQL.
import type { LedgerRow } from './ledger-rows.ts';
import type { Nano } from './money.ts';
import type { ScopeId } from './policy.ts';

/** Paths are relative, with `/` between folders. Calls reject with what to check, or with the reason of the signal. */
export interface Archive {
  /** The address without secrets, such as `s3://bucket/prefix`. */
  readonly url: string;
  /** Writes a file whole or not at all, in place of one with this path. */
  write(path: string, bytes: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Reads a file; undefined: there is none. */
  read(path: string, signal: AbortSignal): Promise<Uint8Array | undefined>;
}

/** A scope of a ledger row. Only scopes that an alias claims have more than their id. */
export interface ArchivedScope {
  readonly id: ScopeId;
  readonly kind?: string;
  readonly alias?: string;
  /** The custom resource that has the alias. */
  readonly namespace?: string;
  readonly name?: string;
}

/** A ledger row as the archive has it. */
export interface ArchivedRow extends Omit<LedgerRow, 'scopeWindows'> {
  readonly instanceUid: string;
  /** `NAMESPACE/NAME` of the instance; empty if PostgreSQL no longer knows it. */
  readonly instance: string;
  readonly scopes: ReadonlyArray<ArchivedScope>;
}

/** Sums of a number of ledger rows. Two lists of rows with the same sums are the same list. */
export interface RowFigures {
  readonly rows: number;
  readonly cost: Nano;
  /** The sum of the last 32 bits of the ids, which are random. */
  readonly ids: bigint;
}

export const haveSameFigures = (one: RowFigures, other: RowFigures): boolean =>
  one.rows === other.rows && one.cost === other.cost && one.ids === other.ids;

/** A file of rows, which is written row group by row group: one group and the compressed file are in memory. */
export interface RowFile {
  /** Adds a row group. */
  add(rows: ReadonlyArray<ArchivedRow>): void;
  /** The bytes of the file so far, compressed. */
  size(): number;
  finish(): Uint8Array;
}

/** The format of the files. */
export interface RowFormat {
  create(): RowFile;
  /** Reads the figures of a file. Rejects if it is not a file of rows. */
  figuresOf(bytes: Uint8Array): Promise<RowFigures>;
}
