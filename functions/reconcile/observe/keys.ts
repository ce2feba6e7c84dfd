// Keys with their Secrets. A run reads the Secrets that may have changed, and a share of the published ones (DESIGN 6).

import { decode } from '#core/base64.ts';
import { keySecretName } from '#core/names.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import { reasonOf } from '#core/reason.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { mapConcurrent } from '../concurrent.ts';
import type { ReconcileDeps } from '../deps.ts';
import { whyRotate } from '../key/rotation.ts';
import { aliasOf, type InstanceView, instancePathOf, type KeyView, pathOf, type SecretView } from '../world.ts';
import type { Draft, ObserveContext } from './context.ts';

/** Up to so many keys a run reads every Secret; beyond, an hour's sweeps together do. */
const ALL = 500;
/** Changed keys that one run plans for, the oldest first: the memory for their Secrets, and the time that they take, stay bounded. */
const BATCH = 5000;
const MINUTE: Millis = 60_000;

/** The keys whose Secrets the run reads. Those that come with one of the next runs are marked in the world. */
export function selectKeys(context: ObserveContext, world: Draft): ReadonlyArray<VirtualKey> {
  const { all, deps } = context;
  const keys = [...world.keys.values()].map(({ object }) => object);
  if (all.keys.size <= ALL) return keys;
  const { changed = [], settled = [] } = Object.groupBy(keys, (key) =>
    isChanged(context, key, world.instances.get(instancePathOf(key))) ? 'changed' : 'settled',
  );
  const sorted = changed.length <= BATCH ? changed : changed.toSorted(byRank);
  for (const key of sorted.slice(BATCH))
    world.keys.set(pathOf(key.metadata), { ...unreadKey(deps, key), isDeferred: true });
  const share = all.complete === 'all' ? settled.filter((key) => isItsMinute(context, key)) : [];
  return [...sorted.slice(0, BATCH), ...share];
}

export async function readKeys({ deps }: ObserveContext, world: Draft, keys: ReadonlyArray<VirtualKey>): Promise<void> {
  await mapConcurrent(keys, async (key) => {
    world.keys.set(pathOf(key.metadata), await readKey(deps, key));
  });
}

/** Edits come before what was looked at already and is still not as it should be. */
const rankOf = ({ metadata, status }: VirtualKey): string =>
  `${status?.observedGeneration === metadata.generation ? 1 : 0} ${metadata.creationTimestamp} ${metadata.uid}`;
const byRank = (one: VirtualKey, other: VirtualKey) => (rankOf(one) < rankOf(other) ? -1 : 1);

/** Causes of `Ready: False` that lie outside a key's Secret. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  ...['InstanceNotFound', 'InstanceNotReady', 'NamespaceNotAllowed'],
  ...['Blocked', 'Expired', 'BudgetExceeded', 'ModelNotServed'],
]);

function isChanged({ deps }: ObserveContext, key: VirtualKey, instance: InstanceView | undefined): boolean {
  const { metadata, status } = key;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return (
    metadata.deletionTimestamp !== undefined ||
    status?.observedGeneration !== metadata.generation ||
    (ready?.status !== 'True' && !ELSEWHERE.has(ready?.reason ?? '')) ||
    (instance?.database.ok === true && instance.database.isKnown && !isSettled(deps, key, instance))
  );
}

/** A settled key has its Secret where the status says, with the one value that has no end, and that is not due to be replaced. */
function isSettled(deps: ReconcileDeps, key: VirtualKey, { claims, time }: InstanceView): boolean {
  const claim = claims.get(aliasOf(key).key);
  const [value, ...more] = claim?.values.filter(({ notAfter }) => notAfter === undefined) ?? [];
  if (claim === undefined || value === undefined || more.length > 0 || value.hash !== key.status?.keyID) return false;
  return key.status.keySecretRef === secretNameOf(deps, key) && whyRotate(key, value, claim, time) === undefined;
}

/** The minute of the hour that the key's uid hashes to. */
const isItsMinute = ({ deps, now }: ObserveContext, { metadata }: VirtualKey): boolean =>
  Number.parseInt(deps.hash(metadata.uid).slice(0, 8), 16) % 60 === Math.floor(now / MINUTE) % 60;

/** Of two equal texts the one that is kept anyway. */
function secretNameOf({ hash }: ReconcileDeps, { metadata, spec, status }: VirtualKey): string {
  const wanted = keySecretName(metadata.name, spec.secretTemplate?.name, hash);
  return wanted === status?.keySecretRef ? status.keySecretRef : wanted;
}

const UNREAD: SecretView = { state: 'unread' };

export const unreadKey = (deps: ReconcileDeps, object: VirtualKey): KeyView => ({
  ...{ object, secretName: secretNameOf(deps, object), secret: UNREAD },
});

async function readKey(deps: ReconcileDeps, object: VirtualKey): Promise<KeyView> {
  const { keySecretRef: published, keyValue: text } = object.status ?? {};
  const { namespace } = object.metadata;
  const unread = unreadKey(deps, object);
  const view = { ...unread, ...(text === undefined ? {} : { statusHash: deps.hash(text) }) };
  try {
    const secret = await readSecret(deps, namespace, view.secretName);
    if (published === undefined || published === view.secretName) return { ...view, secret };
    return { ...view, secret, previous: await readSecret(deps, namespace, published) };
  } catch (error) {
    deps.log.warn('the Secret of a key could not be read', { key: pathOf(object.metadata), why: reasonOf(error) });
    return view;
  }
}

async function readSecret({ cluster, hash }: ReconcileDeps, namespace: string, name: string): Promise<SecretView> {
  const secret = await cluster.get(RESOURCES.secrets, namespace, name);
  if (secret === undefined) return { state: 'absent' };
  const { metadata, data: stored = {} } = secret;
  // The API server guarantees the shape of a Secret's data.
  const entries = Object.entries(stored as Readonly<Record<string, string>>);
  const data = new Map(entries.map(([entry, value]) => [entry, decode(value)]));
  const value = data.get('key');
  const { uid = '', resourceVersion = '', labels = {}, annotations = {}, ownerReferences: owners = [] } = metadata;
  return {
    ...{ state: 'present', name, uid, resourceVersion, labels, annotations, owners, data },
    ...(value ? { hash: hash(value) } : {}),
  };
}
