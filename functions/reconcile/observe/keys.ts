// What is there of each key, and which keys' turn is it when very many have changed at once?
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { ReconcileDeps } from '../deps.ts';
import { aliasOf, type InstanceDraft, instancePathOf, type KeyView, type Path } from '../world.ts';
import { each } from './each.ts';
import { type Interest, interestIn, type Reading, readKey, unreadKey } from './key-secrets.ts';

const SECRETS = 32;
/** So many that changed have their turn together: what is held of their Secrets, and the time that they take, stay bounded. */
const TURN = 5000;

/** After the claims: a value that was minted meanwhile is then newer than what its claim shows, and act looks again. */
export async function observeKeys(
  reading: Reading,
  keys: ReadonlyMap<Path, VirtualKey>,
  instances: ReadonlyMap<Path, InstanceDraft>,
): Promise<Map<Path, KeyView>> {
  const views = new Map<Path, KeyView>();
  const read: Array<readonly [Path, VirtualKey, Interest]> = [];
  for (const [path, key] of keys) {
    const interest = interestIn(reading, key, recordedOf(key, instances, reading));
    // In the order of the list, whichever are read.
    views.set(path, unreadKey(reading.deps, key));
    if (interest !== undefined) read.push([path, key, interest]);
  }
  const changed = read.filter(([, , interest]) => interest === 'changed');
  const later = new Set(changed.length <= TURN ? [] : changed.toSorted(byAge).slice(TURN));
  await each(read, SECRETS, async (one) => {
    const [path, key] = one;
    views.set(
      path,
      later.has(one) ? { ...unreadKey(reading.deps, key), later: true } : await readKey(reading.deps, key),
    );
  });
  return views;
}

/** The oldest of those whose turn was to come later; with their Secrets now. */
export async function takeTurn(deps: ReconcileDeps, views: Map<Path, KeyView>): Promise<ReadonlySet<Path>> {
  const waiting = [...views].flatMap(([path, { object, later }]) => (later === true ? [[path, object] as const] : []));
  const turn = waiting.toSorted(byAge).slice(0, TURN);
  await each(turn, SECRETS, async ([path, key]) => void views.set(path, await readKey(deps, key)));
  return new Set(turn.map(([path]) => path));
}

function recordedOf(key: VirtualKey, instances: ReadonlyMap<Path, InstanceDraft>, { now }: Pick<Reading, 'now'>) {
  const instance = instances.get(instancePathOf(key));
  return {
    claim: instance?.claims.get(aliasOf(key).key),
    time: instance?.time ?? now,
    known: instance?.database.ok === true && instance.database.unread !== true,
  };
}

const ageOf = ({ metadata }: VirtualKey): string => `${metadata.creationTimestamp} ${metadata.uid}`;

type Aged = readonly [Path, VirtualKey, ...unknown[]];

const byAge = ([, one]: Aged, [, other]: Aged) => (ageOf(one) < ageOf(other) ? -1 : 1);
