// Concurrent triggers: those of slow instances have slots of their own, so that triggers of quick instances never wait
// for them.
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ReconcileDependencies } from './deps.ts';
import { PROCESS_LIMITS } from './limits.ts';
import type { Memory } from './memory.ts';
import type { RunWorld } from './observe/objects.ts';
import { partition, QUICK_LIMIT } from './observe/parts.ts';
import type { Report } from './report.ts';
import { run, writeNamespaceRows } from './run.ts';
import type { RunTarget } from './run-target.ts';

/** The maximum number of triggers of slow instances that have many objects in memory (of `MAX_LOADS` triggers). */
const MAX_SLOW_LOADS = 6;

/**
 * The maximum time for which a run waits until the rows of namespaces are written: reading a hundred thousand VirtualKeys
 * at the same time would delay them. Less than `QUICK_LIMIT`, so that the trigger does not become a slow one meanwhile.
 */
const MAX_NAMESPACES_WAIT: Millis = 900;

/**
 * Runs a trigger in the queue of its namespace; the rows of namespaces are written first. `full`: too many triggers wait.
 * The loaded objects show the instances of the trigger: if one is slow, the trigger leaves its slot, and loads its objects
 * again when it has a slot for slow triggers.
 */
export function createTriggerQueue(deps: ReconcileDependencies, memory: Memory, maxWaiting: number) {
  const { triggers, slowTriggers } = deps.limits ?? PROCESS_LIMITS;
  const quick = createFairLimiter(triggers, maxWaiting);
  const slow = createFairLimiter(slowTriggers, maxWaiting, { hasSlotsForNewcomers: true });
  const slowLoads = createFairLimiter(MAX_SLOW_LOADS);
  const loads: Memory['loads'] = {
    isFull: () => false,
    run: (owner, work) => slowLoads.run(owner, () => memory.loads.run(owner, work)),
  };
  /** A new part counts as slow, as in a resync. Without a limit no trigger waits, and none is loaded twice. */
  const isQuick = (world: RunWorld): boolean =>
    slowTriggers === Number.POSITIVE_INFINITY ||
    partition(world).every(
      ({ path }) => (memory.triggerTimes.get(path) ?? memory.partRuns.get(path)?.took ?? QUICK_LIMIT) < QUICK_LIMIT,
    );
  /** Resolves when the work has ended, or has taken long and has a slow slot. */
  const untilMoved = (namespace: string, work: Promise<unknown>) =>
    new Promise<void>((resolve) => {
      const end = () => resolve();
      const ended = work.then(end, end);
      const move = () => {
        resolve();
        return ended;
      };
      void ended.then(deps.timer(QUICK_LIMIT, () => void slow.run(namespace, move)));
    });
  /** Resolves when the rows of namespaces are written, or `MAX_NAMESPACES_WAIT` is over. */
  const untilWritten = (namespaces: Promise<void>) =>
    new Promise<void>((resolve) => void namespaces.then(resolve).then(deps.timer(MAX_NAMESPACES_WAIT, resolve)));
  return async (namespace: string, target: RunTarget): Promise<Report | 'full'> => {
    if (quick.isFull(namespace)) return 'full';
    const { promise: report, resolve } = Promise.withResolvers<Report | undefined>();
    let namespaces: Promise<void> | undefined;
    await quick.run(namespace, () => {
      namespaces = writeNamespaceRows({ deps, memory, target });
      resolve(untilWritten(namespaces).then(() => run({ deps, memory, target, shouldContinue: isQuick })));
      return untilMoved(namespace, report);
    });
    const first = await report;
    const runSlowly = () => slow.run(namespace, () => run({ deps, memory, target, loads }));
    const last = first ?? (slow.isFull(namespace) ? 'full' : await runSlowly());
    await namespaces;
    return last;
  };
}
