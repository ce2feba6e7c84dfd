// Index of owner references, by uid.
import type { KubeObject } from '../object.ts';
import type { Key, StoredEvent } from '../store/history.ts';
import type { Store } from '../store/store.ts';

export type OwnerIndex = {
  /** The objects that name this uid as an owner. */
  dependents(uid: string): Key[];
  /** Where the object of this uid is, if it is. */
  keyOf(uid: string): Key | undefined;
};

/** Kept by the store's events. */
export function createOwnerIndex(store: Store): OwnerIndex {
  const dependents = new Map<string, Map<string, Key>>();
  const places = new Map<string, Key>();

  function link(key: Key, object: KubeObject): void {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const known = dependents.get(uid) ?? new Map<string, Key>();
      dependents.set(uid, known.set(pathOf(key), key));
    }
  }

  function unlink(key: Key, object: KubeObject): void {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const known = dependents.get(uid);
      known?.delete(pathOf(key));
      if (known?.size === 0) dependents.delete(uid);
    }
  }

  function follow({ resource, namespace, name, type, object, previous }: StoredEvent): void {
    const key = { resource, namespace, name };
    const uid = object.metadata.uid ?? '';
    if (previous !== undefined) unlink(key, previous);
    if (type === 'DELETED') places.delete(uid);
    else {
      places.set(uid, key);
      link(key, object);
    }
  }

  for (const resource of store.resources()) {
    for (const object of store.list(resource)) {
      const { namespace = '', name = '' } = object.metadata;
      follow({ resource, namespace, name, type: 'ADDED', object, revision: 0 });
    }
  }
  store.subscribe(follow);
  return {
    dependents: (uid) => [...(dependents.get(uid)?.values() ?? [])],
    keyOf: (uid) => places.get(uid),
  };
}

export function pathOf({ resource, namespace, name }: Key): string {
  return `${resource} ${namespace}/${name}`;
}
