// Writes of what runs a gateway, by server-side apply: fields and annotations of others stay.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Action, ActionName } from '../action.ts';
import { mapConcurrent } from '../concurrent.ts';
import { PARTS } from '../workload/parts.ts';
import { pathOf } from '../world.ts';
import { type ActContext, conflict, done, failed, type Handler, isAsPlanned, toOutcome } from './context.ts';

const WIDTH = 16;

const applyWorkload: Handler<'ApplyWorkload'> = async (action, context) => {
  const { part, object, uid } = action;
  const { metadata } = object;
  const before = context.world.instances.get(pathOf(action))?.parts.get(part);
  if (!(await isAsPlanned(action, context))) return conflict;
  const aimed = uid === undefined ? object : { ...object, metadata: { ...metadata, uid } };
  const written = await context.deps.cluster.apply(PARTS[part], aimed);
  if (!written.ok) {
    const { refusal, message } = written;
    if (refusal === 'terminating' || refusal === 'conflict') return toOutcome(written);
    const why = `the API server does not take ${PARTS[part].kind} "${metadata.name}": ${message}`;
    return failed(why, 'WorkloadRefused');
  }
  // Controllers write the status of what runs at any time: the version says nothing.
  const isSame = before !== undefined && stated(written.object) === stated(before);
  return isSame ? { ended: 'unchanged' } : done();
};

/** The applies that would change nothing: asked of the API server. */
export async function findUnchanged(
  actions: ReadonlyArray<Action>,
  { deps, world }: Pick<ActContext, 'deps' | 'world'>,
): Promise<ReadonlyArray<Action>> {
  const same = await mapConcurrent(actions, WIDTH, async (action) => {
    if (action.action !== 'ApplyWorkload') return [];
    const live = world.instances.get(pathOf(action))?.parts.get(action.part);
    if (live === undefined) return [];
    const would = await deps.cluster.apply(PARTS[action.part], action.object, { isDry: true });
    return would.ok && stated(would.object) === stated(live) ? [action] : [];
  });
  return same.flat();
}

const stated = ({ metadata: { labels, annotations, ownerReferences }, spec }: KubeObject): string =>
  JSON.stringify([labels, annotations, ownerReferences, spec]);

const deleteWorkload: Handler<'DeleteWorkload'> = async (action, context) => {
  const { part, object, uid, namespace } = action;
  if (!(await isAsPlanned(action, context))) return conflict;
  const written = await context.deps.cluster.delete(PARTS[part], namespace, object, uid);
  return !written.ok && written.refusal === 'gone' ? done() : toOutcome(written);
};

export const workloadHandlers = {
  ApplyWorkload: applyWorkload,
  DeleteWorkload: deleteWorkload,
} satisfies { readonly [Name in ActionName]?: Handler<Name> };
