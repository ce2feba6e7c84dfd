// The clusters of tests that run on both: the embedded one and a real API server, behind one interface.
import { startEmbedded } from '../apiserver/servers.ts';
import { caller, startControlPlane, type TestControlPlane, whyNoControlPlane } from './control-plane.ts';
import { whyNoCampaign, whyNotAll } from './skip-unless.ts';

export type ClusterName = 'embedded' | 'real';

/** Both clusters, with the reason where one is missing on this machine or in this run. */
export const CLUSTERS: ReadonlyArray<{ readonly name: ClusterName; readonly why: string | undefined }> = [
  { name: 'embedded', why: undefined },
  { name: 'real', why: whyNotAll ?? whyNoControlPlane() },
];

/** The real one where there is one: for tests that take long. */
export const ONE_CLUSTER = CLUSTERS.filter(({ why }) => why === undefined).slice(-1);

/** Both in `npm run campaigns`, else these: for tests in which the clusters rarely differ. */
export const bothInCampaigns = (places: typeof CLUSTERS = ONE_CLUSTER): typeof CLUSTERS =>
  whyNoCampaign === undefined ? CLUSTERS : places;

export const startCluster = (name: ClusterName): Promise<TestControlPlane> =>
  name === 'real' ? startControlPlane() : startEmbeddedPlane();

async function startEmbeddedPlane(): Promise<TestControlPlane> {
  const { kubeconfig, server, token, tls, stop } = await startEmbedded();
  const { ca } = tls;
  return { url: server.url, token, ca, tls, kubeconfig, call: caller(server.url, token, ca), stop };
}
