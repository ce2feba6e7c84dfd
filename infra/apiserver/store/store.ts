// How is an object written so that it survives, wakes its watchers and never overwrites what the writer had not seen?
import type { KubeObject } from '../object.ts';
import { withMeta } from '../object.ts';
import { createHistory, type History, type Key, type StoredEvent } from './history.ts';
import type { Ownership } from './ownership.ts';
import { createShelf, type Shelf } from './shelf.ts';
import { writeBatch } from './tables.ts';

/** `from` is the resourceVersion the writer read: a write on anything else is not done. */
export type Change =
  | (Key & { readonly do: 'create'; readonly object: KubeObject })
  | (Key & { readonly do: 'update'; readonly object: KubeObject; readonly from: string })
  | (Key & { readonly do: 'delete'; readonly object: KubeObject; readonly from: string });

export type Written = { readonly object: KubeObject } | 'exists' | 'changed' | 'missing';

export type Store = Pick<Shelf, 'get' | 'list' | 'resources'> & {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** The revision of the last write. */
  revision(): number;
  /** What a list at an earlier revision would have shown; undefined when that is no longer known. */
  listAt(revision: number, resource: string, namespace?: string): KubeObject[] | undefined;
  since: History['since'];
  floor: History['floor'];
  write(change: Change): Promise<Written>;
  /** Called after every write, in order. Returns the way to stop. */
  subscribe(listener: (event: StoredEvent) => void): () => void;
};

type Waiting = {
  readonly change: Change;
  readonly resolve: (written: Written) => void;
  readonly reject: (cause: unknown) => void;
};
type LogRow = Key & { revision: string; type: StoredEvent['type']; object: KubeObject; previous: KubeObject | null };

/** Writes wait in one queue and go to the database in batches, each one statement; only then does anybody see them. */
export function createStore(ownership: Ownership, historyLength = 10_000): Store {
  const shelf = createShelf();
  const listeners = new Set<(event: StoredEvent) => void>();
  let history = createHistory(historyLength, 0);
  let revision = 0;
  let session = 0;
  const queue: Waiting[] = [];
  let flushing = Promise.resolve();
  let active = false;

  async function load(): Promise<void> {
    const log = await ownership.query<LogRow>('select * from cluster_log order by revision');
    revision = Number(log.at(-1)?.revision ?? 0);
    history = createHistory(historyLength, Number(log[0]?.revision ?? 1) - 1);
    for (const row of log) history.add(fromRow(row));
    const objects = await ownership.query<Key & { object: KubeObject }>('select * from cluster_objects');
    for (const row of objects) shelf.apply({ ...row, type: 'ADDED' });
    session = await ownership.ready();
  }

  /** After a broken connection nobody knows whether the last batch was written: read what the log has beyond us. */
  async function catchUp(): Promise<void> {
    const log = await ownership.query<LogRow>('select * from cluster_log where revision > $1 order by revision', [
      revision,
    ]);
    for (const row of log) accept(fromRow(row));
    session = await ownership.ready();
  }

  function accept(event: StoredEvent): void {
    revision = event.revision;
    shelf.apply(event);
    history.add(event);
    for (const listener of listeners) listener(event);
  }

  async function flush(): Promise<void> {
    while (queue.length > 0) {
      const taken = queue.splice(0, distinct(queue));
      try {
        if (session !== (await ownership.ready())) await catchUp();
        await writeAll(taken);
      } catch (cause) {
        session = -1;
        for (const { reject } of taken) reject(cause);
      }
    }
    active = false; // in the same turn as the last look: whoever writes after it starts the next flush
  }

  async function writeAll(taken: readonly Waiting[]): Promise<void> {
    const settled: Array<{ waiting: Waiting; event: StoredEvent }> = [];
    for (const waiting of taken) {
      const event = toEvent(waiting.change, shelf.get(waiting.change), revision + settled.length + 1);
      if (typeof event === 'string') waiting.resolve(event);
      else settled.push({ waiting, event });
    }
    if (settled.length === 0) return;
    const forget = history.forgettable();
    await ownership.query(writeBatch, [...columns(settled.map(({ event }) => event)), forget]);
    history.forget(forget);
    for (const { waiting, event } of settled) {
      accept(event);
      waiting.resolve({ object: event.object });
    }
  }

  return {
    get: shelf.get,
    list: shelf.list,
    resources: shelf.resources,
    start: load,
    async stop() {
      await flushing;
      await ownership.release();
    },
    revision: () => revision,
    since: (from) => history.since(from),
    floor: () => history.floor(),
    listAt(at, resource, namespace) {
      const later = history.since(at);
      if (later === undefined) return undefined;
      if (later.length === 0) return shelf.list(resource, namespace);
      return undo(shelf.list(resource, namespace), later, (event) => {
        return event.resource === resource && (namespace === undefined || event.namespace === namespace);
      });
    },
    write(change) {
      return new Promise((resolve, reject) => {
        queue.push({ change, resolve, reject });
        if (active) return;
        active = true;
        flushing = Promise.resolve().then(flush); // so that writes of one turn go together
      });
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** How many changes from the front of the queue touch different keys: a statement may write a row only once. */
function distinct(queue: readonly Waiting[]): number {
  const seen = new Set<string>();
  for (const [i, { change }] of queue.entries()) {
    const key = `${change.resource} ${change.namespace} ${change.name}`;
    if (seen.has(key) || i === 500) return i;
    seen.add(key);
  }
  return queue.length;
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

function columns(events: readonly StoredEvent[]): unknown[] {
  return [
    events.map(({ revision }) => revision),
    events.map(({ type }) => type),
    events.map(({ resource }) => resource),
    events.map(({ namespace }) => namespace),
    events.map(({ name }) => name),
    events.map(({ object }) => JSON.stringify(object)),
    events.map(({ previous }) => (previous === undefined ? null : JSON.stringify(previous))),
  ];
}

function fromRow({ previous, revision, ...row }: LogRow): StoredEvent {
  return { ...row, revision: Number(revision), ...(previous && { previous }) };
}

function undo(
  objects: readonly KubeObject[],
  later: readonly StoredEvent[],
  concerns: (event: StoredEvent) => boolean,
): KubeObject[] {
  const then = new Map(objects.map((object) => [pathOf(object), object]));
  for (const event of later.toReversed()) {
    if (!concerns(event)) continue;
    if (event.previous === undefined) then.delete(pathOf(event.object));
    else then.set(pathOf(event.previous), event.previous);
  }
  return [...then.entries()].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, object]) => object);
}

function pathOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
