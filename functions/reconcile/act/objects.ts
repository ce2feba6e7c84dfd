// Writes of objects: finalizers, statuses, events, snapshots, a User's VirtualKey, and the objects that run a gateway.
import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { toTimestamp } from '#core/conditions/conditions.ts';
import { eventName } from '#core/keys/object-names.ts';
import { type KubeObject, RESOURCES, toFieldSelector, type WriteResult } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { kindOf, virtualKeys } from '#crds/kinds/kinds.ts';
import {
  AUTH_API_VERSION,
  FINALIZER,
  INSTANCE_LABEL,
  MANAGED_BY,
  OWNED_LABELS,
  REQUESTED_BY_ANNOTATION,
} from '#crds/names/group.ts';
import { controllerOf, isOwnedBy } from '#crds/names/object-meta.ts';
import { type Action, type ActionOf, identify, type Outcome } from '../action.ts';
import { displayOf } from '../key/secret-shape.ts';
import { withLiveReplicas } from '../workload/desired-objects.ts';
import { comparedText } from '../workload/live-object.ts';
import { isRoute, WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';
import { pathOf, presentSecret } from '../world.ts';
import {
  type ActContext,
  conflictOutcome,
  doneOutcome,
  failedOutcome,
  type Handlers,
  isAsPlanned,
  type ObjectReference,
  objectOf,
  toOutcome,
  toRemoved,
} from './context.ts';

const MAX_EVENT = 1024;
/** Applies of a Deployment that changes meanwhile. */
const MAX_APPLIES = 4;

type EventAction = ObjectReference & Pick<ActionOf<'RecordEvent'>, 'type' | 'reason' | 'message' | 'once'>;

/** An event that is recorded twice has the same name: the API server keeps the first. */
export async function recordEvent(action: EventAction, context: ActContext): Promise<Outcome> {
  const { deps, now } = context;
  const { kind, namespace, name, type, reason, message, once } = action;
  const uid = objectOf(action, context)?.metadata.uid ?? '';
  const at = toTimestamp(now);
  const written = await deps.cluster.create(RESOURCES.events, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(name, uid, once, deps.hash), namespace },
    involvedObject: { apiVersion: kindOf[kind].apiVersion, kind, namespace, name, uid },
    type,
    reason,
    message: message.slice(0, MAX_EVENT),
    count: 1,
    firstTimestamp: at,
    lastTimestamp: at,
    source: { component: MANAGED_BY },
    reportingComponent: MANAGED_BY,
    reportingInstance: 'reconcile',
  });
  return !written.ok && written.refusal === 'exists' ? doneOutcome() : toOutcome(written);
}

