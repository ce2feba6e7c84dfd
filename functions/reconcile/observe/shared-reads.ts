// Reads of Secrets that the instances of a run share.
import { type Cluster, type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { type Path, pathOf } from '../world.ts';

export type SecretReader = (namespace: string, name: string) => Promise<KubeObject | undefined>;

/**
 * Instances that need the same Secret at the same time share one read. Nothing is kept afterwards, because Secrets may be
 * very many, and large.
 */
export function createSharedReads(cluster: Pick<Cluster, 'get'>): SecretReader {
  const underWay = new Map<Path, Promise<KubeObject | undefined>>();
  return (namespace, name) => {
    const path = pathOf({ namespace, name });
    const known = underWay.get(path);
    if (known !== undefined) return known;
    const reading = cluster.get(RESOURCES.secrets, namespace, name).finally(() => underWay.delete(path));
    underWay.set(path, reading);
    return reading;
  };
}
