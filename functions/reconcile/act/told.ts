// How is told what an instance serves, and what happened: snapshots and events?
import { toTimestamp } from '#core/conditions.ts';
import { eventName } from '#core/names.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { MANAGED_BY, MANAGED_BY_LABEL, OWNED, OWNED_LABEL } from '#crds/group.ts';
import { kindOf } from '#crds/kinds.ts';
import type { ActionName } from '../action.ts';
import { pathOf } from '../world.ts';
import { done, failed, type Performer, stale } from './hands.ts';
import { objectOf } from './objects.ts';

const publishSnapshot: Performer<'PublishSnapshot'> = async ({ namespace, name, snapshot }, hands) => {
  const instance = pathOf({ namespace, name });
  const view = hands.world.instances.get(instance);
  if (view === undefined) return stale();
  const { apiVersion, kind, metadata } = view.object;
  const written = await hands.deps.cluster.create(RESOURCES.configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: snapshot,
      namespace,
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY, [OWNED_LABEL]: OWNED },
      ownerReferences: [{ apiVersion, kind, name, uid: metadata.uid, controller: true, blockOwnerDeletion: true }],
    },
    immutable: true,
    data: { 'snapshot.json': view.snapshot.text },
  });
  if (written.ok) return done({ fact: 'published', instance });
  if (written.refusal === 'terminating') return { ended: 'moot', why: written.message };
  if (written.refusal !== 'exists') return failed(written.message);
  const there = await hands.deps.cluster.get(RESOURCES.configMaps, namespace, snapshot);
  const isOurs = there?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true;
  return isOurs
    ? done({ fact: 'published', instance })
    : failed(`ConfigMap "${snapshot}" is there and is not ours: delete it`);
};

const deleteSnapshot: Performer<'DeleteSnapshot'> = async ({ namespace, name, snapshot, uid }, { deps }) => {
  const written = await deps.cluster.delete(RESOURCES.configMaps, namespace, snapshot, uid);
  const isGone = written.ok || written.refusal === 'gone' || written.refusal === 'conflict';
  return isGone
    ? done({ fact: 'unpublished', instance: pathOf({ namespace, name }), snapshot })
    : failed(written.message);
};

const LONGEST_EVENT = 1024;

/** The same event twice has the same name: the API server takes the first. */
const recordEvent: Performer<'RecordEvent'> = async (action, hands) => {
  const { deps, now } = hands;
  const { kind, namespace, name, type, reason, message, once } = action;
  const uid = objectOf(action, hands)?.metadata.uid ?? '';
  const at = toTimestamp(now);
  const written = await deps.cluster.create(RESOURCES.events, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(name, uid, once, deps.hash), namespace },
    involvedObject: { apiVersion: kindOf[kind].apiVersion, kind, namespace, name, uid },
    type,
    reason,
    message: message.slice(0, LONGEST_EVENT),
    count: 1,
    firstTimestamp: at,
    lastTimestamp: at,
    source: { component: MANAGED_BY },
    reportingComponent: MANAGED_BY,
    reportingInstance: 'reconcile',
  });
  if (written.ok || written.refusal === 'exists') return done();
  return written.refusal === 'terminating' ? { ended: 'moot', why: written.message } : failed(written.message);
};

export const toldPerformers = {
  PublishSnapshot: publishSnapshot,
  DeleteSnapshot: deleteSnapshot,
  RecordEvent: recordEvent,
} satisfies { readonly [Name in ActionName]?: Performer<Name> };
