// The limit of triggers that have many objects in memory: a trigger for a Team loads all VirtualKeys of its namespace,
// and keeps them until databases have answered.
import type { ReconcileDependencies } from '../deps.ts';
import type { Memory } from '../memory.ts';
import type { RunTarget } from '../run-target.ts';
import type { World } from '../world.ts';

/** Characters of JSON that a run may keep without a slot: some hundred VirtualKeys. */
const MAX_LIGHT = 1024 * 1024;

/**
 * A trigger that lists objects takes a slot, and has it until it has loaded little, or ends. A resync needs no slot,
 * because only one runs at a time.
 */
export async function withLoadLimit<T>(
  {
    deps,
    memory,
    target,
  }: { readonly deps: ReconcileDependencies; readonly memory: Memory; readonly target: RunTarget },
  work: (deps: ReconcileDependencies, onLoaded: (objects: World) => void) => Promise<T>,
): Promise<T> {
  if (target.look !== 'at') return work(deps, () => undefined);
  const [entered, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isWaiting = false;
  let loaded: World | undefined;
  const enter = (): Promise<void> => {
    if (!isWaiting) {
      if (loaded !== undefined && isLight(loaded)) left.resolve();
      void memory.loads.run(target.namespace, () => {
        entered.resolve();
        return left.promise;
      });
    }
    isWaiting = true;
    return entered.promise;
  };
  const { cluster } = deps;
  const listPages: typeof cluster.listPages = (...list) => enter().then(() => cluster.listPages(...list));
  try {
    return await work({ ...deps, cluster: { ...cluster, listPages } }, (objects) => {
      // A trigger for a VirtualKey lists nothing, and its instance may have 512 model entries.
      if (!isWaiting) loaded = objects;
      else if (isLight(objects)) left.resolve();
    });
  } finally {
    left.resolve();
  }
}

function isLight({ listed, keys, users, teams, malformed }: World): boolean {
  let size = 0;
  for (const objects of [listed, keys, users, teams, malformed]) {
    for (const object of objects.values()) {
      size += JSON.stringify(object).length;
      if (size > MAX_LIGHT) return false;
    }
  }
  return true;
}