export const objectHandlers = {
  AddFinalizer: async (action, context) => {
    const finalizers = [...(objectOf(action, context)?.metadata.finalizers ?? []), FINALIZER];
    return toWritten(await patch(action, context, { metadata: { finalizers } }));
  },
  /** Reads the object again afterwards: without its last finalizer it is gone. */
  RemoveFinalizer: async (action, context) => {
    const { kind, namespace, name, notCleanedUp } = action;
    const before = objectOf(action, context)?.metadata.finalizers ?? [];
    const finalizers = before.filter((finalizer) => finalizer !== FINALIZER);
    const outcome = toRemoved(await patch(action, context, { metadata: { finalizers } }));
    if (outcome.ended === 'done' && notCleanedUp !== undefined) {
      context.deps.log.warn('a deletion was forced', { kind, namespace, name, notCleanedUp });
      context.deps.metrics.add('gateway_operator_reconcile_forced_finalizations_total', { kind });
    }
    return outcome;
  },
  WriteStatus: async (action, context) => {
    const { members, keyValue } = action.patch;
    const value = keyValue === undefined ? {} : { keyValue: displayedValue(action, context, keyValue) };
    return toWritten(await patch(action, context, { status: { ...members, ...value } }, 'status'));
  },
  RecordEvent: (action, context) => recordEvent(action, context),
  PublishSnapshot: async (action, { deps, world }) => {
    const { namespace, snapshot: name } = action;
    const view = world.instances.get(pathOf(action));
    if (view === undefined) return conflictOutcome;
    const written = await deps.cluster.create(RESOURCES.configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name,
        namespace,
        ownerReferences: [controllerOf(view.object)],
        labels: { ...OWNED_LABELS, [INSTANCE_LABEL]: view.object.metadata.uid },
      },
      immutable: true,
      data: { 'snapshot.json': view.snapshot.text },
    });
    // In the first attempt, another run may just have published the snapshot: it is observed again.
    const isFirst = !world.attempts.has(identify(action));
    if (written.ok || written.refusal !== 'exists' || isFirst) return toOutcome(written);
    const selection = {
      namespace,
      fieldSelector: toFieldSelector({ 'metadata.name': name }),
      metadataOnly: true,
    } as const;
    const [there] = await deps.cluster.list(RESOURCES.configMaps, selection);
    // An earlier version of the operator wrote it without the label of its instance: it is written again.
    if (there !== undefined && isOwnedBy(there.metadata, view.object.metadata.uid))
      return toRemoved(await deps.cluster.delete(RESOURCES.configMaps, namespace, name, there.metadata.uid ?? ''));
    return failedOutcome(`ConfigMap "${name}" exists and does not belong to the operator: delete it`);
  },
  PushSnapshot: async (action, { deps, world }) => {
    const view = world.instances.get(pathOf(action));
    if (view === undefined) return conflictOutcome;
    await deps.snapshots?.put(pathOf(action), view.snapshot.text);
    return doneOutcome();
  },
  DeleteSnapshot: async ({ namespace, snapshot, uid }, { deps }) =>
    toRemoved(await deps.cluster.delete(RESOURCES.configMaps, namespace, snapshot, uid)),
  CreateKey: async ({ namespace, key: name, owner, requestedBy, spec }, { deps }) => {
    const annotations = requestedBy === undefined ? {} : { annotations: { [REQUESTED_BY_ANNOTATION]: requestedBy } };
    const metadata = { name, namespace, labels: OWNED_LABELS, ...annotations, ownerReferences: [owner] };
    const key = { apiVersion: AUTH_API_VERSION, kind: 'VirtualKey', metadata, spec };
    return toOutcome(await deps.cluster.create(virtualKeys, key));
  },
  AdoptKey: async ({ namespace, key: name, uid, owner }, { deps }) => {
    const there = (await deps.cluster.get(virtualKeys, namespace, name, { metadataOnly: true }))?.metadata;
    if (there?.uid !== uid || there.deletionTimestamp !== undefined) return conflictOutcome;
    const others = there.ownerReferences?.filter((one) => one.kind !== owner.kind || one.name !== owner.name) ?? [];
    const metadata = { resourceVersion: there.resourceVersion, ownerReferences: [...others, owner] };
    return toOutcome(await deps.cluster.patch(virtualKeys, namespace, name, { metadata }));
  },
  UpdateKey: async ({ namespace, key: name, spec }, context) =>
    toOutcome(await patch({ kind: 'VirtualKey', namespace, name }, context, { spec })),
  DeleteKey: async ({ namespace, key, uid }, { deps }) =>
    toRemoved(await deps.cluster.delete(virtualKeys, namespace, key, uid)),
  DeleteSecret: async ({ namespace, secret, uid }, { deps }) =>
    toRemoved(await deps.cluster.delete(RESOURCES.secrets, namespace, secret, uid)),
  /** By server-side apply: fields and annotations of others stay. */
  ApplyWorkload: async (action, context) => {
    const { objectKind, object, uid } = action;
    const view = context.world.instances.get(pathOf(action));
    if (view === undefined || !(await isAsPlanned(action, context))) return conflictOutcome;
    if (objectKind === 'Deployment' && uid !== undefined) return applyDeployment(action, uid, context, view.object);
    const target = uid === undefined ? object : { ...object, metadata: { ...object.metadata, uid } };
    const written = await context.deps.cluster.apply(WORKLOAD_OBJECTS[objectKind], target);
    return toApplied(action, written, view.workloadObjects.get(objectKind)?.comparedHash, context);
  },
  DeleteWorkload: async (action, context) => {
    const { objectKind, object, uid, namespace } = action;
    if (!(await isAsPlanned(action, context))) return conflictOutcome;
    return toRemoved(await context.deps.cluster.delete(WORKLOAD_OBJECTS[objectKind], namespace, object, uid));
  },
} satisfies Handlers;

