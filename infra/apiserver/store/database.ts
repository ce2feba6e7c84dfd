// The SQLite file that keeps the objects and the log of their changes.
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { KubeObject } from '../object.ts';

export type Key = { readonly resource: string; readonly namespace: string; readonly name: string };

export type StoredEvent = Key & {
  readonly revision: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The object after the change; of a deletion its last state, with the deletion's resourceVersion. */
  readonly object: KubeObject;
  readonly previous?: KubeObject;
};

export type Database = ReturnType<typeof openDatabase>;

/**
 * One process at a time (exclusive locking): the lock goes with the process, however it ends. A write-ahead log with
 * `synchronous = normal` hands every commit to the operating system before it returns, so that `kill -9` loses nothing;
 * only a power cut may lose the last moments, never half of a change. `full` would guard against that too, at a disk
 * flush per write, during which this process could serve no request.
 */
const settings = `
pragma locking_mode = exclusive;
pragma journal_mode = wal;
pragma synchronous = normal;
pragma wal_autocheckpoint = 1000;`;

const tables = `
create table if not exists objects (
  resource text not null, namespace text not null, name text not null, object text not null,
  primary key (resource, namespace, name)
);
create table if not exists log (
  revision integer primary key, type text not null, resource text not null, namespace text not null, name text not null,
  object text not null, previous text
);`;

/** Opens a file, or `:memory:`. Throws one sentence where another process has it, or it is not our database. */
export function openDatabase(file: string) {
  const database = open(file);
  const put = database.prepare(
    'insert or replace into objects (resource, namespace, name, object) values (?, ?, ?, ?)',
  );
  const remove = database.prepare('delete from objects where resource = ? and namespace = ? and name = ?');
  const append = database.prepare('insert into log values (?, ?, ?, ?, ?, ?, ?)');
  const compact = database.prepare('delete from log where revision <= ?');
  const select = database.prepare('select * from log where revision > ? order by revision');

  function change({ revision, type, resource, namespace, name, object, previous }: StoredEvent): void {
    const text = JSON.stringify(object);
    const before = previous === undefined ? null : JSON.stringify(previous);
    append.run(revision, type, resource, namespace, name, text, before);
    if (type === 'DELETED') remove.run(resource, namespace, name);
    else put.run(resource, namespace, name, text);
  }

  return {
    /** Every object that exists. */
    objects: () => database.prepare('select * from objects').all().map(toObject),
    /** The first and the last revision of the log; undefined where nothing was ever written. */
    logged() {
      const ends = database.prepare('select min(revision) as first, max(revision) as last from log').get();
      return ends?.last == null ? undefined : { first: Number(ends.first), last: Number(ends.last) };
    },
    /** The log after a revision, in its order. */
    since: (revision: number) => select.all(revision).map(toEvent),
    /** One change and its line in the log, both or neither; log lines up to `compactTo` go. */
    write(event: StoredEvent, compactTo: number) {
      database.exec('begin');
      try {
        change(event);
        compact.run(compactTo);
        database.exec('commit');
      } catch (cause) {
        if (database.isTransaction) database.exec('rollback');
        throw new Error('writing an object', { cause });
      }
    },
    close: () => database.close(),
  };
}

function open(file: string): DatabaseSync {
  if (file !== ':memory:') closeSync(openSync(file, 'a', 0o600)); // Secrets are in it, as text
  const database = new DatabaseSync(file);
  try {
    database.exec(settings);
    database.exec(tables);
    return database;
  } catch (cause) {
    database.close();
    const busy = (cause as { errcode?: number }).errcode === SQLITE_BUSY;
    throw new Error(busy ? `another API server runs on ${file}; stop it first` : `${file} cannot be opened`, { cause });
  }
}

const SQLITE_BUSY = 5;

type Row = Record<string, unknown>; // the columns above, as their statements select them

function toObject({ object, ...key }: Row): Key & { readonly object: KubeObject } {
  return { ...(key as Key), object: JSON.parse(String(object)) };
}

function toEvent({ previous, ...row }: Row): StoredEvent {
  const before = previous === null ? {} : { previous: JSON.parse(String(previous)) };
  return { ...(row as StoredEvent), object: JSON.parse(String(row.object)), ...before };
}
