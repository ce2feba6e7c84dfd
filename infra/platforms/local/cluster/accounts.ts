// Accounts of the stack's functions at the API server.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import type { Cluster } from '../../../../functions/core/ports/cluster.ts';
import { createCluster } from '../../../adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '../../../adapters/kubernetes/node.ts';
import { accessManifests, put } from '../../../packaging/manifests/apply.ts';
import { accountUser, NAMESPACE } from '../../../packaging/manifests/webhooks.ts';
import type { StartContext } from '../start.ts';
import { writeKubeconfig } from './kubeconfig.ts';

export interface Accounts {
  readonly admission: Cluster;
  readonly reconcile: Cluster;
  /** The user whose writes are not reviewed; undefined: all writes are. */
  readonly ownUser?: string;
}

type Context = Pick<StartContext, 'options' | 'state' | 'onStop'>;

/**
 * Clusters as the functions reach them. On a real API server of the stack's own they have the rights of their service
 * accounts, from the manifests that every cluster gets. The embedded one has no RBAC, but reconcile has its usual user
 * name.
 * In the cluster of a kubeconfig they are its user, who may not be allowed to impersonate others.
 */
export async function openAccounts(context: Context, kubeconfig: string, cluster: Cluster): Promise<Accounts> {
  const { options, state, onStop } = context;
  const open = async (...of: Parameters<typeof createKubeconfigTransport>) => {
    const { request, close } = await createKubeconfigTransport(...of);
    onStop(close);
    return createCluster({ request });
  };
  const ownUser = accountUser('reconcile');
  if (options.cluster.type === 'kubeconfig') return { admission: cluster, reconcile: cluster };
  if (options.cluster.type === 'embedded') {
    return {
      admission: cluster,
      reconcile: await open(kubeconfig, { 'impersonate-user': ownUser, 'impersonate-group': 'system:masters' }),
      ownUser,
    };
  }
  const files = await makeAccounts(kubeconfig, state.path('accounts'));
  return { admission: await open(files.admission), reconcile: await open(files.reconcile), ownUser };
}

/**
 * Applies the accounts and their roles as an administrator. Returns kubeconfig files in `folder`, each with the token
 * of one account, and nothing of the administrator.
 */
export async function makeAccounts(
  kubeconfig: string,
  folder: string,
): Promise<Readonly<Record<'admission' | 'reconcile', string>>> {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const { server: url = '', caData = '' } = config.getCurrentCluster() ?? {};
  const { request, close } = await createKubeconfigTransport(kubeconfig);
  const cluster = createCluster({ request });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const make = async (name: string) => {
    const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' };
    const body = JSON.stringify({ ...kind, spec: { expirationSeconds: LIFETIME } });
    const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${name}/token`;
    const signal = AbortSignal.timeout(10_000);
    const answer = await request({ method: 'POST', path, body, contentType: 'application/json', signal });
    const { status } = JSON.parse(answer.text) as { readonly status: { readonly token: string } };
    const file = join(folder, `${name}.kubeconfig`);
    writeKubeconfig(file, { url, ca: Buffer.from(caData, 'base64').toString(), token: status.token });
    return file;
  };
  try {
    for (const object of accessManifests()) await put(cluster, object, true);
    return { admission: await make('admission'), reconcile: await make('reconcile') };
  } finally {
    await close();
  }
}

/** Seconds: a year, longer than a local stack runs. Each start creates new tokens. */
const LIFETIME = 365 * 86_400;
