// How is a key's Secret made, repaired and removed? The only place where a key's value is handled.
import { toKeyValue } from '#core/key-value.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { ActionName, SecretShape } from '../action.ts';
import type { Fact } from '../fact.ts';
import { readClaims } from '../observe/database.ts';
import { readSecret } from '../observe/key-secrets.ts';
import { encode, toSecretView } from '../observe/secrets.ts';
import { dataOf, metadataOf, ownersAfter, present } from '../plan/key-secret.ts';
import { aliasOf, currentHashesOf, type KeyView, type Path, type PresentSecret, pathOf } from '../world.ts';
import { done, failed, type Hands, type Outcome, type Performer, stale } from './hands.ts';
import { refused } from './objects.ts';

export const KEY_BYTES = 32;

/** Created, never taken over: a Secret of that name which is there already is looked at, and planned with. */
const createSecret: Performer<'CreateSecret'> = async (action, hands) => {
  const { deps, world } = hands;
  const { namespace, name, shape } = action;
  const key = pathOf({ namespace, name });
  const minted = action.value === 'new';
  const value = minted ? toKeyValue(deps.random(KEY_BYTES)) : present(world.keys.get(key)?.previous)?.data.get('key');
  if (value === undefined) return stale();
  const written = await deps.cluster.create(RESOURCES.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: {
      name: shape.name,
      namespace,
      labels: shape.labels,
      annotations: shape.annotations,
      ...(shape.owners.length === 0 ? {} : { ownerReferences: shape.owners }),
    },
    data: encoded(dataOf(shape, value)),
  });
  if (!written.ok) return refused(written, () => secretFact(hands, key, namespace, shape.name));
  return done({ fact: 'secret', key, which: 'secret', view: { ...toSecretView(written.object, deps.hash), minted } });
};

const updateSecret: Performer<'UpdateSecret'> = async (action, hands) => {
  const { deps, world } = hands;
  const { namespace, name, shape, instance } = action;
  const key = pathOf({ namespace, name });
  const view = world.keys.get(key);
  const secret = present(view?.secret);
  if (view === undefined || secret === undefined) return stale();
  if (action.value === 'status') {
    const moved = await mintedMeanwhile(hands, instance, aliasOf(view.object).key, (live) =>
      isLive(live, view, secret),
    );
    if (moved !== undefined) return moved;
  }
  const value = action.value === 'status' ? view.object.status?.keyValue : (secret.data.get('key') ?? '');
  if (value === undefined) return failed(`Secret "${shape.name}" has no key to keep`);
  const written = await deps.cluster.patch(RESOURCES.secrets, namespace, shape.name, toPatch(secret, shape, value));
  if (!written.ok) return refused(written, () => secretFact(hands, key, namespace, shape.name));
  return done({ fact: 'secret', key, which: 'secret', view: toSecretView(written.object, deps.hash) });
};

/** Whether the status has the value that lives, and the Secret has not. */
const isLive = (live: ReadonlyArray<string>, view: KeyView, secret: PresentSecret): boolean =>
  view.statusHash !== undefined && live.includes(view.statusHash) && !live.includes(secret.hash ?? '');

const deleteSecret: Performer<'DeleteSecret'> = async (action, hands) => {
  const { namespace, name, secret, uid, unless, instance } = action;
  const key = pathOf({ namespace, name });
  const which = placeOf(hands, key, secret);
  if (unless !== undefined) {
    const same = (live: ReadonlyArray<string>) =>
      live.length === unless.live.length && live.every((hash) => unless.live.includes(hash));
    const moved = await mintedMeanwhile(hands, instance, unless.claim, same);
    if (moved !== undefined) return moved;
    const now = await readSecret(hands.deps, namespace, secret);
    const seen = hands.world.keys.get(key)?.[which];
    const untouched =
      now.state === 'present' && seen?.state === 'present' && now.resourceVersion === seen.resourceVersion;
    if (!untouched) return stale({ fact: 'secret', key, which, view: now });
  }
  const written = await hands.deps.cluster.delete(RESOURCES.secrets, namespace, secret, uid);
  if (!written.ok && written.refusal !== 'gone')
    return refused(written, () => secretFact(hands, key, namespace, secret));
  return done({ fact: 'secret', key, which, view: { state: 'absent' } });
};

function placeOf({ world: { keys } }: Hands, key: Path, secret: string): 'secret' | 'previous' {
  return present(keys.get(key)?.previous)?.name === secret ? 'previous' : 'secret';
}

/** Another run mints Secret first, row second: before an edited value is replaced the rows are asked once more. */
async function mintedMeanwhile(
  { links }: Hands,
  instance: Path,
  claim: string,
  asPlanned: (live: ReadonlyArray<string>) => boolean,
): Promise<Outcome | undefined> {
  const link = links.get(instance);
  if (link === undefined) return failed('its database cannot be reached');
  const claims = await readClaims(link.registry, link.uid);
  const found = claims.get(claim);
  return asPlanned(found === undefined ? [] : currentHashesOf(found))
    ? undefined
    : stale({ fact: 'claims', instance, claims });
}

async function secretFact(hands: Hands, key: Path, namespace: string, secret: string): Promise<Fact> {
  const view = await readSecret(hands.deps, namespace, secret);
  return { fact: 'secret', key, which: placeOf(hands, key, secret), view };
}

/** The Secret as its shape makes it of the value, if it is still as it was seen. */
export function toPatch(secret: PresentSecret, shape: SecretShape, value: string): Readonly<Record<string, unknown>> {
  const data = dataOf(shape, value);
  const removed = [...secret.data.keys()].filter((entry) => !data.has(entry));
  const owners = ownersAfter(secret.owners, shape);
  return {
    metadata: {
      resourceVersion: secret.resourceVersion,
      ...metadataOf(secret, shape),
      ownerReferences: owners.length === 0 ? null : owners,
    },
    data: { ...encoded(data), ...Object.fromEntries(removed.map((entry) => [entry, null])) },
  };
}

const encoded = (data: ReadonlyMap<string, string>): Readonly<Record<string, string>> =>
  Object.fromEntries([...data].map(([entry, text]) => [entry, encode(text)]));

export const secretPerformers = {
  CreateSecret: createSecret,
  UpdateSecret: updateSecret,
  DeleteSecret: deleteSecret,
} satisfies { readonly [Name in ActionName]?: Performer<Name> };
