// Which keys' Secrets does a run read? All that may have changed, and a share of the published ones (DESIGN 6).
import { keySecretName } from '#core/names.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { Claim } from '#core/ports/registry.ts';
import { reasonOf } from '#core/reason.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { ReconcileDeps } from '../deps.ts';
import { whyRotate } from '../plan/rotation.ts';
import { type KeyView, pathOf, type SecretView } from '../world.ts';
import { toSecretView } from './secrets.ts';

/** Up to so many keys a run reads every Secret; beyond, an hour's sweeps together do. */
const ALL = 500;
const MINUTE: Millis = 60_000;

export interface Reading {
  readonly deps: ReconcileDeps;
  readonly now: Millis;
  /** Whether all keys are looked at: then a share of the unchanged ones too is read. */
  readonly sweep: boolean;
  /** Keys in the world. */
  readonly count: number;
}

/** What the database knows of the key, and its clock. */
export interface Recorded {
  readonly claim: Claim | undefined;
  /** Whether the database told: that there is no claim is then known. */
  readonly known: boolean;
  readonly time: Millis;
}

/** Why a key's Secret is read; undefined: it is not. */
export type Interest = 'changed' | 'share' | undefined;

export function interestIn(reading: Reading, object: VirtualKey, recorded: Recorded): Interest {
  const { metadata, status } = object;
  if (reading.count <= ALL) return 'changed';
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const changed =
    metadata.deletionTimestamp !== undefined ||
    status?.observedGeneration !== metadata.generation ||
    (ready?.status !== 'True' && !ELSEWHERE.has(ready?.reason ?? '')) ||
    status?.keySecretRef !== secretNameOf(reading.deps, object) ||
    (recorded.known && !isSettled(object, recorded));
  if (changed) return 'changed';
  const isItsMinute = minuteOf(metadata.uid, reading.deps.hash) === Math.floor(reading.now / MINUTE) % 60;
  return reading.sweep && isItsMinute ? 'share' : undefined;
}

/** Of two equal texts the one that is kept anyway. */
function secretNameOf({ hash }: ReconcileDeps, { metadata, spec, status }: VirtualKey): string {
  const wanted = keySecretName(metadata.name, spec.secretTemplate?.name, hash);
  return wanted === status?.keySecretRef ? status.keySecretRef : wanted;
}

export function unreadKey(deps: ReconcileDeps, object: VirtualKey): KeyView {
  return { object, secretName: secretNameOf(deps, object), secret: UNREAD };
}

export async function readKey(deps: ReconcileDeps, object: VirtualKey): Promise<KeyView> {
  const { namespace } = object.metadata;
  const published = object.status?.keySecretRef;
  const wanted = secretNameOf(deps, object);
  const text = object.status?.keyValue;
  const view = { object, secretName: wanted, ...(text === undefined ? {} : { statusHash: deps.hash(text) }) };
  try {
    const secret = await readSecret(deps, namespace, wanted);
    if (published === undefined || published === wanted) return { ...view, secret };
    return { ...view, secret, previous: await readSecret(deps, namespace, published) };
  } catch (error) {
    deps.log.warn('the Secret of a key could not be read', { key: pathOf(object.metadata), why: reasonOf(error) });
    return { ...view, secret: UNREAD };
  }
}

const UNREAD: SecretView = { state: 'unread' };

/** Causes of `Ready: False` that lie outside a key's Secret. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  'InstanceNotFound',
  'InstanceNotReady',
  'NamespaceNotAllowed',
  'Blocked',
  'Expired',
  'BudgetExceeded',
  'ModelNotServed',
]);

export async function readSecret(
  { cluster, hash }: ReconcileDeps,
  namespace: string,
  name: string,
): Promise<SecretView> {
  const secret = await cluster.get(RESOURCES.secrets, namespace, name);
  return secret === undefined ? { state: 'absent' } : toSecretView(secret, hash);
}

/** The value that the status names is the only one without an end, and not due to be replaced. */
function isSettled(key: VirtualKey, { claim, time }: Recorded): boolean {
  const current = claim?.values.filter(({ notAfter }) => notAfter === undefined) ?? [];
  const [value] = current;
  if (claim === undefined || value === undefined || current.length > 1 || value.hash !== key.status?.keyID)
    return false;
  return whyRotate(key, value, claim, time) === undefined;
}

function minuteOf(uid: string, hash: Hash): number {
  return Number.parseInt(hash(uid).slice(0, 8), 16) % 60;
}
