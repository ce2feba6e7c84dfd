// Which cluster does the stack use, and how is it reached?
import { existsSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';
import type { Log } from '#core/ports/clock.ts';
import { createApiServer } from '../../apiserver/api-server.ts';
import { type Options, UsageError } from '../options.ts';
import { portOf } from '../state/ports.ts';
import type { State } from '../state/state.ts';
import type { Certificates } from './certificates.ts';
import { envtestAssets, startControlPlane } from './envtest.ts';
import { writeKubeconfig } from './kubeconfig.ts';

export interface OpenCluster {
  /** Absolute path, for the stock `kubectl`. */
  readonly kubeconfig: string;
  readonly url: string;
  /** Said when it is up. */
  readonly description: string;
  stop(): Promise<void>;
}

export interface OpenClusterOptions {
  readonly options: Options;
  readonly state: State;
  readonly certificates: Certificates;
  readonly log: Log;
}

/** Before anything is made: whether what `--cluster` names can be used. Throws UsageError. */
export function judgeCluster({ cluster }: Options): void {
  if (cluster.type === 'envtest') envtestAssets();
  if (cluster.type === 'kubeconfig') readKubeconfig(cluster.path);
}

/** Starts the embedded cluster or envtest's, or reads the given kubeconfig. Throws UsageError where the person can mend it. */
export async function openCluster(context: OpenClusterOptions): Promise<OpenCluster> {
  const { options, state } = context;
  if (options.cluster.type === 'kubeconfig') return readKubeconfig(options.cluster.path);
  const started = options.cluster.type === 'embedded' ? await embedded(context) : await envtest(context);
  const kubeconfig = state.path('kubeconfig');
  writeKubeconfig(kubeconfig, { url: started.url, ca: context.certificates.ca, token: state.remembered.clusterToken });
  return { ...started, kubeconfig };
}

async function embedded({ state, certificates, log }: OpenClusterOptions) {
  const { cert, key } = certificates;
  const server = createApiServer({
    file: state.path('cluster.db'),
    port: await portOf(state, 'cluster'),
    tls: { cert, key },
    token: state.remembered.clusterToken,
    log,
  });
  await server.start();
  return { url: server.url, stop: server.stop, description: 'embedded, for trying and testing only' };
}

async function envtest({ state, certificates: tls }: OpenClusterOptions) {
  const token = state.remembered.clusterToken;
  const folder = state.path('envtest');
  const [port, etcdPort] = [await portOf(state, 'cluster'), await portOf(state, 'etcd')];
  const plane = await startControlPlane({ children: state.children, folder, port, etcdPort, token, tls });
  return { url: plane.url, stop: plane.stop, description: 'a real kube-apiserver and etcd' };
}

/** The person's own cluster: nothing to start, nothing to stop. */
function readKubeconfig(path: string): OpenCluster {
  if (!existsSync(path)) throw new UsageError(`--cluster: there is no kubeconfig file ${path}.`);
  const config = new KubeConfig();
  try {
    config.loadFromFile(path);
  } catch (cause) {
    throw new UsageError(`--cluster: ${path} is not a kubeconfig file.`, { cause });
  }
  const url = config.getCurrentCluster()?.server;
  if (url === undefined) throw new UsageError(`--cluster: ${path} names no cluster in its current context.`);
  return { kubeconfig: path, url, description: `context ${config.getCurrentContext()}`, stop: async () => undefined };
}
