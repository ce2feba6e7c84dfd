// With which identity does a Node process speak to the API server?
import { createCluster, type KubeTransport } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, createServiceAccountTransport } from '#adapters/kubernetes/node.ts';
import type { Cluster } from '#core/ports/cluster.ts';

export interface Access {
  readonly cluster: Cluster;
  /** The same way, for what is no object. */
  readonly request: KubeTransport;
  close(): Promise<void>;
}

interface Environment {
  readonly KUBECONFIG?: string | undefined;
  readonly KUBERNETES_SERVICE_HOST?: string | undefined;
  readonly KUBERNETES_SERVICE_PORT: number;
}

/** KUBECONFIG where it is set, else the service account of the Pod. */
export async function openApi(environment: Environment): Promise<Access> {
  const { KUBECONFIG: file, KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port } = environment;
  const address = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const transport =
    file === undefined ? createServiceAccountTransport({ address }) : await createKubeconfigTransport(file);
  const { request, close } = transport;
  return { cluster: createCluster({ request }), request, close };
}
