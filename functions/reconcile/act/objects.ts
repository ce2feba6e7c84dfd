// Writes of our own objects: finalizers, statuses, events, snapshots, and a user's key.
import { toTimestamp } from '#core/conditions.ts';
import { eventName } from '#core/names.ts';
import { type KubeObject, RESOURCES, type Written } from '#core/ports/cluster.ts';
import {
  AUTH_API_VERSION,
  FINALIZER,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  OWNED,
  OWNED_LABEL,
  REQUESTED_BY_ANNOTATION,
} from '#crds/group.ts';
import { kindOf, virtualKeys } from '#crds/kinds.ts';
import type { Action, ActionName } from '../action.ts';
import { displayOf } from '../key/secret-shape.ts';
import { pathOf, present } from '../world.ts';
import { type ActContext, conflict, done, failed, type Handler, type Outcome, objectOf, toOutcome } from './context.ts';

const LABELS = { [MANAGED_BY_LABEL]: MANAGED_BY, [OWNED_LABEL]: OWNED };
const MAX_EVENT = 1024;

type At = Pick<Action, 'kind' | 'namespace' | 'name'>;

/** Only the version that the world has. */
async function patch(
  at: At,
  context: ActContext,
  change: Readonly<Record<string, unknown>>,
  subresource?: 'status',
): Promise<Written<KubeObject>> {
  const { resourceVersion } = objectOf(at, context)?.metadata ?? {};
  const { metadata, ...rest } = change as { readonly metadata?: object };
  const body = { ...rest, metadata: { ...metadata, resourceVersion } };
  return context.deps.cluster.patch(kindOf[at.kind], at.namespace, at.name, body, subresource);
}

const addFinalizer: Handler<'AddFinalizer'> = async (action, context) => {
  const finalizers = [...(objectOf(action, context)?.metadata.finalizers ?? []), FINALIZER];
  return toOutcome(await patch(action, context, { metadata: { finalizers } }));
};

const removeFinalizer: Handler<'RemoveFinalizer'> = async (action, context) => {
  const { kind, namespace, name, left } = action;
  const before = objectOf(action, context)?.metadata.finalizers ?? [];
  const finalizers = before.filter((finalizer) => finalizer !== FINALIZER);
  const written = await patch(action, context, { metadata: { finalizers } });
  if (!written.ok && written.refusal !== 'gone') return toOutcome(written);
  if (left !== undefined) {
    context.deps.log.warn('let go', { kind, namespace, name, left });
    context.deps.metrics.add('gateway_operator_reconcile_forced_finalizations_total', { kind });
  }
  // Asked for again: without its last finalizer the object is gone.
  return done();
};

const writeStatus: Handler<'WriteStatus'> = async (action, context) => {
  const { members, keyValue } = action.patch;
  const value = keyValue === undefined ? {} : { keyValue: shownValue(action, context, keyValue) };
  return toOutcome(await patch(action, context, { status: { ...members, ...value } }, 'status'));
};

/** The key itself, which no plan holds. */
function shownValue(at: At, { world }: ActContext, mode: 'full' | 'redacted'): string | null {
  const view = world.keys.get(pathOf(at));
  const secret = present(view?.secret) ?? present(view?.previous);
  const value = secret?.data.get('key') ?? view?.object.status?.keyValue;
  if (value === undefined) return null;
  return mode === 'full' ? value : displayOf(value);
}

/** The same event twice has the same name: the API server takes the first. */
const recordEvent: Handler<'RecordEvent'> = async (action, context) => {
  const { deps, now } = context;
  const { kind, namespace, name, type, reason, message, once } = action;
  const uid = objectOf(action, context)?.metadata.uid ?? '';
  const at = toTimestamp(now);
  const written = await deps.cluster.create(RESOURCES.events, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(name, uid, once, deps.hash), namespace },
    involvedObject: { apiVersion: kindOf[kind].apiVersion, kind, namespace, name, uid },
    ...{ type, reason, message: message.slice(0, MAX_EVENT), count: 1, firstTimestamp: at, lastTimestamp: at },
    source: { component: MANAGED_BY },
    reportingComponent: MANAGED_BY,
    reportingInstance: 'reconcile',
  });
  return written.ok || written.refusal === 'exists' ? done() : toOutcome(written);
};

const publishSnapshot: Handler<'PublishSnapshot'> = async ({ namespace, name, snapshot }, { deps, world }) => {
  const view = world.instances.get(pathOf({ namespace, name }));
  if (view === undefined) return conflict;
  const { apiVersion, kind, metadata } = view.object;
  const { uid } = metadata;
  const written = await deps.cluster.create(RESOURCES.configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...{ name: snapshot, namespace, labels: LABELS },
      ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }],
    },
    immutable: true,
    data: { 'snapshot.json': view.snapshot.text },
  });
  if (written.ok || written.refusal !== 'exists')
    return toOutcome(written.ok ? { ok: true, object: undefined } : written);
  const there = await deps.cluster.get(RESOURCES.configMaps, namespace, snapshot);
  const isOurs = there?.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
  return isOurs ? done() : failed(`ConfigMap "${snapshot}" is there and is not ours: delete it`);
};

const deleteSnapshot: Handler<'DeleteSnapshot'> = async ({ namespace, snapshot, uid }, { deps }) => {
  const written = await deps.cluster.delete(RESOURCES.configMaps, namespace, snapshot, uid);
  return !written.ok && (written.refusal === 'gone' || written.refusal === 'conflict') ? done() : toOutcome(written);
};

const createKey: Handler<'CreateKey'> = async (action, { deps }) => {
  const { namespace, key: name, owner, requestedBy, spec } = action;
  const annotations = requestedBy === undefined ? {} : { annotations: { [REQUESTED_BY_ANNOTATION]: requestedBy } };
  const metadata = { name, namespace, labels: LABELS, ...annotations, ownerReferences: [owner] };
  return ofKey(
    await deps.cluster.create(virtualKeys, { apiVersion: AUTH_API_VERSION, kind: 'VirtualKey', metadata, spec }),
  );
};

const updateKey: Handler<'UpdateKey'> = async ({ namespace, key: name, spec }, context) =>
  ofKey(await patch({ kind: 'VirtualKey', namespace, name }, context, { spec }));

const deleteKey: Handler<'DeleteKey'> = async ({ namespace, key, uid }, { deps }) => {
  const written = await deps.cluster.delete(virtualKeys, namespace, key, uid);
  return !written.ok && written.refusal === 'gone' ? done() : ofKey(written);
};

/** The answer is about another object than the action. */
const ofKey = (written: Written<KubeObject | undefined>): Outcome =>
  toOutcome(written.ok ? { ok: true, object: undefined } : written);

export const objectHandlers = {
  AddFinalizer: addFinalizer,
  RemoveFinalizer: removeFinalizer,
  WriteStatus: writeStatus,
  RecordEvent: recordEvent,
  PublishSnapshot: publishSnapshot,
  DeleteSnapshot: deleteSnapshot,
  CreateKey: createKey,
  UpdateKey: updateKey,
  DeleteKey: deleteKey,
} satisfies { readonly [Name in ActionName]?: Handler<Name> };
