// Does a Knative Service serve, where, and is its newest revision the one that does? Judged by the status that its controller writes.
import * as z from 'zod';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Reached } from '../problem.ts';
import type { Running } from './running.ts';

const Condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().default(''),
  message: z.string().default(''),
});
const Live = z.object({
  metadata: z.object({ name: z.string(), generation: z.number().default(0) }),
  status: z
    .object({
      observedGeneration: z.number().default(0),
      conditions: z.array(Condition).default([]),
      url: z.string().optional(),
      latestCreatedRevisionName: z.string().optional(),
      latestReadyRevisionName: z.string().optional(),
      traffic: z.array(z.object({ latestRevision: z.boolean().default(false) })).default([]),
    })
    .prefault({}),
});

/** Its route serves as long as any revision does; `Ready` also asks for the newest. */
export function judgeKnative(object: KubeObject): Running {
  const { metadata, status } = Live.parse(object);
  const title = `Knative Service "${metadata.name}"`;
  const isTrue = (type: string) => status.conditions.find((one) => one.type === type)?.status === 'True';
  const isSettled =
    status.observedGeneration >= metadata.generation &&
    isTrue('Ready') &&
    status.latestCreatedRevisionName === status.latestReadyRevisionName &&
    status.traffic.every(({ latestRevision }) => latestRevision);
  return { reached: toReached(title, status, isSettled), url: status.url, isSettled };
}

function toReached(title: string, { conditions, url }: z.output<typeof Live>['status'], isSettled: boolean): Reached {
  const routes = conditions.find(({ type }) => type === 'RoutesReady');
  const bad = conditions.filter(({ status }) => status === 'False');
  const [cause] = [...bad.filter(({ type }) => type !== 'Ready'), ...bad];
  if (routes?.status === 'True' && url !== undefined) {
    if (cause !== undefined)
      return { ok: true, message: `${title} serves, but its new configuration does not come up: ${cause.message}` };
    return {
      ok: true,
      message: isSettled ? `${title} serves` : `${title} serves; its new configuration is rolled out`,
    };
  }
  if (cause === undefined)
    return {
      ok: false,
      reason: 'WorkloadNotReady',
      message: `${title} is starting: Knative has not said that it is ready`,
    };
  return { ok: false, reason: cause.reason || 'WorkloadNotReady', message: `${title}: ${cause.message}` };
}
