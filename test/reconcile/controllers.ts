// What do Kubernetes and Knative make of what runs a gateway? Their status, as their controllers write it.
import type { KubeObject } from '#core/ports/cluster.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import type { Harness } from './harness.ts';

type Condition = {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
};

export interface DeploymentStatus {
  /** Replicas of the newest template that are available. Default: all. */
  readonly updated?: number;
  /** Replicas of an earlier template that still run. Default: none. */
  readonly old?: number;
  /** Default: all that run. */
  readonly available?: number;
  readonly conditions?: readonly Condition[];
}

const replicasOf = ({ spec }: KubeObject) => (spec as { readonly replicas?: number }).replicas ?? 1;

/** The Deployment's controller has looked at it. */
export async function runDeployment(
  harness: Harness,
  name = 'main-gateway',
  status: DeploymentStatus = {},
): Promise<void> {
  const found = await harness.get(WORKLOAD_OBJECTS.Deployment, name);
  if (found === undefined) throw new Error(`there is no Deployment ${name}`);
  const wanted = replicasOf(found);
  const { updated = wanted, old = 0, available = updated + old, conditions } = status;
  const isAvailable = available >= wanted ? 'True' : 'False';
  await harness.editStatus(WORKLOAD_OBJECTS.Deployment, name, {
    observedGeneration: found.metadata.generation,
    replicas: updated + old,
    updatedReplicas: updated,
    readyReplicas: available,
    availableReplicas: available,
    conditions: conditions ?? [{ type: 'Available', status: isAvailable }],
  });
}

/** Knative has brought its newest revision up, or says what is wrong. */
export async function runKnative(
  harness: Harness,
  name = 'main-serving',
  conditions?: readonly Condition[],
): Promise<void> {
  const url = `http://${name}.default.svc.cluster.local`;
  const good = ['ConfigurationsReady', 'Ready', 'RoutesReady'].map((type) => ({ type, status: 'True' }));
  const found = await harness.get(WORKLOAD_OBJECTS.KnativeService, name);
  const observedGeneration = found?.metadata.generation;
  const traffic = [{ latestRevision: true }];
  await harness.editStatus(WORKLOAD_OBJECTS.KnativeService, name, {
    observedGeneration,
    url,
    conditions: conditions ?? good,
    traffic,
  });
}

/** The Gateways of the spec have taken the HTTPRoute, or say what is wrong. */
export async function acceptRoute(
  harness: Harness,
  parents?: ReadonlyArray<{ readonly parentRef: object | undefined; readonly conditions: readonly object[] }>,
  name = 'main-gateway',
): Promise<void> {
  const found = await harness.get(WORKLOAD_OBJECTS.HTTPRoute, name);
  const { parentRefs } = (found?.spec ?? { parentRefs: [] }) as { readonly parentRefs: readonly object[] };
  const good = ['Accepted', 'ResolvedRefs'].map((type) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime: '2026-11-21T12:00:00Z',
    observedGeneration: found?.metadata.generation,
  }));
  const controllerName = 'example.com/controller';
  const all = parents ?? parentRefs.map((parentRef) => ({ parentRef, conditions: good }));
  await harness.editStatus(WORKLOAD_OBJECTS.HTTPRoute, name, {
    parents: all.map((one) => ({ controllerName, ...one })),
  });
}

/** The controller of the Ingress' class serves it. */
export const addressIngress = (harness: Harness, name = 'main-gateway'): Promise<void> =>
  harness.editStatus(WORKLOAD_OBJECTS.Ingress, name, { loadBalancer: { ingress: [{ ip: '203.0.113.5' }] } });
