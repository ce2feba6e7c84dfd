// What does a run of the CronJob do after its sweep? It listens, until the next run does: no gap, and nobody who lives for ever.
import type { KubeTransport } from '#adapters/kubernetes/transport.ts';
import { watch } from '#adapters/kubernetes/watch.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Timer } from '#core/ports/platform.ts';
import { type Changes, SOURCES, type Source, startChanges } from '../triggers/changes.ts';
import { DEPLOYMENTS } from '../triggers/workload-changes.ts';
import { type LeaseDependencies, succeeded, takeLease } from './lease.ts';

/** Beside our kinds: what else says something about one of them. */
const FURTHER: ReadonlyArray<Source> = [DEPLOYMENTS];

export interface ListenDependencies extends LeaseDependencies {
  readonly request: KubeTransport;
  readonly timer: Timer;
  readonly newId: () => string;
  /** Asks reconcile as its HTTP entry does: without a body for a sweep. Rejects when it does not answer well. */
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<string>;
  /** Hears how the first sweep ended, at once. */
  readonly onSweep: (sweep: Swept) => void;
  /** Aborts at SIGTERM. */
  readonly signal: AbortSignal;
}

/** What a sweep reported, or why there is no report. */
export type Swept = { readonly report: string } | { readonly failed: string };

export interface Listened {
  /** Scoped runs and further sweeps. */
  readonly looks: number;
  readonly ended: 'a successor listens' | 'its time is over' | 'told to stop';
}

export interface Listening {
  /** What we write is no news: tell it. */
  wrote(object: KubeObject): void;
  readonly done: Promise<Listened>;
}

/** Milliseconds. An API server that does not let us watch keeps nobody from sweeping. */
const OPENING = 20_000;
/** What its watches are still about to hear when a successor has the Lease. */
const LINGER = 500;
/** What is under way gets so long. */
const DRAIN = 10_000;

/**
 * First it watches, then it sweeps, then it takes the Lease: whatever happened before the watch stood is in the sweep, what
 * happens after is heard. So whoever held the Lease may go, which hears until then. With no right to the Lease, or with
 * two that listen, everything is looked at all the same, some of it twice.
 */
export function startListening(deps: ListenDependencies): Listening {
  const over = new AbortController();
  const ends = (why: Listened['ended']) => over.abort(why);
  const cancel = deps.timer(deps.seconds * 1000, () => ends('its time is over'));
  deps.signal.addEventListener('abort', () => ends('told to stop'), { once: true });
  if (deps.signal.aborted) ends('told to stop');

  const again = async () => {
    await deps.post({}, '');
  };
  const changes = startChanges({
    newId: deps.newId,
    clock: deps.clock,
    timer: deps.timer,
    sources: [...SOURCES, ...FURTHER],
    sweep: again,
    post: async (headers, body) => {
      await deps.post(headers, body);
    },
    watch: ({ resource, labelSelector }, watching) =>
      watch(deps.request, {
        resource,
        ...(labelSelector === undefined ? {} : { labelSelector }),
        ...watching,
        // What went away in the gap is told by no list: a sweep sees it.
        onGap: () => void again().catch(() => undefined),
        onError: (error) =>
          deps.log.warn('a watch broke and is opened again', { of: resource.plural, why: error.message }),
      }),
  });
  const done = go(deps, changes, over).finally(cancel);
  return { wrote: changes.wrote, done };
}

async function go(deps: ListenDependencies, changes: Changes, over: AbortController): Promise<Listened> {
  const { timer } = deps;
  const { signal } = over;
  const isOver = aborted(signal);
  await within(timer, OPENING, Promise.race([changes.watched, isOver]));
  deps.onSweep(await sweepUnlessOver(deps, signal));
  const version = signal.aborted ? undefined : await takeLease(deps);
  if (version === undefined) await isOver;
  else await succeeded(deps, version, signal);
  const ended = signal.aborted ? (signal.reason as Listened['ended']) : 'a successor listens';
  if (!signal.aborted) await within(timer, LINGER, isOver);
  await within(timer, DRAIN, changes.stop());
  return { looks: changes.looks(), ended };
}

async function sweepUnlessOver({ post, timer }: ListenDependencies, signal: AbortSignal): Promise<Swept> {
  const late = { failed: 'it had no time to end' };
  if (signal.aborted) return late;
  const sweep = post({}, '').then(
    (report) => ({ report }),
    (error: Error) => ({ failed: error.message }),
  );
  const patience = aborted(signal).then(() => within(timer, DRAIN, sweep));
  return (await Promise.race([sweep, patience])) ?? late;
}

/** Undefined when it takes longer. */
async function within<T>(timer: Timer, millis: number, work: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const cancel = timer(millis, () => resolve(undefined));
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
