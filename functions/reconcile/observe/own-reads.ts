// The namespace for which the reads of a trigger count.
import type { Cluster } from '#core/ports/cluster.ts';
import type { RunTarget } from '../run-target.ts';

/**
 * Reads of a trigger for a scope object count for the scope object's namespace: if they counted for that of its
 * instance, all tenants of a shared instance would wait in one queue. Other runs read objects of many namespaces, each
 * of which has its own share.
 */
export function withOwnReads(cluster: Cluster, target: RunTarget): Cluster {
  if (target.look !== 'at' || target.kind === 'GatewayInstance') return cluster;
  const { namespace: readFor } = target;
  return {
    ...cluster,
    get: (resource, namespace, name, how) => cluster.get(resource, namespace, name, { ...how, readFor }),
    list: (resource, selection) => cluster.list(resource, { ...selection, readFor }),
    listPages: (resource, selection, onPage) => cluster.listPages(resource, { ...selection, readFor }, onPage),
  };
}
