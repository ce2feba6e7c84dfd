// As whom do the functions of the stack speak to the API server?
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, type Impersonated } from '#adapters/kubernetes/node.ts';
import type { KubeTransport } from '#adapters/kubernetes/transport.ts';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import { accessManifests, accountUser } from '../../manifests/rbac.ts';
import type { Options } from '../options.ts';
import { put } from './manifests.ts';

export interface Accounts {
  readonly admission: Cluster;
  readonly reconcile: Cluster;
  /** The same way as reconcile's, for its watches. */
  readonly request: KubeTransport;
  /** Whose writes are not judged; undefined: everybody's are. */
  readonly ownUser?: string;
  close(): Promise<void>;
}

interface Everybody {
  readonly kubeconfig: string;
  readonly options: Options;
  /** As whoever the kubeconfig says. */
  readonly cluster: Cluster;
  readonly request: KubeTransport;
}

/**
 * A real API server of the stack's own: with the rights of their service accounts and no more, from the manifests that
 * every cluster gets. The embedded one judges no rights, but reconcile is the user that it is everywhere. In somebody's own
 * cluster: whoever the kubeconfig says, who may not be allowed to act as others.
 */
export async function openAccounts(everybody: Everybody): Promise<Accounts> {
  const { kubeconfig, options, cluster, request } = everybody;
  const { type } = options.cluster;
  if (type === 'kubeconfig') return { admission: cluster, reconcile: cluster, request, close: async () => undefined };
  const ownUser = accountUser('reconcile');
  const act = (as: Impersonated) => createKubeconfigTransport(kubeconfig, as);
  if (type === 'embedded') {
    const own = await act({ user: ownUser, group: 'system:masters' });
    const reconcile = createCluster({ request: own.request });
    return { admission: cluster, reconcile, request: own.request, ownUser, close: own.close };
  }
  for (const { object } of accessManifests()) await put(cluster, object as KubeObject, true);
  const [admission, reconcile] = [await act({ user: accountUser('admission') }), await act({ user: ownUser })];
  return {
    admission: createCluster({ request: admission.request }),
    reconcile: createCluster({ request: reconcile.request }),
    request: reconcile.request,
    ownUser,
    close: async () => {
      await admission.close();
      await reconcile.close();
    },
  };
}
