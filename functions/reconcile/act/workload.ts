// How is what runs a gateway written and removed? By server-side apply: fields and annotations of others stay.
import type { ActionName, ActionOf } from '../action.ts';
import type { Fact } from '../fact.ts';
import { readPart, wantedOf } from '../observe/workload.ts';
import { PARTS } from '../workload/parts.ts';
import { viewPart } from '../workload/wanted.ts';
import { pathOf } from '../world.ts';
import { done, failed, type Hands, type Performer, stale } from './hands.ts';
import { movedMeanwhile } from './objects.ts';

const applyWorkload: Performer<'ApplyWorkload'> = async (action, hands) => {
  const { part, object, uid } = action;
  const { cluster, hash, platform } = hands.deps;
  // A slow run never undoes an edit that a faster one has carried already.
  const moved = await movedMeanwhile(action, hands);
  if (moved !== undefined) return stale(moved);
  const { metadata } = object;
  const aimed = uid === undefined ? object : { ...object, metadata: { ...metadata, uid } };
  const written = await cluster.apply(PARTS[part], aimed);
  const instance = pathOf(action);
  if (written.ok) {
    const known = hands.world.instances.get(instance);
    if (known === undefined) return stale();
    const wanted = wantedOf(part, known.workload.wanted);
    const view = viewPart(written.object, wanted, {
      ...{ instance: known.object, version: platform.version },
      ...{ hash, answered: true },
    });
    return done({ fact: 'part', instance, part, view });
  }
  const { refusal, message } = written;
  if (refusal === 'terminating') return { ended: 'moot', why: message };
  if (refusal === 'conflict') return stale(await lookAtPart(action, hands));
  const why = `the API server does not take ${PARTS[part].kind} "${metadata.name}": ${message}`;
  const problem = { reason: 'WorkloadRefused', message: why };
  return { ended: 'failed', why, facts: [{ fact: 'workloadRefused', instance, problem }] };
};

const deleteWorkload: Performer<'DeleteWorkload'> = async (action, hands) => {
  const { part, object, uid, namespace } = action;
  const moved = await movedMeanwhile(action, hands);
  if (moved !== undefined) return stale(moved);
  const written = await hands.deps.cluster.delete(PARTS[part], namespace, object, uid);
  if (written.ok || written.refusal === 'gone') return done(gone(action));
  return written.refusal === 'conflict' ? stale(await lookAtPart(action, hands)) : failed(written.message);
};

type OnPart = ActionOf<'ApplyWorkload' | 'DeleteWorkload'>;

const gone = (action: OnPart): Fact => ({
  fact: 'part',
  instance: pathOf(action),
  part: action.part,
  view: { there: false },
});

async function lookAtPart(action: OnPart, { deps, world }: Hands): Promise<Fact> {
  const { part } = action;
  const instance = pathOf(action);
  const known = world.instances.get(instance);
  if (known === undefined) return gone(action);
  const view = await readPart(deps, known.object, part, known.workload.wanted);
  return { fact: 'part', instance, part, view };
}

export const workloadPerformers = {
  ApplyWorkload: applyWorkload,
  DeleteWorkload: deleteWorkload,
} satisfies { readonly [Name in ActionName]?: Performer<Name> };
