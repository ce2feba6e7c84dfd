// VirtualKeys with their Secrets. A run reads the Secrets that may have changed, and a share of the published ones
// (DESIGN 6).

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { rowOf } from '#core/conditions/reasons.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { bytesFromBase64, fromBase64 } from '#core/json/base64.ts';
import { ownMember } from '#core/json/json.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import type { ReconcileDependencies } from '../deps.ts';
import { blocksOf } from '../key/own-blockers.ts';
import { whyRotate } from '../key/rotation.ts';
import { fingerprintOf } from '../key/secret-fingerprint.ts';
import { comparedParts, mayBeOurs, secretNameOf } from '../key/secret-shape.ts';
import { claimOf, type InstanceAccess, NO_CLAIM } from '../plan/access.ts';
import { createPlanContext } from '../plan/context.ts';
import {
  type InstanceView,
  idOf,
  isAbandoned,
  isDeleted,
  type KeyView,
  type MalformedObject,
  type OwnObject,
  pathOf,
  retainedSecret,
  type SecretView,
  unreadKey,
  type WorldBuilder,
} from '../world.ts';
import type { ObserveContext } from './context.ts';
import type { Part } from './parts.ts';

/** Returns the VirtualKeys whose Secrets the run reads. Sets `world.deferred`: those that are left to the next runs. */
export function selectKeys(
  context: ObserveContext,
  world: WorldBuilder,
  { path, shares }: Pick<Part, 'path' | 'shares'>,
): ReadonlyArray<VirtualKey> {
  const { all, deps, limits, roundRobin } = context;
  const keys = [...world.keys.values()].map(({ object }) => object);
  if (all.keys.size <= Math.min(limits.secrets, limits.changedKeys)) return keys;
  const { access } = createPlanContext(world, context.now, deps.hash);
  const { changed = [], unchanged = [] } = Object.groupBy(keys, (key) =>
    isChanged(context, key, access(key)) ? 'changed' : 'unchanged',
  );
  const lists = { edited: `edited keys of ${path}`, unready: `changed keys of ${path}` } as const;
  const { true: unready = [], false: edited = [] } = Object.groupBy(changed, (key) => `${wasProcessed(key)}` as const);
  // Edited VirtualKeys come first. Others that are not ready follow. Both take turns: nobody's edits, and no
  // VirtualKeys that stay not ready, keep another VirtualKey waiting for ever.
  const sorted = [...roundRobin.order(lists.edited, edited, toRow), ...roundRobin.order(lists.unready, unready, toRow)];
  const { true: taken = [], false: deferred = [] } = Object.groupBy(
    sorted,
    ({ metadata }) => `${shares.takeChanged(metadata.namespace)}` as const,
  );
  if (deferred.length > 0)
    for (const key of taken) roundRobin.advance(lists[wasProcessed(key) ? 'unready' : 'edited'], toRow(key));
  world.deferred = new Set(deferred.map(({ kind, metadata }) => idOf(kind, metadata)));
  const blocked = blocksOf(deferred);
  if (blocked.length > 0) world.blocked = new Map([...world.blocked, ...blocked]);
  const read = all.complete === 'all' ? Map.groupBy(unchanged, ({ metadata }) => metadata.namespace) : [];
  const due = [...read].flatMap(([namespace, keys]) => {
    const isDue = roundRobin.section(`Secrets of ${namespace} for ${path}`, shares.secretsOf(namespace));
    return keys.filter(({ metadata }) => isDue(metadata.uid));
  });
  return [...taken, ...due];
}

const toRow = ({ metadata: { namespace, uid } }: VirtualKey) => ({ namespace, id: uid });

/** Reads a Secret once, however many VirtualKeys name it. */
export async function readKeys(
  { deps }: ObserveContext,
  world: WorldBuilder,
  keys: ReadonlyArray<VirtualKey>,
): Promise<void> {
  const bySecret = Map.groupBy(keys, (key) => pathOf({ ...key.metadata, name: secretNameOf(key, deps.hash) }));
  await mapConcurrent(bySecret.values(), async (sharing) => {
    let reading: Promise<ReadSecret> | undefined;
    for (const key of sharing) {
      const { namespace } = key.metadata;
      reading ??= readSecret(deps, namespace, secretNameOf(key, deps.hash));
      world.keys.set(pathOf(key.metadata), await readKey(deps, key, reading));
    }
  });
}

/** A Secret as it is compared for one of the VirtualKeys that name it. */
type ReadSecret = (key: VirtualKey) => SecretView;

