// The objects that should run an instance's gateway, stated whole. Pure; JSON throughout.
import type { KubeObject } from '#core/ports/cluster.ts';
import { autoscaler, deployment, disruptionBudget, service } from './deployment.ts';
import { knativeService } from './knative.ts';
import type { PartName, WorkloadType } from './parts.ts';
import type { PodInput } from './pod.ts';

export interface WantedPart {
  readonly part: PartName;
  readonly object: KubeObject;
}

/** `replicas`: of the Deployment that is there. */
export function wantedParts(type: WorkloadType, input: PodInput, replicas?: number): ReadonlyArray<WantedPart> {
  if (type === 'Knative') return [{ part: 'KnativeService', object: knativeService(input) }];
  if (type !== 'Deployment') return [];
  const scaler = autoscaler(input);
  return [
    { part: 'Deployment', object: deployment(input, replicas) },
    { part: 'Service', object: service(input) },
    { part: 'PodDisruptionBudget', object: disruptionBudget(input) },
    ...(scaler === undefined ? [] : [{ part: 'HorizontalPodAutoscaler' as const, object: scaler }]),
  ];
}
