// How does a gateway run on plain Kubernetes? Deployment, Service, disruption budget and, where replicas may vary, an autoscaler.
import { gatewayName } from '#core/names.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { PARTS, selectorOf, toPart } from './parts.ts';
import { account, container, METRICS_PORT, type Order, PORT, podMetadata, volumes } from './pod.ts';

/** Replicas: nothing wakes a Deployment that has none, so one is the least. */
export function scaleOf({ spec }: GatewayInstance): { readonly min: number; readonly max: number } {
  const min = Math.max(1, spec.workload.scale?.min ?? 1);
  return { min, max: Math.max(min, spec.workload.scale?.max ?? min) };
}

/** Without `replicas` where an autoscaler decides them. */
export function deployment(order: Order): KubeObject {
  const { min, max } = scaleOf(order.instance);
  const { name } = order.instance.metadata;
  const selector = { matchLabels: selectorOf(name) };
  return toPart('Deployment', order, {
    spec: {
      ...(min === max ? { replicas: min } : {}),
      // Counters in memory belong to one process: never two at a time, during a rollout neither.
      strategy:
        order.store === 'memory'
          ? { type: 'Recreate', rollingUpdate: null }
          : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: '25%' } },
      progressDeadlineSeconds: 300,
      revisionHistoryLimit: 2,
      selector,
      template: {
        metadata: podMetadata(order, selectorOf(name)),
        spec: {
          // Said even where none is named: the API server keeps a copy under an older name, and would bring it back.
          serviceAccountName: 'default',
          ...account(order),
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
              ...container(order),
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
          volumes: volumes(order),
        },
      },
    },
  });
}

export function service(order: Order): KubeObject {
  const { instance } = order;
  const ports = [{ name: 'http', port: 80, targetPort: 'http', appProtocol: 'http' }];
  const selector = selectorOf(instance.metadata.name);
  return toPart('Service', order, { spec: { selector, ports } });
}

/** Where Pods of the cluster reach the Service, whatever the cluster's domain is. */
export const serviceUrl = ({ metadata: { namespace, name } }: GatewayInstance): string =>
  `http://${gatewayName(name)}.${namespace}.svc`;

/** One at a time may be moved; one that does not work may always be. */
export function disruptionBudget(order: Order): KubeObject {
  const { instance } = order;
  const selector = { matchLabels: selectorOf(instance.metadata.name) };
  return toPart('PodDisruptionBudget', order, {
    spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector },
  });
}

/** Nothing where `scale` leaves no choice. */
export function autoscaler(order: Order): KubeObject | undefined {
  const { instance } = order;
  const { min, max } = scaleOf(instance);
  if (min === max) return undefined;
  const { group, version, kind } = PARTS.Deployment;
  const scaleTargetRef = { apiVersion: `${group}/${version}`, kind, name: gatewayName(instance.metadata.name) };
  const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } };
  return toPart('HorizontalPodAutoscaler', order, {
    spec: { scaleTargetRef, minReplicas: min, maxReplicas: max, metrics: [{ type: 'Resource', resource: cpu }] },
  });
}
