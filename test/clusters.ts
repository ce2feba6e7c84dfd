// The clusters that a test of both runs on: the embedded one and a real API server, asked in the same way.
import { startEmbedded } from './apiserver/servers.ts';
import { caller, startControlPlane, type TestControlPlane, whyNoControlPlane } from './control-plane.ts';
import { whyNotAll } from './skip-unless.ts';

export type ClusterName = 'embedded' | 'real';

/** Both, with the reason where this machine or this run has none of a kind. */
export const CLUSTERS: ReadonlyArray<{ readonly name: ClusterName; readonly why: string | undefined }> = [
  { name: 'embedded', why: undefined },
  { name: 'real', why: whyNotAll ?? whyNoControlPlane() },
];

export const startCluster = (name: ClusterName): Promise<TestControlPlane> =>
  name === 'real' ? startControlPlane() : startEmbeddedPlane();

async function startEmbeddedPlane(): Promise<TestControlPlane> {
  const { kubeconfig, server, token, tls, stop } = await startEmbedded();
  const { ca } = tls;
  return { url: server.url, token, ca, kubeconfig, call: caller(server.url, token, ca), stop };
}
