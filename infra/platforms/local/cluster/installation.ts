// An installed operator in the cluster of a kubeconfig, which a local stack must not take over; and the end of the
// stack's own webhooks there.
import type { Cluster, KubeObject, Resource } from '../../../../functions/core/ports/cluster.ts';
import { CONFIGURATION_NAME, WEBHOOK_CONFIGURATIONS } from '../../../../functions/reconcile/certificates/objects.ts';
import { createCluster } from '../../../adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '../../../adapters/kubernetes/node.ts';
import { type Options, UsageError } from '../options.ts';
import { readKubeconfig } from './cluster.ts';

/** Kinds that run the operator. Their objects have the label in every namespace, from manifests and from the chart. */
export const RUNNERS = [
  { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' },
  { group: 'batch', version: 'v1', plural: 'cronjobs', kind: 'CronJob' },
] as const satisfies ReadonlyArray<Resource>;
const LABEL = 'app.kubernetes.io/part-of=gateway-operator';

/**
 * Throws UsageError if the kubeconfig's cluster is not on this machine or has an installed operator. Writes nothing.
 */
export async function rejectInstalled({ cluster }: Options): Promise<void> {
  if (cluster.type !== 'kubeconfig') return;
  const { path } = cluster;
  const { url } = readKubeconfig(path);
  if (!isLoopback(url)) {
    throw new UsageError(
      `--cluster: ${path}: the API server is at ${url}, which is not an address of this machine (127.0.0.1), so it cannot call the webhooks of the local stack. Name the kubeconfig of a cluster on this machine, or use --cluster embedded or envtest. Nothing was changed.`,
    );
  }
  const { request, close } = await createKubeconfigTransport(path);
  const found = await findInstallation(createCluster({ request })).finally(close);
  if (found.length === 0) return;
  throw new UsageError(
    `--cluster: ${path}: the cluster has an installed operator: ${found.join(', ')}. The local stack would replace its webhooks and delete its gateways. Name another cluster, or remove the operator first (docs/install/uninstall.md). Nothing was changed.`,
  );
}

/** Parts of an installed operator, for a message; none if there was only a local stack, stopped or killed. */
export async function findInstallation(cluster: Cluster): Promise<ReadonlyArray<string>> {
  const hooks = WEBHOOK_CONFIGURATIONS.map(async (resource) => {
    const hook = await cluster.get(resource, undefined, CONFIGURATION_NAME);
    const elsewhere = addressesOf(hook).filter((address) => !isLoopback(address));
    return elsewhere.slice(0, 1).map((address) => `${resource.kind} ${CONFIGURATION_NAME} calls ${address}`);
  });
  const runners = RUNNERS.map(async (resource) => {
    const objects = await cluster.list(resource, { labelSelector: LABEL, metadataOnly: true });
    return objects.map(({ metadata: { namespace, name } }) => `${resource.kind} ${namespace}/${name}`);
  });
  return (await Promise.all([...hooks, ...runners])).flat();
}

/** Deletes the webhook configurations if they call `base`, the address of this stack's admission webhook. */
export async function removeWebhooks(cluster: Cluster, base: string): Promise<void> {
  const remove = async (resource: Resource) => {
    const hook = await cluster.get(resource, undefined, CONFIGURATION_NAME);
    const addresses = addressesOf(hook);
    if (hook === undefined || addresses.length === 0) return;
    if (!addresses.every((address) => address.startsWith(`${base}/`))) return;
    await cluster.delete(resource, undefined, CONFIGURATION_NAME, hook.metadata.uid ?? '');
  };
  await Promise.all(WEBHOOK_CONFIGURATIONS.map(remove));
}

/** Addresses that the configuration calls; for a Service, its namespace and name. */
function addressesOf(hook: KubeObject | undefined): ReadonlyArray<string> {
  const webhooks = (hook?.webhooks ?? []) as ReadonlyArray<{ readonly clientConfig: ClientConfig }>;
  return webhooks.map(({ clientConfig: { url, service } }) => url ?? `Service ${service?.namespace}/${service?.name}`);
}

interface ClientConfig {
  readonly url?: string;
  readonly service?: { readonly namespace: string; readonly name: string };
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && /^(localhost|127\.[0-9.]+|\[::1\])$/.test(new URL(url).hostname);
}
