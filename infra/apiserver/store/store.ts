// The objects of the API server: kept, watched, and never overwritten by a writer that has not seen them.
import { type KubeObject, withMeta } from '../object.ts';
import { type Database, openDatabase } from './database.ts';
import { createHistory, type History, type Key, type StoredEvent } from './history.ts';
import { createObjectCache, type ObjectCache } from './object-cache.ts';

/** `from` is the resourceVersion the writer read: a write on anything else is not done. */
export type Change =
  | (Key & { readonly do: 'create'; readonly object: KubeObject })
  | (Key & { readonly do: 'update'; readonly object: KubeObject; readonly from: string })
  | (Key & { readonly do: 'delete'; readonly object: KubeObject; readonly from: string });

export type Written = { readonly object: KubeObject } | 'exists' | 'changed' | 'missing';

export type Store = Pick<ObjectCache, 'get' | 'list' | 'resources'> & {
  /** Reads what is there. Throws one sentence where the file cannot be used. */
  open(): void;
  close(): void;
  /** The revision of the last write. */
  revision(): number;
  since: History['since'];
  compactedRevision: History['compactedRevision'];
  /** Done when it returns, listeners included. Throws where the file cannot be written; then nothing has changed. */
  write(change: Change): Written;
  /** Calls the listener after every write, in order. Returns the way to stop. */
  subscribe(listener: (event: StoredEvent) => void): () => void;
};

export type StoreOptions = {
  /** A file, or `:memory:`. */
  readonly file: string;
  /** How many changes watches can resume over. */
  readonly historyLength?: number;
};

export function createStore({ file, historyLength = 10_000 }: StoreOptions): Store {
  const cache = createObjectCache();
  const listeners = new Set<(event: StoredEvent) => void>();
  let history = createHistory(historyLength, 0);
  let revision = 0;
  let database: Database | undefined;

  return {
    get: cache.get,
    list: cache.list,
    resources: cache.resources,
    open() {
      database = openDatabase(file);
      const { objects, log } = database.load();
      for (const row of objects) cache.apply({ ...row, type: 'ADDED' });
      history = createHistory(historyLength, (log[0]?.revision ?? 1) - 1);
      for (const event of log) history.add(event);
      revision = log.at(-1)?.revision ?? 0;
    },
    close() {
      database?.close();
      database = undefined;
    },
    revision: () => revision,
    since: (from) => history.since(from),
    compactedRevision: () => history.compactedRevision(),
    write(change) {
      if (database === undefined) throw new Error('the API server is stopped');
      const event = toEvent(change, cache.get(change), revision + 1);
      if (typeof event === 'string') return event;
      const compactTo = history.compactable();
      database.write(event, compactTo);
      history.compact(compactTo);
      revision = event.revision;
      cache.apply(event);
      history.add(event);
      for (const listener of listeners) listener(event);
      return { object: event.object };
    },
    subscribe(listener) {
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
