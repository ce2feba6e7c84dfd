// The desired objects that run an instance's gateway, complete. Pure functions; the result is plain JSON.

import { gatewayName } from '#core/keys/object-names.ts';
import { parseDuration } from '#core/money/duration.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { LOGINS_ANNOTATION } from '#crds/names/group.ts';
import { METRICS_PORT, PORT, type PodInput, podTemplate } from './pod.ts';
import {
  selectorOf,
  toWorkloadObject,
  WORKLOAD_OBJECTS,
  type WorkloadObjectKind,
  type WorkloadType,
} from './workload-objects.ts';

/** The maximum seconds that Knative gives a request, unless its `config-defaults` has another value. */
const MAX_KNATIVE_REQUEST = 600;

/** `replicas`: of the existing Deployment. */
export function desiredParts(
  type: WorkloadType,
  input: PodInput,
  replicas?: number,
): ReadonlyArray<{ readonly objectKind: WorkloadObjectKind; readonly object: KubeObject }> {
  const specs =
    type === 'Knative'
      ? [['KnativeService', knativeSpec(input)] as const]
      : type === 'Deployment'
        ? deploymentSpecs(input, replicas)
        : [];
  const annotations = { [LOGINS_ANNOTATION]: input.logins };
  return specs.map(([objectKind, spec]) => ({
    objectKind,
    object: toWorkloadObject(objectKind, { ...input, ...(isMain(objectKind) && { annotations }) }, spec),
  }));
}

const isMain = (objectKind: WorkloadObjectKind): boolean =>
  objectKind === 'Deployment' || objectKind === 'KnativeService';

/** Replicas of a Deployment: at least one, because nothing starts a Deployment that has none. */
export function scaleOf({ spec }: GatewayInstance): { readonly min: number; readonly max: number } {
  const min = Math.max(1, spec.workload.scale?.min ?? 1);
  return { min, max: Math.max(min, spec.workload.scale?.max ?? min) };
}

/** The replicas that an autoscaler or a person has set, within the bounds of the instance; else its minimum. */
function replicasOf(instance: GatewayInstance, live: number | undefined): number {
  const { min, max } = scaleOf(instance);
  return Math.min(max, Math.max(min, live ?? min));
}

/** The desired Deployment as a write of exactly the version that `live` has, with the replicas of `live`. */
export function withLiveReplicas(desired: KubeObject, live: KubeObject, instance: GatewayInstance): KubeObject {
  const { uid = '', resourceVersion = '' } = live.metadata;
  const { replicas } = live.spec as { readonly replicas?: number };
  const spec = { ...(desired.spec as object), replicas: replicasOf(instance, replicas) };
  return { ...desired, metadata: { ...desired.metadata, uid, resourceVersion }, spec };
}

/** The address of the Service for Pods, whatever the cluster's domain is. */
export const serviceUrl = ({ metadata: { namespace, name } }: GatewayInstance): string =>
  `http://${gatewayName(name)}.${namespace}.svc`;

/**
 * Deployment, Service, disruption budget, and an autoscaler if replicas may vary. `replicas`: the number that an
 * autoscaler has set; it stays within the bounds. A Deployment without the field would get one replica.
 */
function deploymentSpecs(input: PodInput, replicas: number | undefined): Array<readonly [WorkloadObjectKind, object]> {
  const { min, max } = scaleOf(input.instance);
  const { name } = input.instance.metadata;
  const selector = selectorOf(name);
  const { group, version, kind } = WORKLOAD_OBJECTS.Deployment;
  const scaleTargetRef = { apiVersion: `${group}/${version}`, kind, name: gatewayName(name) };
  const scaler = { scaleTargetRef, minReplicas: min, maxReplicas: max, metrics: scalerMetrics(input.instance) };
  const ports = [{ name: 'http', port: 80, targetPort: 'http', appProtocol: 'http' }];
  // One Pod at a time may be evicted. A Pod that is not ready may always be evicted.
  const budget = { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector: { matchLabels: selector } };
  return [
    ['Deployment', deploymentSpec(input, replicasOf(input.instance, replicas))],
    ['Service', { selector, ports }],
    ['PodDisruptionBudget', budget],
    ...(hasScaler(input.instance) ? [['HorizontalPodAutoscaler', scaler] as const] : []),
  ];
}

