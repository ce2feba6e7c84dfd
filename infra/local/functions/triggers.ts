// What makes reconcile look, and the gateways follow? A watch on the cluster, and the cron.
import type { KubeTransport } from '#adapters/kubernetes/transport.ts';
import { watch } from '#adapters/kubernetes/watch.ts';
import type { Log } from '#core/ports/clock.ts';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { nodeDependencies } from '../../node/platform.ts';
import { SOURCES, startChanges } from '../../triggers/changes.ts';
import { DEPLOYMENTS } from '../../triggers/workload-changes.ts';
import { resourceOf } from '../cluster/manifests.ts';
import type { Gateways } from './gateways.ts';
import { startSchedule } from './schedule.ts';

export interface TriggerDependencies {
  /** As whoever may read Secrets: what kubelets mount. */
  readonly request: KubeTransport;
  /** As reconcile: what it is told of. */
  readonly own: KubeTransport;
  readonly cluster: Cluster;
  readonly gateways: Gateways;
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<void>;
  readonly newId: () => string;
  /** Seconds between two sweeps. */
  readonly schedule: number;
  readonly log: Log;
}

/** Starts them, with the gateways of every instance that is already there (what their outboxes hold is booked first). Answers how to stop. */
export async function startTriggers(deps: TriggerDependencies): Promise<() => Promise<void>> {
  const { gateways, log, post } = deps;
  const sweep = () => post({}, '');
  const changes = startChanges({
    ...nodeDependencies(),
    sources: [...SOURCES, DEPLOYMENTS],
    watch: ({ resource, labelSelector }, watching) =>
      watch(deps.own, { resource, ...(labelSelector === undefined ? {} : { labelSelector }), ...watching }),
    post,
    sweep,
    newId: deps.newId,
    onChange: ({ object: { kind, metadata } }) => {
      if (kind === 'GatewayInstance') void gateways.refresh(metadata.namespace ?? '', metadata.name);
    },
  });
  const stopSecrets = followSecrets(deps);
  const stopSchedule = startSchedule(deps.schedule, () =>
    sweep().catch((error: unknown) => log.warn('sweep failed', { error: String(error) })),
  );
  const instances = await deps.cluster.list(resourceOf('GatewayInstance'));
  await Promise.all(instances.map(({ metadata }) => gateways.refresh(metadata.namespace ?? '', metadata.name)));
  return async () => {
    await Promise.allSettled([stopSchedule(), changes.stop(), stopSecrets()]);
  };
}

/** Mounted Secrets change under a running gateway, as the kubelet's volumes do. */
function followSecrets({ request, gateways }: TriggerDependencies): () => Promise<void> {
  const controller = new AbortController();
  const watching = watch(request, {
    resource: RESOURCES.secrets,
    signal: controller.signal,
    onEvent: ({ object }) => void gateways.refreshNamespace(object.metadata.namespace ?? ''),
  });
  return async () => {
    controller.abort();
    await watching;
  };
}
