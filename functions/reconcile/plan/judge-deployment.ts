// Does a Deployment serve, and does all of it run the newest configuration? Judged by the status that its controller writes.
import * as z from 'zod';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Reached } from '../problem.ts';
import type { Running } from './running.ts';

const Count = z.number().default(0);
const Live = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string(), generation: Count }),
  spec: z.object({ replicas: z.number().default(1) }),
  status: z
    .object({
      observedGeneration: Count,
      replicas: Count,
      updatedReplicas: Count,
      availableReplicas: Count,
      conditions: z
        .array(
          z.object({
            type: z.string(),
            status: z.string(),
            reason: z.string().default(''),
            message: z.string().default(''),
          }),
        )
        .default([]),
    })
    .prefault({}),
});

/** Of Pods nothing is read: that they cannot start is told by the deadline that the Deployment has for a rollout. */
export function judgeDeployment(object: KubeObject): Running {
  const { metadata, spec, status } = Live.parse(object);
  const condition = (type: string) => status.conditions.find((one) => one.type === type);
  const title = `Deployment "${metadata.name}"`;
  const isSettled =
    status.observedGeneration >= metadata.generation &&
    status.updatedReplicas >= spec.replicas &&
    status.replicas <= status.updatedReplicas &&
    status.availableReplicas >= status.updatedReplicas;
  const trouble = whyStuck(Live.parse(object));
  if (condition('Available')?.status === 'True')
    return { reached: serving(title, isSettled, trouble), isSettled: isSettled && trouble === undefined };
  const counted = `${status.availableReplicas} of ${spec.replicas} replicas are available`;
  const reached: Reached =
    trouble === undefined
      ? { ok: false, reason: 'WorkloadNotReady', message: `${title} is starting: ${counted}` }
      : { ok: false, reason: trouble.reason, message: `${title}: ${counted}: ${trouble.message}` };
  return { reached, isSettled: false };
}

function serving(title: string, isSettled: boolean, trouble: ReturnType<typeof whyStuck>): Reached {
  if (trouble !== undefined)
    return { ok: true, message: `${title} serves, but not all of its new configuration comes up: ${trouble.message}` };
  return { ok: true, message: isSettled ? `${title} serves` : `${title} serves; its new configuration is rolled out` };
}

function whyStuck({ metadata: { namespace }, status }: z.output<typeof Live>) {
  const failure = status.conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True');
  if (failure !== undefined) return { reason: 'ReplicaFailure', message: failure.message };
  const late = status.conditions.find(({ type, status }) => type === 'Progressing' && status === 'False');
  if (late === undefined) return undefined;
  const look = `kubectl -n ${namespace} get pods -l app.kubernetes.io/name=gateway says why (an image that cannot be pulled, a Secret that is missing, no room)`;
  return { reason: late.reason || 'ProgressDeadlineExceeded', message: `${late.message} ${look}` };
}
