// Where do tests apply manifests with the stock kubectl, with our admission function in the path?
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import type { AdmissionDependencies } from '../../functions/admission/app.ts';
import { applyKinds, resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { makeAccounts } from '../../infra/platforms/local/cluster/accounts.ts';
import { openCertificates } from '../../infra/platforms/local/cluster/certificates.ts';
import { type ChildResult, run } from '../support/child.ts';
import { type ClusterName, startCluster } from '../support/clusters.ts';
import { type Api, type Deploy, inNode } from './runtimes.ts';

export interface Harness {
  /** The stock kubectl against this cluster; `input` is its standard input. */
  readonly kubectl: (args: ReadonlyArray<string>, input?: string) => Promise<ChildResult>;
  readonly cluster: Cluster;
  /** Address of its etcd, where it has one. */
  readonly etcd: string | undefined;
  /** How many reviews were answered so far. */
  readonly reviewed: () => number;
  /** Stops the function, and lets it come back on the same port. */
  readonly down: () => Promise<() => Promise<void>>;
  readonly stop: () => Promise<void>;
}

interface StartedHarness {
  readonly etcd: string | undefined;
  readonly kubeconfig: string;
  readonly api: Api;
  readonly stop: () => Promise<void>;
}

/**
 * A cluster with our CRDs and webhooks, and the function behind them; `more` is for the one that runs in this process.
 */
export async function openHarness(
  name: ClusterName,
  more: Partial<AdmissionDependencies> = {},
  deploy: Deploy = inNode,
): Promise<Harness> {
  const folder = mkdtempSync(join(tmpdir(), 'admission-'));
  const certificates = await openCertificates(folder, new Date());
  const started = await start(name);
  const { request, close } = await createKubeconfigTransport(started.kubeconfig);
  const cluster = createCluster({ request });

  // The embedded cluster judges no rights.
  const own = name === 'real' ? await asAdmission(started, folder) : { ...started.api, cluster, close: async () => {} };
  const served = await deploy({ ...own, folder, tls: certificates, more });

  await applyKinds(cluster);
  const options = { base: served.base, caBundle: certificates.ca };
  for (const webhook of webhookConfigurations(options)) await create(cluster, webhook);
  for (const namespace of ['platform', 'team-a', 'team-b']) {
    await create(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }

  const cache = join(folder, 'cache');
  const stop = async () => {
    await served.stop();
    await own.close();
    await close();
    await started.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    kubectl: (args, input) =>
      run('kubectl', ['--cache-dir', cache, ...args], { KUBECONFIG: started.kubeconfig, KUBE_EDITOR }, input),
    cluster,
    etcd: started.etcd,
    reviewed: served.reviewed,
    down: served.down,
    stop,
  };
}

/** Of the person who runs `kubectl edit`: writes what no budget is. */
const KUBE_EDITOR = `sed -i 's/maxBudget: .*/maxBudget: "ten"/'`;

async function start(name: ClusterName): Promise<StartedHarness> {
  const { kubeconfig, etcd, url, token, ca, stop } = await startCluster(name);
  return { kubeconfig, etcd, api: { url, token, ca }, stop };
}

/** With the rights of its service account, and no more. */
async function asAdmission({ kubeconfig, api }: StartedHarness, folder: string) {
  const { admission } = await makeAccounts(kubeconfig, folder);
  const { request, close } = await createKubeconfigTransport(admission);
  const { users } = parse(readFileSync(admission, 'utf8')) as { users: Array<{ user: { token: string } }> };
  return { ...api, token: users[0]?.user.token ?? '', cluster: createCluster({ request }), close };
}

async function create(cluster: Cluster, object: KubeObject): Promise<void> {
  const written = await cluster.create(resourceOf(object.kind), object);
  if (!written.ok) throw new Error(`${object.kind} ${object.metadata.name}: ${written.message}`);
}
