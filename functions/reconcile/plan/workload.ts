// What brings that which runs an instance's gateway to what it should be, and what of another type is in the way?
import type { KubeObject } from '#core/ports/cluster.ts';
import { APPLIED_ANNOTATION } from '#crds/group.ts';
import type { Action } from '../action.ts';
import { scaleOf } from '../workload/deployment.ts';
import { PARTS_OF, type PartName, partTitle } from '../workload/parts.ts';
import type { PartView, WantedPart } from '../workload/wanted.ts';
import type { InstanceView } from '../world.ts';
import { about } from './about.ts';
import { judgeOwn } from './judge-workload.ts';

/** Only once its snapshot is there to be mounted. What is not ours is never touched; `judge-workload.ts` says so. */
export function planWorkload(view: InstanceView): Action[] {
  const { object, snapshot, workload } = view;
  const isMeant = workload.generation === object.metadata.generation;
  if (!isMeant || !snapshot.published || workload.held !== undefined || workload.type === undefined) return [];
  const applies = workload.wanted.flatMap((wanted) => planApply(view, wanted));
  if (applies.length > 0) return applies;
  const own = PARTS_OF[workload.type].filter((part) => !workload.wanted.some((wanted) => wanted.part === part));
  const unwanted = planDeletes(view, own, 'its scale leaves nothing to decide');
  // The one before serves until the one that takes its place does.
  if (unwanted.length > 0 || !judgeOwn(view).reached.ok) return unwanted;
  const others = Object.values(PARTS_OF)
    .filter((parts) => parts !== PARTS_OF[workload.type ?? 'Local'])
    .flatMap((parts) => planDeletes(view, parts.toReversed(), `the workload is of type ${workload.type} now`));
  return others;
}

function planApply(view: InstanceView, wanted: WantedPart): Action[] {
  const { object, workload } = view;
  const { part } = wanted;
  const live = workload.parts.get(part);
  const title = partTitle(part, object.metadata.name);
  const apply = (why: string, token: string, uid?: string): Action[] => [
    { action: 'ApplyWorkload', ...about(object, why), part, object: toApply(view, wanted, token, live), ...uidOf(uid) },
  ];
  if (live === undefined) return [];
  if (!live.there) return apply(`${title} is not there`, wanted.hash);
  const { metadata } = live.object;
  if (!live.ours || live.later !== undefined || metadata.deletionTimestamp !== undefined) return [];
  const token = metadata.annotations?.[APPLIED_ANNOTATION];
  const accepted = live.differsHash === '' ? wanted.hash : `${wanted.hash}.${live.differsHash}`;
  if (token === accepted) return [];
  const where = live.differs.slice(0, 3).join(', ');
  // The answer to our own apply differs: the API server, or a webhook, writes it in its own way. So it stays.
  if (live.answered) return apply(`${title} is kept as the API server has it (${where})`, accepted, metadata.uid);
  const asWanted = token === wanted.hash || token?.startsWith(`${wanted.hash}.`) === true;
  const why = asWanted ? `${title} was changed (${where})` : `${title} is to say what the instance says`;
  return apply(why, wanted.hash, metadata.uid);
}

const uidOf = (uid: string | undefined) => (uid === undefined ? {} : { uid });

/** With the number of replicas that the autoscaler has come to, where it decides them: without one they would fall to 1. */
function toApply(view: InstanceView, { part, object }: WantedPart, token: string, live?: PartView): KubeObject {
  const { metadata } = object;
  const annotations = { ...metadata.annotations, [APPLIED_ANNOTATION]: token };
  const annotated = { ...object, metadata: { ...metadata, annotations } };
  const spec = object.spec as { readonly replicas?: number };
  if (part !== 'Deployment' || spec.replicas !== undefined) return annotated;
  const { min, max } = scaleOf(view.object);
  const now = live?.there === true ? (live.object.spec as { readonly replicas?: number }).replicas : undefined;
  return { ...annotated, spec: { ...spec, replicas: Math.min(max, Math.max(min, now ?? min)) } };
}

function planDeletes({ object, workload }: InstanceView, parts: readonly PartName[], why: string): Action[] {
  return parts.flatMap((part): Action[] => {
    const live = workload.parts.get(part);
    if (live?.there !== true || !live.ours || live.later !== undefined) return [];
    if (live.object.metadata.deletionTimestamp !== undefined) return [];
    const { name, uid = '' } = live.object.metadata;
    const title = partTitle(part, object.metadata.name);
    return [{ action: 'DeleteWorkload', ...about(object, `${title}: ${why}`), part, object: name, uid }];
  });
}