/**
 * Writes exactly the version that is read here, with its replicas: an autoscaler may have changed them since the look
 * of the run. Controllers write the status of a Deployment at any time, so a conflict is repeated a few times.
 */
async function applyDeployment(
  action: ActionOf<'ApplyWorkload'>,
  uid: string,
  context: ActContext,
  instance: GatewayInstance,
): Promise<Outcome> {
  const { cluster, hash } = context.deps;
  const { namespace, name } = action.object.metadata;
  for (let attempt = 1; ; attempt += 1) {
    const live = await cluster.get(WORKLOAD_OBJECTS.Deployment, namespace, name);
    if (live?.metadata.uid !== uid) return conflictOutcome;
    const written = await cluster.apply(WORKLOAD_OBJECTS.Deployment, withLiveReplicas(action.object, live, instance));
    const isOvertaken = !written.ok && written.refusal === 'conflict';
    if (!isOvertaken || attempt === MAX_APPLIES) return toApplied(action, written, hash(comparedText(live)), context);
  }
}

/** `before`: hash of the object that was written over. */
function toApplied(
  action: ActionOf<'ApplyWorkload'>,
  written: WriteResult<KubeObject>,
  before: string | undefined,
  { deps }: ActContext,
): Outcome {
  if (!written.ok && written.refusal !== 'terminating' && written.refusal !== 'conflict')
    return toRefusedOutcome(action, written.message);
  // Controllers may write the status of these objects at any time, so their version proves nothing.
  const isSame = written.ok && deps.hash(comparedText(written.object)) === before;
  return isSame ? { ended: 'unchanged' } : toOutcome(written);
}

/** The outcome of a workload object that is not written. A condition of the instance shows why. */
export function toRefusedOutcome({ objectKind, object }: ActionOf<'ApplyWorkload'>, why: string): Outcome {
  const message = `the API server does not take ${WORKLOAD_OBJECTS[objectKind].kind} "${object.metadata.name}": ${why}`;
  return failedOutcome(message, isRoute(objectKind) ? 'RouteRefused' : 'WorkloadRefused');
}

/** Writes only if the object still has the version of the world. */
async function patch(
  at: ObjectReference,
  context: ActContext,
  { metadata, ...rest }: { readonly metadata?: object; readonly [member: string]: unknown },
  subresource?: 'status',
): Promise<WriteResult<KubeObject>> {
  const { resourceVersion } = objectOf(at, context)?.metadata ?? {};
  const body = { ...rest, metadata: { ...metadata, resourceVersion } };
  return context.deps.cluster.patch(kindOf[at.kind], at.namespace, at.name, body, subresource);
}

/** The answer is the object as it is now, so it is not read again. */
const toWritten = (written: WriteResult<KubeObject>) => (written.ok ? doneOutcome(written.object) : toOutcome(written));

/** The key value, which no plan contains. */
function displayedValue(at: ObjectReference, { world }: ActContext, mode: 'full' | 'redacted'): string | null {
  const view = world.keys.get(pathOf(at));
  const secret = presentSecret(view?.secret) ?? presentSecret(view?.previous);
  const value = secret?.data.get('key') ?? view?.object.status?.keyValue;
  if (value === undefined) return null;
  return mode === 'full' ? value : displayOf(value);
}

/** The applies that would change nothing, by dry runs of the API server. */
export async function findUnchanged(
  actions: ReadonlyArray<Action>,
  { deps, world }: Pick<ActContext, 'deps' | 'world'>,
): Promise<ReadonlyArray<Action>> {
  const same = await mapConcurrent(actions, async (action) => {
    if (action.action !== 'ApplyWorkload') return [];
    const live = world.instances.get(pathOf(action))?.workloadObjects.get(action.objectKind);
    if (live === undefined) return [];
    // A dry run that fails proves nothing, and the plan of everything else does not depend on it.
    const would = await deps.cluster
      .apply(WORKLOAD_OBJECTS[action.objectKind], action.object, { isDry: true })
      .catch(() => undefined);
    return would?.ok && deps.hash(comparedText(would.object)) === live.comparedHash ? [action] : [];
  });
  return same.flat();
}
