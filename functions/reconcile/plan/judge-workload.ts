// Does what runs an instance's gateway serve, where, and which snapshot? Read off the status that controllers write.
import { SNAPSHOT_ANNOTATION, VERSION_ANNOTATION } from '#crds/group.ts';
import type { Problem, Reached } from '../problem.ts';
import { serviceUrl } from '../workload/deployment.ts';
import { PARTS_OF, type PartName, partTitle, type WorkloadType } from '../workload/parts.ts';
import type { PartView } from '../workload/wanted.ts';
import type { InstanceView } from '../world.ts';
import { judgeDeployment } from './judge-deployment.ts';
import { judgeKnative } from './judge-knative.ts';

export interface Workload {
  readonly reached: Reached;
  readonly url: string | undefined;
  readonly type: WorkloadType | undefined;
  /** Whether all that serve have the published snapshot. */
  readonly isCurrent: boolean;
}

/** While a new type comes up, the one before goes on serving where it was. */
export function judgeWorkload(view: InstanceView): Workload {
  const own = judgeOwn(view);
  const before = view.object.status?.url;
  const old = own.reached.ok || before === undefined ? undefined : judgeOther(view);
  if (old === undefined || own.reached.ok) return own;
  const message = `${old} serves until its successor does: ${own.reached.message}`;
  return { ...own, reached: { ok: true, message }, url: before };
}

export function judgeOwn(view: InstanceView): Workload {
  const { object, workload, servedAt } = view;
  const { type, held } = workload;
  if (type === 'External') {
    const { url } = object.spec.workload;
    return { reached: { ok: true, message: `runs elsewhere, at ${url}` }, url, type, isCurrent: true };
  }
  if (type === 'Local') {
    const message = 'the local stack serves it in its own process';
    return { reached: { ok: true, message }, url: servedAt, type, isCurrent: true };
  }
  if (type === undefined)
    return { reached: notMade(held), url: object.status?.url, type: object.status?.workloadType, isCurrent: false };
  const url = type === 'Deployment' ? serviceUrl(object) : undefined;
  const problem = workload.refused ?? whyNotOurs(view, PARTS_OF[type]);
  const [first] = PARTS_OF[type];
  const live = first === undefined ? undefined : workload.parts.get(first);
  if (live?.there !== true || !live.ours)
    return { reached: problem === undefined ? notMade(held) : { ok: false, ...problem }, url, type, isCurrent: false };
  const running = type === 'Deployment' ? judgeDeployment(live.object) : judgeKnative(live.object);
  // Without its own Service nobody reaches it, however well it runs.
  const stops = running.reached.ok ? whyNotOurs(view, ['Service']) : problem;
  const reached = stops === undefined ? running.reached : { ok: false as const, ...stops };
  const waits = problem ?? whyLater(view, PARTS_OF[type]) ?? held;
  return {
    reached:
      reached.ok && waits !== undefined
        ? { ...reached, message: `${reached.message}; changes wait: ${waits.message}` }
        : reached,
    url: url ?? running.url ?? urlBefore(view),
    type,
    isCurrent: running.isSettled && snapshotOf(live) === view.snapshot.hash,
  };
}

const urlBefore = ({ object: { status }, workload: { type } }: InstanceView): string | undefined =>
  status?.workloadType === type ? status?.url : undefined;

const notMade = (held: Problem | undefined): Reached => ({
  ok: false,
  ...(held ?? { reason: 'WorkloadNotReady', message: 'what runs the gateway is not made yet' }),
});

function whyNotOurs({ object, workload }: InstanceView, parts: readonly PartName[]): Problem | undefined {
  const foreign = parts.find((part) => {
    const live = workload.parts.get(part);
    return live?.there === true && !live.ours && workload.wanted.some((wanted) => wanted.part === part);
  });
  if (foreign === undefined) return undefined;
  const title = partTitle(foreign, object.metadata.name);
  const message = `${title} is there and is not this instance's, so it is left alone: delete it, or give the instance another name`;
  return { reason: 'WorkloadConflict', message };
}

/** An operator that was rolled back, or that an update has not stopped yet, never undoes what its successor wrote. */
function whyLater({ object, workload }: InstanceView, parts: readonly PartName[]): Problem | undefined {
  const [found] = parts.flatMap((part) => {
    const live = workload.parts.get(part);
    return live?.there === true && live.later !== undefined ? [[part, live.later] as const] : [];
  });
  if (found === undefined) return undefined;
  const [part, later] = found;
  const message = `${partTitle(part, object.metadata.name)} was written by version ${later} of the operator, which is later than this one, so it is left as it is: update the operator, or remove the annotation ${VERSION_ANNOTATION} from it`;
  return { reason: 'WrittenByLaterVersion', message };
}

/** What of another type still serves, for people. */
function judgeOther({ object, workload }: InstanceView): string | undefined {
  for (const other of ['Deployment', 'Knative'] as const) {
    if (other === workload.type) continue;
    const [first] = PARTS_OF[other];
    const live = first === undefined ? undefined : workload.parts.get(first);
    if (first === undefined || live?.there !== true || !live.ours) continue;
    const { reached } = other === 'Deployment' ? judgeDeployment(live.object) : judgeKnative(live.object);
    if (reached.ok) return partTitle(first, object.metadata.name);
  }
  return undefined;
}

function snapshotOf(live: Extract<PartView, { readonly there: true }>): string | undefined {
  type Template = { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } };
  const { template } = live.object.spec as { readonly template?: Template };
  return template?.metadata?.annotations?.[SNAPSHOT_ANNOTATION];
}
