// The outbox: an append-only file of what a process promised, which outlives it (LEDGER 6).
import type { Entry } from './books.ts';
import type { Nano } from './money.ts';
import type { ScopeWindow } from './policy.ts';

export type OutboxRecord =
  /** Written before the upstream is called. */
  | {
      readonly type: 'hold';
      readonly id: string;
      readonly amount: Nano;
      readonly charges: ReadonlyArray<ScopeWindow>;
      readonly model: string;
      readonly identifier: string;
    }
  /** What has been streamed so far: the charge of a hold that is never settled. */
  | { readonly type: 'progress'; readonly id: string; readonly known: Nano }
  /** Written before the reply's last byte. */
  | { readonly type: 'settle'; readonly entry: Entry }
  /** Its lease ended while we still worked on it, and this was charged; a settlement that follows is a correction of it. */
  | { readonly type: 'expired'; readonly entry: Entry }
  | { readonly type: 'release'; readonly id: string };

/** Records are durable against the death of the process when `append` resolves, against power loss within a second. */
export interface Outbox {
  /** Rejects when it cannot be written (a full disk): then nothing is promised. */
  append(record: OutboxRecord): Promise<void>;
  /** What an earlier process left unfinished on the same folder, oldest first; read once at start. A record may be told twice. */
  recover(): Promise<ReadonlyArray<OutboxRecord>>;
  /** These ids are in PostgreSQL or released: their records may be cut away. */
  done(ids: ReadonlyArray<string>): void;
  close(): Promise<void>;
}
