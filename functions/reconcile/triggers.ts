// Triggers that are followed at the same time: those of slow instances have places of their own, so that quick ones wait
// for none of them.
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import type { ReconcileDeps } from './deps.ts';
import { PROCESS_LIMITS } from './limits.ts';
import type { Memory } from './memory.ts';
import type { RunWorld } from './observe/objects.ts';
import { partition, QUICK } from './observe/parts.ts';
import type { Report } from './report.ts';
import { run } from './run.ts';
import type { Scope } from './scope.ts';

/** Triggers of slow instances that may hold many objects at the same time, of those that may. */
const MAX_SLOW_LOADS = 6;

/**
 * Follows triggers for their namespaces; `full`: too many of them wait. The loaded objects name the instances: the
 * trigger of a slow one leaves its place then, and loads its objects again when it has one of the slow places.
 */
export function createTriggerQueue(deps: ReconcileDeps, memory: Memory, maxWaiting: number) {
  const { triggers, slowTriggers } = deps.limits ?? PROCESS_LIMITS;
  const [quick, slow] = [createFairLimiter(triggers, maxWaiting), createFairLimiter(slowTriggers, maxWaiting)];
  const slowLoads = createFairLimiter(MAX_SLOW_LOADS);
  const loads: Memory['loads'] = {
    isFull: () => false,
    run: (owner, work) => slowLoads.run(owner, () => memory.loads.run(owner, work)),
  };
  /** A part that is new counts as slow, as in a resync. Without a limit none waits, and none is loaded twice. */
  const isQuick = (world: RunWorld): boolean =>
    slowTriggers === Number.POSITIVE_INFINITY ||
    partition(world).every(
      ({ path }) => (memory.triggered.get(path) ?? memory.visits.get(path)?.took ?? QUICK) < QUICK,
    );
  /** Resolves when the work has ended, or has taken long and has a slow place. */
  const untilMoved = (namespace: string, work: Promise<unknown>) =>
    new Promise<void>((resolve) => {
      const end = () => resolve();
      const ended = work.then(end, end);
      const move = () => {
        resolve();
        return ended;
      };
      void ended.then(deps.timer(QUICK, () => void slow.run(namespace, move)));
    });
  return async (namespace: string, scope: Scope): Promise<Report | 'full'> => {
    if (quick.isFull(namespace)) return 'full';
    const { promise: report, resolve } = Promise.withResolvers<Report | undefined>();
    await quick.run(namespace, () => {
      resolve(run({ deps, memory, scope, isWanted: isQuick }));
      return untilMoved(namespace, report);
    });
    const first = await report;
    if (first !== undefined) return first;
    return slow.isFull(namespace) ? 'full' : slow.run(namespace, () => run({ deps, memory, scope, loads }));
  };
}