/** Whether a run has processed the object since its last edit. */
export const wasProcessed = ({ metadata, status }: OwnObject | MalformedObject): boolean =>
  status?.observedGeneration === metadata.generation;

function isChanged({ deps }: ObserveContext, key: VirtualKey, { state, instance }: InstanceAccess): boolean {
  const { metadata, status } = key;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (isAbandoned(key)) return mayRetain(key, instance);
  return (
    isDeleted(key) ||
    status?.observedGeneration !== metadata.generation ||
    (ready?.status !== 'True' && !rowOf(ready?.reason)?.needsNoSecretRead) ||
    (state === 'allowed' && instance.database.ok && instance.database.isKnown && !hasStableSecret(deps, key, instance))
  );
}

/** Whether the Secret decides if the claim is retained: the VirtualKey was released before the database had that. */
function mayRetain(key: VirtualKey, instance: InstanceView | undefined): boolean {
  const { state, claim } = instance === undefined ? NO_CLAIM : claimOf(key, instance);
  return key.spec.deletionPolicy === 'Retain' && state === 'ours' && retainedSecret(claim) === undefined;
}

/**
 * Whether the VirtualKey's Secret has the name that the status shows, and the claim has one value without an end: the
 * one in status, which need not be rotated now. The Secret of a VirtualKey whose alias another object has does not
 * matter.
 */
function hasStableSecret(deps: ReconcileDependencies, key: VirtualKey, instance: InstanceView): boolean {
  const { state, claim } = claimOf(key, instance);
  if (state === 'taken') return true;
  const [value, ...more] = claim?.values.filter(({ notAfter }) => notAfter === undefined) ?? [];
  if (claim === undefined || value === undefined || more.length > 0 || value.hash !== key.status?.keyID) return false;
  return (
    key.status.keySecretRef === secretNameOf(key, deps.hash) &&
    whyRotate(key, value, claim, instance.databaseNow) === undefined
  );
}

async function readKey(
  deps: ReconcileDependencies,
  object: VirtualKey,
  reading: Promise<ReadSecret>,
): Promise<KeyView> {
  const { keySecretRef: published, keyValue: text } = object.status ?? {};
  const { namespace } = object.metadata;
  const name = secretNameOf(object, deps.hash);
  const view = { ...unreadKey(object), ...(text === undefined ? {} : { statusHash: deps.hash(text) }) };
  try {
    const secret = (await reading)(object);
    if (published === undefined || published === name) return { ...view, secret };
    const previous = await readSecret(deps, namespace, published);
    return { ...view, secret, previous: previous(object) };
  } catch (error) {
    deps.log.warn('cannot read the Secret of a VirtualKey', { key: pathOf(object.metadata), why: reasonOf(error) });
    return view;
  }
}

/** Longer than any key value, which has at most 512 characters (`status.keyValue`). */
const MAX_VALUE = 4096;

async function readSecret(
  { cluster, hash }: ReconcileDependencies,
  namespace: string,
  name: string,
): Promise<ReadSecret> {
  const secret = await cluster.get(RESOURCES.secrets, namespace, name);
  if (secret === undefined) return () => ({ state: 'absent' });
  const { metadata } = secret;
  if (metadata.deletionTimestamp !== undefined) return () => ({ state: 'deleting' });
  const stored = dataOf(secret);
  const { uid = '', resourceVersion = '', ownerReferences = [] } = metadata;
  const value = valueIn(secret);
  const isValue = value !== '' && value.length <= MAX_VALUE;
  const view = {
    ...({ state: 'present', name, uid, resourceVersion } as const),
    fingerprint: mayBeOurs(metadata) ? fingerprintOf(stored, bytesFromBase64) : '',
    data: new Map(isValue ? [['key', value]] : []),
    ...(value && { hash: hash(value) }),
  };
  const owners = ownerReferences.filter(({ kind }) => kind === 'VirtualKey').slice(0, MAX_OWNERS);
  return (key) => ({ ...view, owners, ...comparedParts(metadata, key.spec.secretTemplate) });
}

/** The API server guarantees the shape of a Secret's data. */
const dataOf = (secret: KubeObject | undefined) => (secret?.data ?? {}) as Readonly<Record<string, string>>;

/** The key value in a Secret; empty if there is none. */
export const valueIn = (secret: KubeObject | undefined): string => fromBase64(ownMember(dataOf(secret), 'key') ?? '');

/** Owner references that are kept of a Secret, which should have none. */
const MAX_OWNERS = 16;
