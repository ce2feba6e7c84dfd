// Writes of a VirtualKey's Secret. Values are handled here, and in act/database.ts where a new value is created for its
// row.
import { toBase64 } from '#core/json/base64.ts';
import { overlapOf } from '#core/keys/rotation.ts';
import { ClusterError, type KubeObject, RESOURCES, type WriteResult } from '#core/ports/cluster.ts';
import type { ActionOf, Outcome } from '../action.ts';
import { dataOf, metadataOf } from '../key/secret-shape.ts';
import { type PresentSecret, pathOf, presentSecret } from '../world.ts';
import { type ActContext, conflictOutcome, doneOutcome, toOutcome } from './context.ts';

/**
 * Creates the Secret. An existing Secret of that name is never taken over: it is observed and planned for. It is
 * overwritten only if it is as it was observed. If a new value cannot be published, it is removed, because no client
 * ever had it; the value that it should replace ends nevertheless, because it may be a leaked one.
 */
export async function putSecret(action: ActionOf<'PutSecret'>, context: ActContext): Promise<Outcome> {
  const { deps, world, links, newValues } = context;
  const secret = presentSecret(world.keys.get(pathOf(action))?.secret);
  const created = newValues.get(pathOf(action));
  const value = action.value === 'new' ? created?.value : valueToWrite(action, context);
  if (value === undefined) return conflictOutcome;
  const registry = links.get(action.instance)?.registry;
  const endPrevious = async (): Promise<void> => {
    const rotation = world.keys.get(pathOf(action))?.object.spec.rotation;
    if (created !== undefined && secret?.hash !== undefined)
      await registry?.endValues(created.scopeId, [secret.hash], overlapOf(rotation));
  };
  const written = await write(action, secret, value, context).catch(async (error) => {
    // The API server may refuse with an error of its own, as for a webhook that does not answer.
    if (action.value === 'new' && error instanceof ClusterError && error.status !== undefined) await endPrevious();
    throw error;
  });
  if (written.ok || action.value !== 'new' || created === undefined) return toOutcome(written);
  newValues.delete(pathOf(action));
  // The refusal may be about our own write, which the network repeated.
  const stored = await deps.cluster.get(RESOURCES.secrets, action.namespace, action.shape.name);
  if ((stored?.data as Readonly<Record<string, string>> | undefined)?.key === toBase64(value)) return doneOutcome();
  await registry?.removeValue(created.scopeId, deps.hash(value));
  const outcome = toOutcome(written);
  if (outcome.ended !== 'conflict') await endPrevious();
  return outcome;
}

function valueToWrite({ value, ...at }: ActionOf<'PutSecret'>, { world }: ActContext): string | undefined {
  const path = pathOf(at);
  const view = world.keys.get(path);
  if (value === 'status') return view?.object.status?.keyValue;
  return (
    presentSecret(value === 'previous' ? view?.previous : view?.secret)?.data.get('key') ??
    (value === 'same' ? '' : undefined)
  );
}

/**
 * Writes the Secret in its desired shape, with this value: creates it, or changes the existing Secret if that is as it
 * was observed.
 */
async function write(
  { namespace, shape }: ActionOf<'PutSecret'>,
  secret: PresentSecret | undefined,
  value: string,
  { deps }: ActContext,
): Promise<WriteResult<KubeObject>> {
  const { name, labels, annotations } = shape;
  const texts = Object.entries(dataOf(shape, value));
  const data = Object.fromEntries(texts.map(([key, text]) => [key, toBase64(text)]));
  if (secret === undefined) {
    const metadata = { name, namespace, labels, annotations };
    const type = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque' };
    return deps.cluster.create(RESOURCES.secrets, { ...type, metadata, data });
  }
  // The world has only a part of the Secret. The patch names what is removed, and is refused if anything has changed
  // since the Secret was read.
  const stored = await deps.cluster.get(RESOURCES.secrets, namespace, name);
  const superfluous = Object.keys(stored?.data ?? {}).filter((entry) => !Object.hasOwn(data, entry));
  const ownerReferences = otherOwners(stored);
  const metadata = { resourceVersion: secret.resourceVersion, ...metadataOf(secret, shape), ownerReferences };
  const removed = Object.fromEntries(superfluous.map((entry) => [entry, null]));
  const patch = { metadata, data: { ...data, ...removed } };
  const written = await deps.cluster.patch(RESOURCES.secrets, namespace, name, patch);
  if (written.ok || written.refusal !== 'invalid' || stored?.immutable !== true) return written;
  const message = `Secret "${name}" is immutable, so it cannot be changed: delete it, and the operator creates it again with a new key value`;
  return { ...written, message };
}

/** Marks the Secret of a retained key if it is as it was observed. An immutable Secret can be marked too. */
export async function retainSecret(action: ActionOf<'RetainSecret'>, { deps, world }: ActContext): Promise<Outcome> {
  const { namespace, secret: name, marks } = action;
  const view = world.keys.get(pathOf(action));
  const secret = [view?.secret, view?.previous].map(presentSecret).find((one) => one?.name === name);
  if (secret === undefined) return conflictOutcome;
  const stored = await deps.cluster.get(RESOURCES.secrets, namespace, name, { metadataOnly: true });
  const metadata = { resourceVersion: secret.resourceVersion, ...marks, ownerReferences: otherOwners(stored) };
  return toOutcome(await deps.cluster.patch(RESOURCES.secrets, namespace, name, { metadata }));
}

/** The owners of the Secret without VirtualKeys: an earlier version made the VirtualKey an owner of its Secret. */
function otherOwners(stored: KubeObject | undefined) {
  const owners = (stored?.metadata.ownerReferences ?? []).filter(({ kind }) => kind !== 'VirtualKey');
  return owners.length === 0 ? null : owners;
}