/** Whether the instance's Deployment has our autoscaler: not if its replicas are fixed or left to another one. */
function hasScaler(instance: GatewayInstance): boolean {
  const { min, max } = scaleOf(instance);
  return min !== max && instance.spec.workload.scale?.autoscaler !== 'None';
}

function scalerMetrics({ spec }: GatewayInstance): ReadonlyArray<object> {
  const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } };
  const target = spec.workload.scale?.targetRequestsInFlight;
  const metric = { name: 'gateway_operator_requests_in_flight' };
  const requests = { metric, target: { type: 'AverageValue', averageValue: `${target}` } };
  return [{ type: 'Resource', resource: cpu }, ...(target === undefined ? [] : [{ type: 'Pods', pods: requests }])];
}

function deploymentSpec(input: PodInput, replicas: number): object {
  const labels = selectorOf(input.instance.metadata.name);
  const selector = { matchLabels: labels };
  return {
    replicas,
    // Counters in memory belong to one process: never two at a time, not even during a rollout.
    strategy:
      input.store === 'memory'
        ? { type: 'Recreate', rollingUpdate: null }
        : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: '25%' } },
    progressDeadlineSeconds: 300,
    revisionHistoryLimit: 2,
    selector,
    template: podTemplate(input, {
      labels,
      pod: {
        // Written even if the instance names none: the API server keeps a copy under an older field name, and would
        // restore that.
        serviceAccountName: 'default',
        securityContext: { runAsNonRoot: true, fsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        // 5 s until no request arrives any more, then at most 29 s: 1 s in which clients leave, 18 s for open streams,
        // the rest to book (infra/runtime/node/process.ts).
        terminationGracePeriodSeconds: 35,
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: selector,
          },
        ],
      },
      container: {
        ports: [
          { name: 'http', containerPort: PORT },
          { name: 'metrics', containerPort: METRICS_PORT },
        ],
        // On the metrics port, because clients may take every connection of the other port.
        readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
        livenessProbe: { httpGet: { path: '/healthz', port: 'metrics' } },
        // The Service stops using a Pod a moment after the Pod begins to stop.
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
      },
    }),
  };
}

/**
 * Knative has no grace period, no hook before a stop and no security context for a Pod. A disruption budget would delay
 * the draining of nodes for short-lived Pods.
 */
function knativeSpec(input: PodInput): object {
  const { instance } = input;
  const seconds = secondsOf(instance);
  const template = podTemplate(input, {
    // Other labels than those by which a Deployment of the same instance selects its Pods: both exist while one
    // replaces the other.
    labels: { ...selectorOf(instance.metadata.name), 'app.kubernetes.io/name': 'gateway-serving' },
    annotations: scaleAnnotations(instance),
    // Streams wait most of the time, so the autoscaler bounds their number, not a limit of the container.
    pod: { containerConcurrency: 0, timeoutSeconds: seconds, responseStartTimeoutSeconds: seconds },
    container: {
      ports: [{ name: 'http1', containerPort: PORT }],
      readinessProbe: { httpGet: { path: '/readyz' } },
      livenessProbe: { httpGet: { path: '/healthz' } },
    },
  });
  return { template };
}

function secondsOf({ spec }: GatewayInstance): number {
  const millis = parseDuration(spec.routing.timeouts.total) ?? 0;
  return Math.min(MAX_KNATIVE_REQUEST, Math.max(1, Math.ceil(millis / 1000)));
}

/** Absent if the spec leaves it open: then the annotations of its Pods, or Knative, decide. */
function scaleAnnotations({ spec }: GatewayInstance): Readonly<Record<string, string>> {
  const { min, max, targetRequestsInFlight: target } = spec.workload.scale ?? {};
  return {
    ...(min === undefined ? {} : { 'autoscaling.knative.dev/min-scale': String(min) }),
    ...(max === undefined ? {} : { 'autoscaling.knative.dev/max-scale': String(max) }),
    ...(target === undefined ? {} : { 'autoscaling.knative.dev/target': String(target) }),
  };
}
