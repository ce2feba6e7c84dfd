// How are our own objects written: finalizers, statuses, a user's key, snapshots, events?

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
import { virtualKeys } from '#crds/kinds.ts';
import type { ActionName, ActionOf } from '../action.ts';
import type { Fact } from '../learn.ts';
import { observeKey } from '../observe/key-secrets.ts';
import { OWN, toOwn } from '../observe/objects.ts';
import { displayOf, present } from '../plan/key-secret.ts';
import { aliasOf, instancePathOf, type Malformed, type OwnKind, type OwnObject, pathOf } from '../world.ts';
import { done, failed, type Hands, type Outcome, type Performer, stale } from './hands.ts';

interface At {
  readonly kind: OwnKind;
  readonly namespace: string;
  readonly name: string;
}

/** The object that an action is about, as the world has it. */
export function objectOf({ kind, namespace, name }: At, { world }: Hands): OwnObject | Malformed | undefined {
  const path = pathOf({ namespace, name });
  const found = {
    GatewayInstance: () => world.instances.get(path)?.object,
    VirtualKey: () => world.keys.get(path)?.object,
    User: () => world.users.get(path),
    Team: () => world.teams.get(path),
  }[kind]();
  return found ?? world.malformed.get(`${kind}/${path}`);
}

/** The object as the cluster has it now; a key with its Secret. */
export async function lookAgain(at: At, hands: Hands): Promise<Fact> {
  const object = await hands.deps.cluster.get(OWN[at.kind], at.namespace, at.name);
  return object === undefined ? { fact: 'gone', kind: at.kind, at } : seen(object, hands);
}

async function seen(object: KubeObject, { deps, now, world }: Hands): Promise<Fact> {
  const own = toOwn(object);
  if (own === undefined || 'problem' in own || own.kind !== 'VirtualKey') return { fact: 'object', object };
  const claim = world.instances.get(instancePathOf(own))?.claims.get(aliasOf(own).key);
  return { fact: 'key', view: await observeKey({ deps, now, sweep: false, count: 0 }, own, claim) };
}

/** What a refused write means: somebody was faster, the namespace is going, or it is not allowed. */
export async function refused(
  written: Extract<Written<unknown>, { readonly ok: false }>,
  again: () => Promise<Fact>,
): Promise<Outcome> {
  const { refusal, message } = written;
  if (refusal === 'terminating') return { ended: 'moot', why: message };
  if (refusal === 'conflict' || refusal === 'gone' || refusal === 'exists') return stale(await again());
  return failed(message);
}

async function patch(
  at: At,
  hands: Hands,
  change: Readonly<Record<string, unknown>>,
  subresource?: 'status',
): Promise<Written<KubeObject>> {
  const version = objectOf(at, hands)?.metadata.resourceVersion;
  const { metadata, ...rest } = change as { readonly metadata?: object };
  const body = { ...rest, metadata: { ...metadata, resourceVersion: version } };
  return hands.deps.cluster.patch(OWN[at.kind], at.namespace, at.name, body, subresource);
}

const addFinalizer: Performer<'AddFinalizer'> = async (action, hands) => {
  const finalizers = [...(objectOf(action, hands)?.metadata.finalizers ?? []), FINALIZER];
  const written = await patch(action, hands, { metadata: { finalizers } });
  return written.ok
    ? done({ fact: 'object', object: written.object })
    : refused(written, () => lookAgain(action, hands));
};

const removeFinalizer: Performer<'RemoveFinalizer'> = async (action, hands) => {
  const { kind, namespace, name, letGo } = action;
  const finalizers = objectOf(action, hands)?.metadata.finalizers?.filter((finalizer) => finalizer !== FINALIZER) ?? [];
  const written = await patch(action, hands, { metadata: { finalizers } });
  if (!written.ok && written.refusal !== 'gone') return refused(written, () => lookAgain(action, hands));
  if (letGo !== undefined) {
    hands.deps.log.warn('let go', { kind, namespace, name, left: letGo });
    hands.deps.metrics.add('gateway_operator_reconcile_let_go_total', { kind });
  }
  const stays = written.ok && (written.object.metadata.finalizers ?? []).length > 0;
  return done(stays ? { fact: 'object', object: written.object } : { fact: 'gone', kind, at: { namespace, name } });
};

const writeStatus: Performer<'WriteStatus'> = async (action, hands) => {
  const { members, keyValue } = action.patch;
  const value = keyValue === undefined ? {} : { keyValue: shownValue(action, hands, keyValue) };
  const written = await patch(action, hands, { status: { ...members, ...value } }, 'status');
  return written.ok
    ? done({ fact: 'object', object: written.object })
    : refused(written, () => lookAgain(action, hands));
};

/** The key itself, which no plan holds. */
function shownValue(at: At, { world }: Hands, mode: 'full' | 'redacted'): string | null {
  const view = world.keys.get(pathOf(at));
  const value = present(view?.secret)?.data.get('key') ?? view?.object.status?.keyValue;
  if (value === undefined) return null;
  return mode === 'full' ? value : displayOf(value);
}

const createKey: Performer<'CreateKey'> = async (action, hands) => {
  const { namespace, key: name, owner, requestedBy, spec } = action;
  const written = await hands.deps.cluster.create(virtualKeys, {
    apiVersion: AUTH_API_VERSION,
    kind: 'VirtualKey',
    metadata: {
      name,
      namespace,
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY, [OWNED_LABEL]: OWNED },
      ...(requestedBy === undefined ? {} : { annotations: { [REQUESTED_BY_ANNOTATION]: requestedBy } }),
      ownerReferences: [owner],
    },
    spec,
  });
  return written.ok
    ? done(await seen(written.object, hands))
    : refused(written, () => lookAgain(ownedKey(action), hands));
};

const updateKey: Performer<'UpdateKey'> = async (action, hands) => {
  const key = ownedKey(action);
  const written = await patch(key, hands, { spec: action.spec });
  return written.ok ? done(await seen(written.object, hands)) : refused(written, () => lookAgain(key, hands));
};

const deleteKey: Performer<'DeleteKey'> = async (action, hands) => {
  const key = ownedKey(action);
  const written = await hands.deps.cluster.delete(virtualKeys, key.namespace, key.name, action.uid);
  if (!written.ok && written.refusal !== 'gone') return refused(written, () => lookAgain(key, hands));
  return done(await lookAgain(key, hands));
};

const ownedKey = ({ namespace, key }: { readonly namespace: string; readonly key: string }): At => ({
  kind: 'VirtualKey',
  namespace,
  name: key,
});

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
    involvedObject: { apiVersion: OWN[kind].apiVersion, kind, namespace, name, uid },
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

export const objectPerformers = {
  AddFinalizer: addFinalizer,
  RemoveFinalizer: removeFinalizer,
  WriteStatus: writeStatus,
  CreateKey: createKey,
  UpdateKey: updateKey,
  DeleteKey: deleteKey,
  PublishSnapshot: publishSnapshot,
  DeleteSnapshot: deleteSnapshot,
  RecordEvent: recordEvent,
} satisfies { readonly [Name in ActionName]?: Performer<Name> };

export type ObjectAction = ActionOf<keyof typeof objectPerformers>;
