// Garbage collection: objects whose owner is gone, or going.

import type { Deps } from '../deps.ts';
import type { Log } from '../log.ts';
import { type KubeObject, type OwnerReference, withMeta, withoutFinalizer } from '../object.ts';
import { keyOf, type Resource } from '../resource.ts';
import type { Key, StoredEvent } from '../store/history.ts';
import { deleteObject, foregroundFinalizer, orphanFinalizer } from '../write/delete.ts';
import { update } from '../write/update.ts';
import { controllerRequest, done } from './controller-request.ts';
import { createOwnerIndex, pathOf } from './owner-index.ts';
import { createWorkQueue } from './work-queue.ts';

const as = 'generic-garbage-collector';

/**
 * Deletes what has only owners that are gone (or wait for it, in foreground deletion), takes references to lost owners off
 * what has others, and lets owners go that wait for their dependents or want to orphan them.
 */
export function createGarbageCollector(deps: Deps, log: Log): { start(): void; stop(): Promise<void> } {
  const { store, registry } = deps;
  const queue = createWorkQueue<Key>({ name: 'garbage collection', log, keyOf: pathOf, work });
  let owners: ReturnType<typeof createOwnerIndex>;

  async function work(key: Key): Promise<void> {
    const object = store.get(key);
    const resource = registry.byStorage(key.resource);
    if (object === undefined || resource === undefined) return;
    const { finalizers = [], deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined && finalizers.includes(orphanFinalizer)) await orphan(resource, object);
    else if (deletionTimestamp !== undefined && finalizers.includes(foregroundFinalizer)) await clear(resource, object);
    else if (deletionTimestamp === undefined) await collect(resource, object);
  }

  /** Takes this owner off its dependents, then lets it go. */
  async function orphan(resource: Resource, owner: KubeObject): Promise<void> {
    for (const key of owners.dependents(owner.metadata.uid ?? '')) {
      await edit(key, (object) => withoutOwners(object, (reference) => reference.uid === owner.metadata.uid));
    }
    await release(resource, owner, orphanFinalizer);
  }

  /** Foreground deletion: the owner goes when no dependent that blocks it is left. */
  async function clear(resource: Resource, owner: KubeObject): Promise<void> {
    const { uid = '' } = owner.metadata;
    const dependents = owners.dependents(uid);
    for (const key of dependents) queue.add(key);
    const blocks = (key: Key) =>
      store.get(key)?.metadata.ownerReferences?.some((one) => one.uid === uid && one.blockOwnerDeletion === true);
    if (!dependents.some(blocks)) await release(resource, owner, foregroundFinalizer);
  }

  async function collect(resource: Resource, object: KubeObject): Promise<void> {
    const { ownerReferences = [], uid = '', resourceVersion = '' } = object.metadata;
    if (ownerReferences.length === 0) return;
    const states = ownerReferences.map((reference) => stateOf(object, reference));
    if (states.includes('unknown')) return;
    if (states.includes('there')) {
      const lost = ownerReferences.filter((_, i) => states[i] === 'gone');
      if (lost.length > 0)
        await edit(keyFor(resource, object), (now) => withoutOwners(now, (one) => lost.some((l) => l.uid === one.uid)));
      return;
    }
    const propagationPolicy =
      states.includes('waiting') && owners.dependents(uid).length > 0 ? 'Foreground' : 'Background';
    const kept = (object.metadata.finalizers ?? []).some(
      (one) => one === foregroundFinalizer || one === orphanFinalizer,
    );
    const options = { preconditions: { uid, resourceVersion }, ...(!kept && { propagationPolicy }) };
    done(await deleteObject(deps, controllerRequest({ as, verb: 'delete', resource, object }), options));
  }

  /** An owner is looked up as its reference says: kind, name, the same namespace (or none), and the uid. */
  function stateOf(object: KubeObject, reference: OwnerReference): 'there' | 'waiting' | 'gone' | 'unknown' {
    const resource = registry.byKind(reference.apiVersion, reference.kind);
    if (resource === undefined) return owners.keyOf(reference.uid) === undefined ? 'unknown' : 'there';
    const owner = store.get(keyOf(resource, object.metadata.namespace, reference.name));
    if (owner === undefined || owner.metadata.uid !== reference.uid) return 'gone';
    const { deletionTimestamp, finalizers = [] } = owner.metadata;
    return deletionTimestamp !== undefined && finalizers.includes(foregroundFinalizer) ? 'waiting' : 'there';
  }

  async function edit(key: Key, next: (object: KubeObject) => KubeObject): Promise<void> {
    const [object, resource] = [store.get(key), registry.byStorage(key.resource)];
    if (object === undefined || resource === undefined) return;
    done(await update(deps, controllerRequest({ as, verb: 'patch', resource, object }), { isPut: false, next }));
  }

  function release(resource: Resource, object: KubeObject, finalizer: string): Promise<void> {
    return edit(keyFor(resource, object), (now) => withoutFinalizer(now, finalizer));
  }

  function follow({ type, object, previous, ...key }: StoredEvent): void {
    const uid = object.metadata.uid ?? '';
    if (type !== 'DELETED' && concerns(object)) queue.add(key);
    if (type === 'DELETED') for (const dependent of owners.dependents(uid)) queue.add(dependent);
    for (const reference of previous?.metadata.ownerReferences ?? []) {
      const owner = owners.keyOf(reference.uid);
      if (owner !== undefined) queue.add(owner);
    }
  }

  return {
    start() {
      owners = createOwnerIndex(store); // before follow, so that its index is up to date when follow asks it
      store.subscribe(follow);
      for (const resource of store.resources()) {
        for (const object of store.list(resource)) {
          const { namespace = '', name = '' } = object.metadata;
          if (concerns(object)) queue.add({ resource, namespace, name });
        }
      }
    },
    stop: queue.stop,
  };
}

function concerns({ metadata }: KubeObject): boolean {
  return (metadata.ownerReferences ?? []).length > 0 || metadata.deletionTimestamp !== undefined;
}

function withoutOwners(object: KubeObject, lost: (reference: OwnerReference) => boolean): KubeObject {
  const left = (object.metadata.ownerReferences ?? []).filter((reference) => !lost(reference));
  return withMeta(object, { ownerReferences: left.length > 0 ? left : undefined });
}

function keyFor(resource: Resource, { metadata }: KubeObject): Key {
  return keyOf(resource, metadata.namespace, metadata.name ?? '');
}
