// Who tells reconcile that something changed? A watch on our kinds, posted as CloudEvents: what ApiServerSource is on Knative.
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds.ts';

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

export interface Watching {
  readonly onEvent: (change: Change) => void;
  readonly signal: AbortSignal;
}

export interface EventSourceDependencies {
  /** Watches one resource in all namespaces, from now until the signal; goes on by itself after a broken connection. */
  readonly watch: (resource: Resource, watching: Watching) => Promise<void>;
  /** Posts a CloudEvent to reconcile. A lost one is not sent again: the schedule finds what it meant. */
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<void>;
  readonly newId: () => string;
  /** Sees every change before reconcile hears of it, those of status included. */
  readonly onChange: (change: Change) => void;
}

/** Starts watching; answers how to stop. One event is on its way at a time; of several about one object the last is sent. */
export function startEventSource(deps: EventSourceDependencies): () => Promise<void> {
  const { signal, abort } = cancellation();
  const told = new Map<string, string>();
  const waiting = new Map<string, Change>();
  let delivering: Promise<void> | undefined;

  const deliverAll = async () => {
    for (let next = take(waiting); next !== undefined && !signal.aborted; next = take(waiting))
      await deliver(deps, next);
    delivering = undefined;
  };

  const onEvent = (change: Change) => {
    deps.onChange(change);
    const uid = change.object.metadata.uid ?? '';
    const news = newsOf(change);
    if (told.get(uid) === news) return;
    if (change.type === 'DELETED') told.delete(uid);
    else told.set(uid, news);
    waiting.set(uid, change);
    delivering ??= deliverAll();
  };

  const watches = kinds.map((kind) => deps.watch(kind, { onEvent, signal }));
  return async () => {
    abort();
    await Promise.allSettled([...watches, delivering]);
  };
}

function cancellation(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

/** What people can change: a write of our own to status is no news. */
function newsOf({ type, object }: Change): string {
  const { generation, deletionTimestamp, labels, annotations, finalizers } = object.metadata;
  return JSON.stringify([
    type === 'DELETED',
    generation,
    deletionTimestamp,
    labels,
    annotations,
    finalizers?.length ?? 0,
  ]);
}

function take(waiting: Map<string, Change>): Change | undefined {
  const [first] = waiting;
  if (first !== undefined) waiting.delete(first[0]);
  return first?.[1];
}

const VERBS = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' } as const;

async function deliver(deps: EventSourceDependencies, { type, object }: Change): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  const headers = {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': deps.newId(),
    'ce-source': '/local',
    'ce-type': `dev.knative.apiserver.ref.${VERBS[type]}`,
  };
  const reference = { apiVersion, kind, namespace: metadata.namespace, name: metadata.name };
  await deps.post(headers, JSON.stringify(reference)).catch(() => undefined);
}
