// The objects of a cluster that a person without access to Secrets can read.
import { type Cluster, type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds/kinds.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';

/** Kinds that our functions write, and kinds that controllers make from them. */
const OPEN: ReadonlyArray<Resource> = [
  ...kinds,
  ...Object.values(RESOURCES).filter(({ kind }) => kind !== 'Secret'),
  ...Object.values(WORKLOAD_OBJECTS),
  { group: '', version: 'v1', plural: 'pods', kind: 'Pod' },
  { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet' },
  ...['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration', 'ServiceAccount'].map(resourceOf),
];

/** Objects of every kind that the cluster serves. */
export async function openObjects(cluster: Cluster): Promise<ReadonlyArray<KubeObject>> {
  const lists = OPEN.map(async (resource) => ((await cluster.serves(resource)) ? cluster.list(resource) : []));
  return (await Promise.all(lists)).flat();
}
