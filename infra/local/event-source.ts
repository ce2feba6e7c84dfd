// Who tells reconcile that something changed? A watch on our kinds, posted as CloudEvents: what ApiServerSource is on Knative.

import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds.ts';

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

export interface EventSourceDependencies {
  /** Watches one resource in all namespaces until the signal; relists by itself after a gap. */
  readonly watch: (resource: Resource, onEvent: (event: WatchEvent) => void, signal: AbortSignal) => Promise<void>;
  /** Posts a CloudEvent to reconcile; a failure is not retried here: the schedule is the floor. */
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<void>;
  readonly newId: () => string;
  readonly onObject?: (event: WatchEvent) => void;
}

/** Starts watching; answers how to stop. Events of one object are posted one at a time, the last one last. */
export function startEventSource(deps: EventSourceDependencies): () => Promise<void> {
  const controller = new AbortController();
  const seen = new Map<string, string>();
  const waiting = new Map<string, WatchEvent>();
  let draining: Promise<void> = Promise.resolve();
  let busy = false;

  const drain = async () => {
    busy = true;
    for (let next = take(waiting); next !== undefined; next = take(waiting)) await deliver(deps, next);
    busy = false;
  };

  const onEvent = (event: WatchEvent) => {
    deps.onObject?.(event);
    const id = event.object.metadata.uid ?? '';
    const shape = shapeOf(event);
    if (seen.get(id) === shape) return;
    if (event.type === 'DELETED') seen.delete(id);
    else seen.set(id, shape);
    waiting.set(id, event);
    if (!busy) draining = drain();
  };

  const watches = kinds.map((kind) => deps.watch(kind, onEvent, controller.signal));
  return async () => {
    controller.abort();
    waiting.clear();
    await Promise.allSettled([...watches, draining]);
  };
}

/** What people can change: a write of our own to status is no news. */
function shapeOf({ type, object }: WatchEvent): string {
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

function take(waiting: Map<string, WatchEvent>): WatchEvent | undefined {
  const [first] = waiting;
  if (first !== undefined) waiting.delete(first[0]);
  return first?.[1];
}

async function deliver(deps: EventSourceDependencies, { type, object }: WatchEvent): Promise<void> {
  const verb = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' }[type];
  const headers = {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': deps.newId(),
    'ce-source': '/local',
    'ce-type': `dev.knative.apiserver.ref.${verb}`,
  };
  const { apiVersion, kind } = object;
  const { namespace, name } = object.metadata;
  await deps.post(headers, JSON.stringify({ apiVersion, kind, namespace, name })).catch(() => undefined);
}
