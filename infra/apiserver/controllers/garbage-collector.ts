// Garbage collection: objects whose owner is gone, or going.

import type { Deps } from '../deps.ts';
import { type KubeObject, type OwnerReference, withMeta, withoutFinalizer } from '../object.ts';
import { keyOf, type Resource } from '../resource.ts';
import type { Key, StoredEvent } from '../store/database.ts';
import { deleteObject, foregroundFinalizer, orphanFinalizer } from '../write/delete.ts';
import { controllerRequest, done, editObject } from './controller-request.ts';
import { type Add, type Controller, createController } from './work-queue.ts';

const as = 'generic-garbage-collector';

/**
 * Deletes objects whose owners are all gone (or wait for them, in foreground deletion), removes references to lost
 * owners from objects that have others, and releases owners that wait for their dependents or orphan them.
 */
export function createGarbageCollector(deps: Deps): Controller {
  const { store, registry } = deps;

  async function work(key: Key, add: Add): Promise<void> {
    const object = store.get(key);
    const resource = registry.byStorage(key.resource);
    if (object === undefined || resource === undefined) return;
    const { finalizers = [], deletionTimestamp } = object.metadata;
    if (deletionTimestamp === undefined) await collect(resource, object, key);
    else if (finalizers.includes(orphanFinalizer)) await orphan(object, key);
    else if (finalizers.includes(foregroundFinalizer)) await clear(object, key, add);
  }

  /** Removes this owner from its dependents, then releases it. */
  async function orphan({ metadata: { uid } }: KubeObject, key: Key): Promise<void> {
    for (const dependent of dependentsOf(uid)) {
      await editObject(deps, { as, key: dependent }, (object) =>
        withoutOwners(object, (reference) => reference.uid === uid),
      );
    }
    await release(key, orphanFinalizer);
  }

  /** Foreground deletion: the owner goes when no dependent that blocks it is left. */
  async function clear({ metadata: { uid } }: KubeObject, key: Key, add: Add): Promise<void> {
    const dependents = dependentsOf(uid);
    for (const dependent of dependents) add(dependent);
    const blocks = (dependent: Key) =>
      store.get(dependent)?.metadata.ownerReferences?.some((one) => one.uid === uid && one.blockOwnerDeletion === true);
    if (!dependents.some(blocks)) await release(key, foregroundFinalizer);
  }

  async function collect(resource: Resource, object: KubeObject, key: Key): Promise<void> {
    const { ownerReferences = [], finalizers = [], uid = '', resourceVersion = '' } = object.metadata;
    if (ownerReferences.length === 0) return;
    const states = ownerReferences.map((reference) => stateOf(object, reference));
    if (states.includes('unknown')) return;
    if (states.includes('there')) {
      const lost = ownerReferences.filter((_, i) => states[i] === 'gone');
      if (lost.length > 0)
        await editObject(deps, { as, key }, (now) =>
          withoutOwners(now, ({ uid }) => lost.some((one) => one.uid === uid)),
        );
      return;
    }
    const propagationPolicy = states.includes('waiting') && dependentsOf(uid).length > 0 ? 'Foreground' : 'Background';
    const kept = finalizers.some((one) => one === foregroundFinalizer || one === orphanFinalizer);
    const options = { preconditions: { uid, resourceVersion }, ...(!kept && { propagationPolicy }) };
    done(await deleteObject(deps, controllerRequest({ as, verb: 'delete', resource, object }), options));
  }

  /** An owner is looked up as its reference says: kind, name, the same namespace (or none), and the uid. */
  function stateOf(object: KubeObject, reference: OwnerReference): 'there' | 'waiting' | 'gone' | 'unknown' {
    const key = ownerKey(object, reference);
    if (key === undefined) return 'unknown';
    const owner = store.get(key);
    if (owner === undefined || owner.metadata.uid !== reference.uid) return 'gone';
    const { deletionTimestamp, finalizers = [] } = owner.metadata;
    return deletionTimestamp !== undefined && finalizers.includes(foregroundFinalizer) ? 'waiting' : 'there';
  }

  /** Undefined for an owner of a kind that is not served. */
  function ownerKey({ metadata }: KubeObject, { apiVersion, kind, name }: OwnerReference): Key | undefined {
    const resource = registry.byKind(apiVersion, kind);
    return resource && keyOf(resource, metadata.namespace, name);
  }

  /** The objects that name this uid as an owner. */
  function dependentsOf(uid: string | undefined): Key[] {
    return store.resources().flatMap((resource) =>
      store
        .list(resource)
        .filter(({ metadata }) => metadata.ownerReferences?.some((reference) => reference.uid === uid))
        .map(({ metadata: { namespace = '', name = '' } }) => ({ resource, namespace, name })),
    );
  }

  function release(key: Key, finalizer: string): Promise<void> {
    return editObject(deps, { as, key }, (now) => withoutFinalizer(now, finalizer));
  }

  function concerned({ type, object, previous, ...key }: StoredEvent): Key[] {
    const { ownerReferences = [], deletionTimestamp, uid } = object.metadata;
    const isGone = type === 'DELETED';
    const former = previous?.metadata.ownerReferences ?? [];
    return [
      ...(!isGone && (ownerReferences.length > 0 || deletionTimestamp !== undefined) ? [key] : []),
      ...(isGone ? dependentsOf(uid) : []),
      ...former.flatMap((reference) => ownerKey(object, reference) ?? []),
    ];
  }

  return createController(deps, { name: 'garbage collection', concerned, work });
}

function withoutOwners(object: KubeObject, lost: (reference: OwnerReference) => boolean): KubeObject {
  const left = (object.metadata.ownerReferences ?? []).filter((reference) => !lost(reference));
  return withMeta(object, { ownerReferences: left.length > 0 ? left : undefined });
}
