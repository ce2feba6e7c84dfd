// Writes of a key's Secret. Values are handled here, and where a new one is made for its row.
import { encode } from '#core/json/base64.ts';
import { type KubeObject, RESOURCES, type WriteResult } from '#core/ports/cluster.ts';
import type { ActionOf, Outcome } from '../action.ts';
import { dataOf, metadataOf } from '../key/secret-shape.ts';
import { type PresentSecret, pathOf, present } from '../world.ts';
import { type ActContext, conflict, done, toOutcome } from './context.ts';

/**
 * Created, never taken over: a Secret of that name which is there already is looked at, and planned with. One that is
 * there is written over only as it was seen. A new value that is not published is taken back: no client ever had it.
 */
export async function putSecret(action: ActionOf<'PutSecret'>, context: ActContext): Promise<Outcome> {
  const { deps, world, links, minted } = context;
  const secret = present(world.keys.get(pathOf(action))?.secret);
  const fresh = minted.get(pathOf(action));
  const value = action.value === 'new' ? fresh?.value : valueToWrite(action, context);
  if (value === undefined) return conflict;
  const written = await write(action, secret, value, context);
  if (written.ok || action.value !== 'new' || fresh === undefined) return toOutcome(written);
  minted.delete(pathOf(action));
  // The refusal may be about our own write, repeated by the network.
  const there = await deps.cluster.get(RESOURCES.secrets, action.namespace, action.shape.name);
  if ((there?.data as Readonly<Record<string, string>> | undefined)?.key === encode(value)) return done();
  await links.get(action.instance)?.registry.retireValues(fresh.scopeId, [deps.hash(value)]);
  return toOutcome(written);
}

function valueToWrite({ value, ...at }: ActionOf<'PutSecret'>, { world }: ActContext): string | undefined {
  const path = pathOf(at);
  const view = world.keys.get(path);
  if (value === 'status') return view?.object.status?.keyValue;
  return (
    present(value === 'previous' ? view?.previous : view?.secret)?.data.get('key') ??
    (value === 'same' ? '' : undefined)
  );
}

/** The Secret as its shape makes it of the value: a new one, or the one that is there if it is still as it was seen. */
async function write(
  { namespace, shape }: ActionOf<'PutSecret'>,
  secret: PresentSecret | undefined,
  value: string,
  { deps }: ActContext,
): Promise<WriteResult<KubeObject>> {
  const { name, labels, annotations } = shape;
  const texts = Object.entries(dataOf(shape, value));
  const data = Object.fromEntries(texts.map(([entry, text]) => [entry, encode(text)]));
  if (secret === undefined) {
    const metadata = { name, namespace, labels, annotations };
    const type = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque' };
    return deps.cluster.create(RESOURCES.secrets, { ...type, metadata, data });
  }
  // The world has little of it. The patch names what goes, and is refused where anything has changed since it was seen.
  const there = await deps.cluster.get(RESOURCES.secrets, namespace, name);
  const surplus = Object.keys(there?.data ?? {}).filter((entry) => !Object.hasOwn(data, entry));
  // An earlier version made the VirtualKey an owner.
  const owners = (there?.metadata.ownerReferences ?? []).filter(({ kind }) => kind !== 'VirtualKey');
  const ownerReferences = owners.length === 0 ? null : owners;
  const metadata = { resourceVersion: secret.resourceVersion, ...metadataOf(secret, shape), ownerReferences };
  const removed = Object.fromEntries(surplus.map((entry) => [entry, null]));
  return deps.cluster.patch(RESOURCES.secrets, namespace, name, { metadata, data: { ...data, ...removed } });
}
