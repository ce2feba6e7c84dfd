// The API server as a Node process reaches it: by a kubeconfig, or as the service account of its Pod.
import { type ClusterDependencies, createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, createServiceAccountTransport } from '#adapters/kubernetes/node.ts';
import { withinNamespace } from '#adapters/kubernetes/one-namespace.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import type { ReconcileEnvironment } from '../config/environments.ts';

type Environment = Pick<
  ReconcileEnvironment,
  'WATCH_NAMESPACE' | 'KUBECONFIG' | 'KUBERNETES_SERVICE_HOST' | 'KUBERNETES_SERVICE_PORT'
>;

/**
 * KUBECONFIG where it is set, else the service account of the Pod. With WATCH_NAMESPACE nothing outside that namespace
 * is asked for.
 */
export async function openApi(
  environment: Environment,
  limits: Pick<ClusterDependencies, 'maxReads'> = {},
): Promise<{ cluster: Cluster; close(): Promise<void> }> {
  const {
    WATCH_NAMESPACE: watched,
    KUBECONFIG: file,
    KUBERNETES_SERVICE_HOST: host = '',
    KUBERNETES_SERVICE_PORT: port,
  } = environment;
  const address = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const transport =
    file === undefined ? createServiceAccountTransport({ address }) : await createKubeconfigTransport(file);
  const { request, close } = transport;
  const cluster = createCluster({ request, ...limits });
  return { cluster: watched === undefined ? cluster : withinNamespace(cluster, watched), close };
}
