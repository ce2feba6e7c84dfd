// How are our own objects written: finalizers, statuses, a user's key, snapshots, events?
import type { KubeObject, Written } from '#core/ports/cluster.ts';
import {
  AUTH_API_VERSION,
  FINALIZER,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  OWNED,
  OWNED_LABEL,
  REQUESTED_BY_ANNOTATION,
} from '#crds/group.ts';
import { type KindName, kindOf, virtualKeys } from '#crds/kinds.ts';
import type { ActionName } from '../action.ts';
import type { Fact } from '../fact.ts';
import { readKey } from '../observe/key-secrets.ts';
import { toOwn } from '../observe/own.ts';
import { displayOf, present } from '../plan/key-secret.ts';
import { idOf, type Malformed, type OwnObject, objectIn, pathOf } from '../world.ts';
import { done, failed, type Hands, type Outcome, type Performer, stale } from './hands.ts';

interface At {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
}

/** The object that an action is about, as the world has it. */
export const objectOf = (at: At, { world }: Hands): OwnObject | Malformed | undefined =>
  objectIn(world, at.kind, pathOf(at)) ?? world.malformed.get(idOf(at.kind, at));

/** The object as the cluster has it now; a key with its Secret. */
export async function lookAgain(at: At, hands: Hands): Promise<Fact> {
  const object = await hands.deps.cluster.get(kindOf[at.kind], at.namespace, at.name);
  return object === undefined ? { fact: 'gone', kind: at.kind, at } : seen(object, hands);
}

/** The object as it is now, if that is not what was planned for. */
export async function movedMeanwhile(at: At, hands: Hands): Promise<Fact | undefined> {
  const { kind, namespace, name } = at;
  const planned = objectOf(at, hands)?.metadata;
  const now = (await hands.deps.cluster.get(kindOf[kind], namespace, name))?.metadata;
  const same =
    now?.uid === planned?.uid &&
    now?.generation === planned?.generation &&
    now?.deletionTimestamp === planned?.deletionTimestamp;
  return same ? undefined : lookAgain(at, hands);
}

async function seen(object: KubeObject, { deps }: Hands): Promise<Fact> {
  const own = toOwn(object)?.object;
  if (own?.kind !== 'VirtualKey') return { fact: 'object', object };
  return { fact: 'key', view: await readKey(deps, own) };
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
  return hands.deps.cluster.patch(kindOf[at.kind], at.namespace, at.name, body, subresource);
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

export const objectPerformers = {
  AddFinalizer: addFinalizer,
  RemoveFinalizer: removeFinalizer,
  WriteStatus: writeStatus,
  CreateKey: createKey,
  UpdateKey: updateKey,
  DeleteKey: deleteKey,
} satisfies { readonly [Name in ActionName]?: Performer<Name> };
