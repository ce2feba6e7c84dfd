// On which clusters does a test run that is about clusters? The embedded one and a real API server, asked in the same way.
import { startEmbedded } from './apiserver/kubectl-cases/servers.ts';
import { caller, startControlPlane, type TestControlPlane, whyNoControlPlane } from './control-plane.ts';

export type ClusterName = 'embedded' | 'real';

/** Both, with the reason where there can be none of a kind here. */
export const CLUSTERS: ReadonlyArray<{ readonly name: ClusterName; readonly why: string | undefined }> = [
  { name: 'embedded', why: undefined },
  { name: 'real', why: whyNoControlPlane() },
];

export const startCluster = (name: ClusterName): Promise<TestControlPlane> =>
  name === 'real' ? startControlPlane() : startEmbeddedPlane();

/** The embedded cluster on a PostgreSQL of its own. */
async function startEmbeddedPlane(): Promise<TestControlPlane> {
  const { kubeconfig, cluster, token, tls, stop } = await startEmbedded();
  const { ca } = tls;
  return { url: cluster.url, token, ca, kubeconfig, call: caller(cluster.url, token, ca), stop };
}
