// Which changes in the cluster are worth a look, and how are they looked at? Once each, a few at a time: what ApiServerSource is on Knative.
import type { Clock } from '#core/ports/clock.ts';
import type { Cluster, KubeObject, Resource } from '#core/ports/cluster.ts';
import type { Timer } from '#core/ports/platform.ts';
import { kinds } from '#crds/kinds.ts';

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

export interface Watching {
  readonly onEvent: (change: Change) => void;
  /** It stands; called again after a gap. */
  readonly onStart: () => void;
  readonly signal: AbortSignal;
}

export interface Reference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string | undefined;
  readonly name: string;
}

/** What is watched, and whose matter a change of it is. */
export interface Source {
  readonly resource: Resource;
  readonly labelSelector?: string;
  /** Absent: its own. */
  readonly about?: (object: KubeObject) => Reference | undefined;
  /** What of it is news when it differs. Absent: what people can change. */
  readonly news?: (object: KubeObject) => unknown;
}

/** Our kinds. */
export const SOURCES: ReadonlyArray<Source> = kinds.map((resource) => ({ resource }));

export interface ChangesDependencies {
  /** Watches in all namespaces, from now until the signal; goes on by itself after a broken connection. */
  readonly watch: (source: Source, watching: Watching) => Promise<void>;
  /** Posts a CloudEvent to reconcile. A lost one is not sent again: the schedule finds what it meant. */
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<void>;
  /** Looks everywhere, in place of looking at each of very many. */
  readonly sweep: () => Promise<void>;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly timer: Timer;
  /** Sees every change before reconcile hears of it, those of status included. */
  readonly onChange?: (change: Change) => void;
  readonly sources?: ReadonlyArray<Source>;
}

export interface Changes {
  /** Resolves when everything is watched. */
  readonly watched: Promise<void>;
  /** An object as we have just written it ourselves: its change is no news. */
  wrote(object: KubeObject): void;
  /** How many looks there were. */
  looks(): number;
  /** Hears of nothing more; resolves when all that was heard is looked at. */
  stop(): Promise<void>;
}

interface Heard {
  readonly source: Source;
  readonly change: Change;
  readonly news: string;
}

/** Milliseconds. A `kubectl apply` and what follows it at once are one look. */
const SETTLE = 25;
/** So many looks are under way at once, never two at one object. */
const WIDTH = 8;
/** When more than this wait, one sweep sees them all. */
const CROWD = 100;

export function startChanges(deps: ChangesDependencies): Changes {
  const { watch, sweep, timer, sources = SOURCES } = deps;
  const controller = new AbortController();
  const known = new Map<string, string>();
  const waiting = new Map<string, Heard>();
  const busy = new Map<string, Promise<void>>();
  const sleeping = new Set<() => void>();
  let looks = 0;

  const begin = (id: string, work: () => Promise<void>) => {
    looks += 1;
    const done = work()
      .catch(() => undefined)
      .finally(() => {
        busy.delete(id);
        next();
      });
    busy.set(id, done);
  };

  const next = () => {
    if (waiting.size > CROWD && !busy.has(EVERYWHERE)) {
      for (const [uid, heard] of waiting) remember(uid, heard);
      waiting.clear();
      begin(EVERYWHERE, sweep);
      return;
    }
    for (const [uid, heard] of waiting) {
      if (busy.size >= WIDTH) return;
      if (busy.has(uid)) continue;
      waiting.delete(uid);
      // Our own write may have been heard of before its answer came.
      if (known.get(uid) === heard.news) continue;
      remember(uid, heard);
      const { change, source } = heard;
      const reference = source.about === undefined ? toReference(change.object) : source.about(change.object);
      if (reference !== undefined) begin(uid, () => post(deps, change, reference));
    }
  };

  const remember = (uid: string, { change, news }: Heard) => {
    if (change.type === 'DELETED') known.delete(uid);
    else known.set(uid, news);
  };

  const hear = (source: Source, change: Change) => {
    deps.onChange?.(change);
    const { uid = '' } = change.object.metadata;
    const news = JSON.stringify([change.type === 'DELETED', (source.news ?? newsOf)(change.object)]);
    if (known.get(uid) === news) return;
    waiting.set(uid, { source, change, news });
    if (sleeping.size > 0) return;
    const wake = timer(SETTLE, () => {
      sleeping.delete(wake);
      next();
    });
    sleeping.add(wake);
  };

  const standing = sources.map(() => Promise.withResolvers<void>());
  const watches = sources.map((source, index) =>
    watch(source, {
      onEvent: (change) => hear(source, change),
      onStart: () => standing[index]?.resolve(),
      signal: controller.signal,
    }),
  );
  return {
    watched: Promise.all(standing.map(({ promise }) => promise)).then(() => undefined),
    wrote: (object) => {
      const { uid } = object.metadata;
      if (uid === undefined || !isOwn(object) || turnsReady(object, deps.clock.now())) return;
      known.set(uid, JSON.stringify([false, newsOf(object)]));
    },
    looks: () => looks,
    stop: async () => {
      controller.abort();
      await Promise.allSettled(watches);
      for (const wake of sleeping) wake();
      for (next(); busy.size > 0; ) await Promise.all(busy.values());
    },
  };
}

const EVERYWHERE = 'everywhere';

/** The same cluster; tells what is written through it. */
export function tellWrites(cluster: Cluster, wrote: (object: KubeObject) => void): Cluster {
  const telling =
    <Args extends unknown[]>(write: (...args: Args) => ReturnType<Cluster['create']>) =>
    async (...args: Args) => {
      const written = await write(...args);
      if (written.ok) wrote(written.object);
      return written;
    };
  return { ...cluster, create: telling(cluster.create), patch: telling(cluster.patch), apply: telling(cluster.apply) };
}

const isOwn = ({ kind, apiVersion }: KubeObject): boolean =>
  kinds.some((own) => own.kind === kind && own.apiVersion === apiVersion);

/** What people can change, and whether an instance is ready: its keys wait for that. Any other write to status is no news. */
function newsOf(object: KubeObject): unknown {
  const { generation, deletionTimestamp, labels, annotations, finalizers } = object.metadata;
  const ready = object.kind === 'GatewayInstance' ? readyOf(object)?.status : undefined;
  return [generation, deletionTimestamp, labels, annotations, finalizers?.length ?? 0, ready];
}

const readyOf = ({ status }: KubeObject) =>
  (status as { readonly conditions?: ReadonlyArray<Condition> } | undefined)?.conditions?.find(
    ({ type }) => type === 'Ready',
  );

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime: string;
}

/** Milliseconds: a transition that is older was told before. */
const LATELY = 10_000;

/** An instance that we have just made ready is news all the same: keys that waited for it are seen with it. */
function turnsReady(object: KubeObject, now: number): boolean {
  if (object.kind !== 'GatewayInstance') return false;
  const ready = readyOf(object);
  return ready?.status === 'True' && now - Date.parse(ready.lastTransitionTime) < LATELY;
}

const toReference = ({ apiVersion, kind, metadata }: KubeObject): Reference => ({
  apiVersion,
  kind,
  namespace: metadata.namespace,
  name: metadata.name,
});

const VERBS = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' } as const;

function post(deps: ChangesDependencies, { type }: Change, reference: Reference): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': deps.newId(),
    'ce-source': '/changes',
    'ce-type': `dev.knative.apiserver.ref.${VERBS[type]}`,
  };
  return deps.post(headers, JSON.stringify(reference));
}
