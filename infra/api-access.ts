// With which identity does a Node process speak to the API server?
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, createServiceAccountTransport } from '#adapters/kubernetes/node.ts';
import type { Cluster } from '#core/ports/cluster.ts';

export interface Access {
  readonly cluster: Cluster;
  close(): Promise<void>;
}

interface Environment {
  readonly KUBECONFIG?: string | undefined;
  readonly KUBERNETES_SERVICE_HOST?: string | undefined;
  readonly KUBERNETES_SERVICE_PORT?: string | undefined;
}

/** KUBECONFIG where it is set, else the service account of the Pod. */
export async function openApi(environment: Environment): Promise<Access> {
  const { KUBECONFIG: file, KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = environment;
  if (file === undefined && host === undefined) {
    throw new Error('no cluster: set KUBECONFIG to a kubeconfig file, or run in a Pod with a service account');
  }
  const address = `https://${host?.includes(':') ? `[${host}]` : host}:${port}`;
  const transport =
    file === undefined ? createServiceAccountTransport({ address }) : await createKubeconfigTransport(file);
  return { cluster: createCluster({ request: transport.request }), close: transport.close };
}
