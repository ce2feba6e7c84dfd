// Which instances of this cluster does a database still count as open, though they are gone?
import { RESOURCES } from '#core/ports/cluster.ts';
import type { InstanceRow, Registry } from '#core/ports/registry.ts';
import { reasonOf } from '#core/reason.ts';
import { gatewayInstances } from '#crds/kinds.ts';
import type { ReconcileDeps } from '../deps.ts';
import { each } from './each.ts';
import type { Memory } from './links.ts';

const WIDTH = 8;

/** What names this cluster where a database is shared with others: the uid of a namespace that every cluster has. */
export async function clusterOf({ cluster, log }: ReconcileDeps, memory: Memory): Promise<string | undefined> {
  if (memory.cluster !== undefined) return memory.cluster;
  try {
    const namespace = await cluster.get(RESOURCES.namespaces, undefined, 'kube-system');
    memory.cluster = namespace?.metadata.uid;
  } catch (error) {
    log.warn('the cluster could not be told from others', { why: reasonOf(error) });
  }
  return memory.cluster;
}

/** `known`: uids of the instances that were listed. Each other one counts as gone only after a GET by name has said so. */
export async function findStrays(
  deps: ReconcileDeps,
  registry: Registry,
  cluster: string,
  known: ReadonlySet<string>,
): Promise<ReadonlyArray<InstanceRow>> {
  const suspects = (await registry.openInstances(cluster)).filter(({ uid }) => !known.has(uid));
  const gone = await each(suspects, WIDTH, async (row) => {
    const found = await deps.cluster.get(gatewayInstances, row.namespace, row.name);
    return found?.metadata.uid === row.uid ? [] : [row];
  });
  return gone.flat();
}
