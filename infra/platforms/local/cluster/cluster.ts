// The cluster of the stack: the embedded one, a real API server of the stack's own, or the one of a kubeconfig file.
import { existsSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';
import { createApiServer } from '../../../apiserver/api-server.ts';
import { type Options, UsageError } from '../options.ts';
import type { StartContext } from '../start.ts';
import { onFreePort, portOf } from '../state/ports.ts';
import type { Certificates } from './certificates.ts';
import { envtestAssets, startControlPlane } from './envtest.ts';
import { writeKubeconfig } from './kubeconfig.ts';

/** Checks, before anything is created, that `--cluster` names a cluster that can be used. Throws UsageError. */
export function validateCluster({ cluster }: Options): void {
  if (cluster.type === 'envtest') envtestAssets();
  if (cluster.type === 'kubeconfig') readKubeconfig(cluster.path);
}

/**
 * Starts the embedded cluster or envtest's, or reads the given kubeconfig, whose path is absolute like theirs. Throws
 * UsageError for a file that cannot be used.
 */
export async function openCluster(context: StartContext, certificates: Certificates) {
  const { options, state } = context;
  if (options.cluster.type === 'kubeconfig') return readKubeconfig(options.cluster.path);
  const open = options.cluster.type === 'embedded' ? embedded : envtest;
  const { url, description } = await open(context, certificates);
  const kubeconfig = state.path('kubeconfig');
  writeKubeconfig(kubeconfig, { url, ca: certificates.ca, token: state.remembered.clusterToken });
  return { url, description, kubeconfig };
}

async function embedded({ state, log, onStop }: StartContext, { cert, key }: Certificates) {
  const start = async (port: number) => {
    const server = createApiServer({
      file: state.path('cluster.db'),
      port,
      tls: { cert, key },
      token: state.remembered.clusterToken,
      log,
      instead: 'use a real cluster (--cluster envtest, or a kubeconfig file)',
    });
    onStop(server.stop);
    await server.start();
    return server.url;
  };
  const url = await onFreePort(() => portOf(state, 'cluster'), start);
  return { url, description: 'embedded, for trying and testing only' };
}

async function envtest({ state, onStop }: StartContext, tls: Certificates) {
  const own = { children: state.children, folder: state.path('envtest'), token: state.remembered.clusterToken, tls };
  const start = (port: number) =>
    onFreePort(
      () => portOf(state, 'etcd'),
      (etcdPort) => startControlPlane({ ...own, port, etcdPort }),
    );
  const { url, stop } = await onFreePort(() => portOf(state, 'cluster'), start);
  onStop(stop);
  return { url, description: 'a real kube-apiserver and etcd' };
}

/** The cluster of a kubeconfig, which the stack neither starts nor stops. */
export function readKubeconfig(path: string) {
  if (!existsSync(path)) throw new UsageError(`--cluster: there is no kubeconfig file ${path}.`);
  const config = new KubeConfig();
  try {
    config.loadFromFile(path);
  } catch (cause) {
    throw new UsageError(`--cluster: ${path} is not a kubeconfig file.`, { cause });
  }
  const url = config.getCurrentCluster()?.server;
  if (url === undefined) throw new UsageError(`--cluster: ${path} names no cluster in its current context.`);
  return { kubeconfig: path, url, description: `context ${config.getCurrentContext()}` };
}
