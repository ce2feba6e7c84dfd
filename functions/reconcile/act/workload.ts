// How is what runs a gateway written and removed? By server-side apply: fields and annotations of others stay.
import type { ActionName, ActionOf } from '../action.ts';
import type { Fact } from '../learn.ts';
import { PARTS, type PartName, partName } from '../workload/parts.ts';
import { viewPart } from '../workload/wanted.ts';
import { pathOf } from '../world.ts';
import { done, type Hands, type Performer, stale } from './hands.ts';
import { movedMeanwhile } from './objects.ts';

const applyWorkload: Performer<'ApplyWorkload'> = async (action, hands) => {
  const { part, object, uid, namespace } = action;
  // A slow run never undoes an edit that a faster one has carried already.
  const moved = await movedMeanwhile(action, hands);
  if (moved !== undefined) return stale(moved);
  const { metadata } = object;
  const aimed = uid === undefined ? object : { ...object, metadata: { ...metadata, uid } };
  const written = await hands.deps.cluster.apply(PARTS[part], aimed);
  if (written.ok) {
    const order = orderOf(action, hands);
    if (order === undefined) return stale();
    const wanted = order.workload.wanted.find((one) => one.part === part);
    const view = viewPart(written.object, wanted, {
      order: { instance: order.object },
      hash: hands.deps.hash,
      answered: true,
    });
    return done({ fact: 'part', instance: pathOf(action), part, view });
  }
  const { refusal, message } = written;
  if (refusal === 'terminating') return { ended: 'moot', why: message };
  if (refusal === 'conflict') return stale(await lookAtPart({ ...action, namespace }, part, hands));
  const why = `the API server does not take ${PARTS[part].kind} "${metadata.name}": ${message}`;
  const problem = { reason: 'WorkloadRefused', message: why };
  return { ended: 'failed', why, facts: [{ fact: 'workloadRefused', instance: pathOf(action), problem }] };
};

const deleteWorkload: Performer<'DeleteWorkload'> = async (action, hands) => {
  const { part, object, uid, namespace } = action;
  const moved = await movedMeanwhile(action, hands);
  if (moved !== undefined) return stale(moved);
  const written = await hands.deps.cluster.delete(PARTS[part], namespace, object, uid);
  if (written.ok || written.refusal === 'gone')
    return done({ fact: 'part', instance: pathOf(action), part, view: { there: false } });
  if (written.refusal === 'conflict') return stale(await lookAtPart(action, part, hands));
  return { ended: 'failed', why: written.message };
};

type At = Pick<ActionOf<'ApplyWorkload' | 'DeleteWorkload'>, 'namespace' | 'name'>;

const orderOf = (at: At, { world }: Hands) => world.instances.get(pathOf(at));

async function lookAtPart(at: At, part: PartName, hands: Hands): Promise<Fact> {
  const instance = pathOf(at);
  const known = orderOf(at, hands);
  const object = await hands.deps.cluster.get(PARTS[part], at.namespace, partName(part, at.name));
  if (known === undefined) return { fact: 'part', instance, part, view: { there: false } };
  const wanted = known.workload.wanted.find((one) => one.part === part);
  return {
    fact: 'part',
    instance,
    part,
    view: viewPart(object, wanted, { order: { instance: known.object }, hash: hands.deps.hash }),
  };
}

export const workloadPerformers = {
  ApplyWorkload: applyWorkload,
  DeleteWorkload: deleteWorkload,
} satisfies { readonly [Name in ActionName]?: Performer<Name> };
