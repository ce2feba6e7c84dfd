// A gateway on Knative: one Service that scales to zero, reachable from inside the cluster.
import { parseDuration } from '#core/duration.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { selectorOf, toPart } from './parts.ts';
import { account, container, PORT, type PodInput, podMetadata, volumes } from './pod.ts';

/** Seconds that Knative gives a request at most, unless its `config-defaults` says otherwise. */
const LONGEST_REQUEST = 600;

/**
 * Knative knows no grace period, no hook before a stop and no security context of a Pod; a disruption budget would hold
 * up nodes for Pods that come and go. It is not on the public ingress: whoever wants that maps a domain to it.
 */
export function knativeService(input: PodInput): KubeObject {
  const { instance } = input;
  // Not those by which a Deployment of the same instance selects its Pods: while one takes the other's place, both are there.
  const selected = { ...selectorOf(instance.metadata.name), 'app.kubernetes.io/name': 'gateway-serving' };
  const { labels, annotations } = podMetadata(input, selected);
  const seconds = secondsOf(instance);
  const part = toPart('KnativeService', input, {
    spec: {
      template: {
        metadata: { labels, annotations: { ...annotations, ...scaleAnnotations(instance) } },
        spec: {
          ...account(input),
          // Streams wait most of their time: how many run at once is for the autoscaler, not a limit.
          containerConcurrency: 0,
          timeoutSeconds: seconds,
          responseStartTimeoutSeconds: seconds,
          containers: [
            {
              ...container(input),
              ports: [{ name: 'http1', containerPort: PORT }],
              readinessProbe: { httpGet: { path: '/readyz' } },
              livenessProbe: { httpGet: { path: '/healthz' } },
            },
          ],
          volumes: volumes(input),
        },
      },
    },
  });
  const visibility = { 'networking.knative.dev/visibility': 'cluster-local' };
  return { ...part, metadata: { ...part.metadata, labels: { ...part.metadata.labels, ...visibility } } };
}

function secondsOf({ spec }: GatewayInstance): number {
  const millis = parseDuration(spec.routing.timeouts.total) ?? 0;
  return Math.min(LONGEST_REQUEST, Math.max(1, Math.ceil(millis / 1000)));
}

/** Left out where the spec leaves it open: then the annotations of its Pods, or Knative, decide. */
function scaleAnnotations({ spec }: GatewayInstance): Readonly<Record<string, string>> {
  const { min, max } = spec.workload.scale ?? {};
  return {
    ...(min === undefined ? {} : { 'autoscaling.knative.dev/min-scale': String(min) }),
    ...(max === undefined ? {} : { 'autoscaling.knative.dev/max-scale': String(max) }),
  };
}
