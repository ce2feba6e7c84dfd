// A gateway on plain Kubernetes: Deployment, Service, disruption budget and, where replicas may vary, an autoscaler.
import { gatewayName } from '#core/names.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { PARTS, selectorOf, toPart } from './parts.ts';
import { account, container, METRICS_PORT, PORT, type PodInput, podMetadata, volumes } from './pod.ts';

/** Replicas: nothing wakes a Deployment that has none, so one is the least. */
export function scaleOf({ spec }: GatewayInstance): { readonly min: number; readonly max: number } {
  const min = Math.max(1, spec.workload.scale?.min ?? 1);
  return { min, max: Math.max(min, spec.workload.scale?.max ?? min) };
}

/** `replicas`: what the autoscaler has come to, within its bounds: a Deployment that says nothing of them has one. */
export function deployment(input: PodInput, replicas: number | undefined): KubeObject {
  const { min, max } = scaleOf(input.instance);
  const { name } = input.instance.metadata;
  const selector = { matchLabels: selectorOf(name) };
  return toPart('Deployment', input, {
    spec: {
      replicas: Math.min(max, Math.max(min, replicas ?? min)),
      // Counters in memory belong to one process: never two at a time, during a rollout neither.
      strategy:
        input.store === 'memory'
          ? { type: 'Recreate', rollingUpdate: null }
          : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: '25%' } },
      progressDeadlineSeconds: 300,
      revisionHistoryLimit: 2,
      selector,
      template: {
        metadata: podMetadata(input, selectorOf(name)),
        spec: {
          // Said even where none is named: the API server keeps a copy under an older name, and would bring it back.
          serviceAccountName: 'default',
          ...account(input),
          securityContext: { runAsNonRoot: true, fsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } },
          // 5 s until nobody sends any more, 20 s for open streams, the rest to book.
          terminationGracePeriodSeconds: 35,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'ScheduleAnyway',
              labelSelector: selector,
            },
          ],
          containers: [
            {
              ...container(input),
              ports: [
                { name: 'http', containerPort: PORT },
                { name: 'metrics', containerPort: METRICS_PORT },
              ],
              readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
              livenessProbe: { httpGet: { path: '/healthz', port: 'http' } },
              // The Service forgets a Pod a moment after it was told to stop.
              lifecycle: { preStop: { sleep: { seconds: 5 } } },
            },
          ],
          volumes: volumes(input),
        },
      },
    },
  });
}

export function service(input: PodInput): KubeObject {
  const { instance } = input;
  const ports = [{ name: 'http', port: 80, targetPort: 'http', appProtocol: 'http' }];
  const selector = selectorOf(instance.metadata.name);
  return toPart('Service', input, { spec: { selector, ports } });
}

/** Where Pods of the cluster reach the Service, whatever the cluster's domain is. */
export const serviceUrl = ({ metadata: { namespace, name } }: GatewayInstance): string =>
  `http://${gatewayName(name)}.${namespace}.svc`;

/** One at a time may be moved; one that does not work may always be. */
export function disruptionBudget(input: PodInput): KubeObject {
  const { instance } = input;
  const selector = { matchLabels: selectorOf(instance.metadata.name) };
  return toPart('PodDisruptionBudget', input, {
    spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector },
  });
}

/** Undefined where `scale` leaves nothing to decide. */
export function autoscaler(input: PodInput): KubeObject | undefined {
  const { instance } = input;
  const { min, max } = scaleOf(instance);
  if (min === max) return undefined;
  const { group, version, kind } = PARTS.Deployment;
  const scaleTargetRef = { apiVersion: `${group}/${version}`, kind, name: gatewayName(instance.metadata.name) };
  const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } };
  return toPart('HorizontalPodAutoscaler', input, {
    spec: { scaleTargetRef, minReplicas: min, maxReplicas: max, metrics: [{ type: 'Resource', resource: cpu }] },
  });
}
