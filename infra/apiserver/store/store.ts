// The objects of the API server: kept, watched, and never overwritten by a writer that has not seen them.
import type { Log } from '../log.ts';
import { type KubeObject, withMeta } from '../object.ts';
import { type Database, type Key, openDatabase, type StoredEvent } from './database.ts';
import { createObjectCache } from './object-cache.ts';

/** `from` is the resourceVersion that the writer of an update or delete read: a write on anything else is not done. */
export type Change = Key & {
  readonly do: 'create' | 'update' | 'delete';
  readonly object: KubeObject;
  readonly from?: string;
};

export type Store = ReturnType<typeof createStore>;

export type StoreOptions = {
  /** Where the objects are kept, in its own file; `:memory:` forgets them when the store is closed. */
  readonly file: string;
  /** How many changes watches can resume over. */
  readonly historyLength?: number;
  readonly log: Log;
};

export function createStore({ file, historyLength = 10_000, log }: StoreOptions) {
  const cache = createObjectCache();
  const listeners = new Set<(event: StoredEvent) => void>();
  let revision = 0;
  let compacted = 0;
  let database: Database | undefined;

  /** The log loses a tenth of its length at a time. */
  function nextCompacted(): number {
    return revision - compacted > historyLength * 1.1 ? revision - historyLength : compacted;
  }

  /** A listener that fails takes nothing back: the write is done, and the other listeners hear of it. */
  function announce(event: StoredEvent): void {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        const { resource, namespace, name } = event;
        log.error('API server: a listener failed at a change', { resource, namespace, name, error });
      }
    }
  }

  return {
    get: cache.get,
    list: cache.list,
    resources: cache.resources,
    /** Reads the file. Throws one sentence where the file cannot be used. */
    open() {
      database = openDatabase(file);
      for (const row of database.objects()) cache.apply({ ...row, type: 'ADDED' });
      const { first, last } = database.logged() ?? { first: 1, last: 0 };
      revision = last;
      compacted = first - 1;
    },
    close() {
      database?.close();
      database = undefined;
    },
    /** The revision of the last write. */
    revision: () => revision,
    /** Every change after a revision, or undefined where the log begins later. */
    since: (from: number) => (from < compacted ? undefined : database?.since(from)),
    /** The log has no change up to this revision any more. */
    compactedRevision: () => compacted,
    /**
     * Writes a change, done when this returns, listeners included. Throws where the file cannot be written; then
     * nothing has changed.
     */
    write(change: Change) {
      if (database === undefined) throw new Error('the API server is stopped');
      const event = toEvent(change, cache.get(change), revision + 1);
      if (typeof event === 'string') return event;
      const compactTo = nextCompacted();
      database.write(event, compactTo);
      revision = event.revision;
      compacted = compactTo;
      cache.apply(event);
      announce(event);
      return { object: event.object };
    },
    /** Calls the listener after every write, in order. Returns the way to stop. */
    subscribe(listener: (event: StoredEvent) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function toEvent(
  change: Change,
  now: KubeObject | undefined,
  revision: number,
): StoredEvent | 'exists' | 'changed' | 'missing' {
  const { resource, namespace, name } = change;
  const object = withMeta(change.object, { resourceVersion: String(revision) });
  if (change.do === 'create') {
    return now === undefined ? { resource, namespace, name, revision, type: 'ADDED', object } : 'exists';
  }
  if (now === undefined) return 'missing';
  if (now.metadata.resourceVersion !== change.from) return 'changed';
  const type = change.do === 'delete' ? 'DELETED' : 'MODIFIED';
  return { resource, namespace, name, revision, type, object, previous: now };
}
