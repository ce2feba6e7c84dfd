// Objects of the double: versions, generations, finalizers, namespaces, garbage.
import type { Clock } from '#core/ports/clock.ts';
import type { KubeObject, Resource, WriteRefusal, WriteResult } from '#core/ports/cluster.ts';
import type { Ids } from '#core/ports/ids.ts';
import { sameJson } from './merge-patch.ts';
import { invalid, keepOwn, settle, withoutEmptyLists } from './object-rules.ts';

export interface StoredObject {
  object: KubeObject;
  /** The last server-side apply. */
  applied?: KubeObject;
}

export interface ObjectsDependencies {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly strictNamespaces?: boolean;
}

type Metadata = KubeObject['metadata'];

const NAMESPACES: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace' };

export const refuse = (refusal: WriteRefusal, message: string) => ({ ok: false, refusal, message }) as const;

/**
 * Our four kinds, workloads and routes: `status` changes by its subresource only, `generation` counts everything but metadata
 * and status.
 */
const hasStatus = ({ group }: Resource): boolean =>
  group.endsWith('.gateway-operator.dev') || group.endsWith('networking.k8s.io') || WORKLOADS.includes(group);
const WORKLOADS: ReadonlyArray<string> = ['apps', 'serving.knative.dev'];

export function createObjects({ clock, ids, strictNamespaces = false }: ObjectsDependencies) {
  const collections = new Map<string, { resource: Resource; byName: Map<string, StoredObject> }>();
  let version = 0;

  const collection = (resource: Resource) => {
    const key = `${resource.group}/${resource.plural}`;
    const known = collections.get(key) ?? { resource, byName: new Map<string, StoredObject>() };
    collections.set(key, known);
    return known.byName;
  };
  const keyOf = (namespace: string | undefined, name: string) => `${namespace ?? ''}/${name}`;
  const keyOfObject = ({ metadata }: KubeObject) => keyOf(metadata.namespace, metadata.name);
  const find = (resource: Resource, namespace: string | undefined, name: string): StoredObject | undefined =>
    collection(resource).get(keyOf(namespace, name));
  const nextVersion = () => {
    version += 1;
    return String(version);
  };
  const timestamp = () => new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');

  /** Objects by namespace and name, as etcd keeps them. */
  function all(resource?: Resource): ReadonlyArray<StoredObject> {
    const chosen = resource === undefined ? [...collections.values()] : [{ byName: collection(resource) }];
    return chosen.flatMap(({ byName }) =>
      [...byName.entries()].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, stored]) => stored),
    );
  }

  function insert(resource: Resource, draft: KubeObject): WriteResult<KubeObject> {
    const { namespace, name } = draft.metadata;
    const wrong = invalid(resource, draft);
    if (wrong !== undefined) return refuse('invalid', wrong);
    if (namespace !== undefined) {
      const home = find(NAMESPACES, undefined, namespace);
      if (home === undefined && strictNamespaces) return refuse('gone', `namespaces "${namespace}" not found`);
      if (home?.object.metadata.deletionTimestamp !== undefined) {
        return refuse(
          'terminating',
          `unable to create new content in namespace ${namespace} because it is being terminated`,
        );
      }
    }
    if (find(resource, namespace, name) !== undefined) {
      return refuse('exists', `${resource.plural} "${name}" already exists`);
    }
    const { status: _status, ...rest } = draft;
    const { deletionTimestamp: _deletion, ...metadata } = draft.metadata;
    const born: Metadata = {
      ...withoutEmptyLists(metadata),
      uid: ids.next(),
      resourceVersion: nextVersion(),
      creationTimestamp: timestamp(),
      ...(hasStatus(resource) ? { generation: 1 } : {}),
    };
    const object = settle({ ...(hasStatus(resource) ? rest : draft), metadata: born } as KubeObject);
    collection(resource).set(keyOf(namespace, name), { object });
    return { ok: true, object };
  }

  function update(
    resource: Resource,
    stored: StoredObject,
    wanted: KubeObject,
    subresource?: 'status',
  ): WriteResult<KubeObject> {
    const before = stored.object;
    const split = hasStatus(resource);
    const body = split
      ? subresource === 'status'
        ? { ...before, status: wanted.status }
        : { ...wanted, status: before.status }
      : wanted;
    const metadata = subresource === 'status' && split ? before.metadata : keepOwn(wanted.metadata, before.metadata);
    const draft = settle({ ...body, metadata } as KubeObject);
    const wrong = invalid(resource, draft, before);
    if (wrong !== undefined) return refuse('invalid', wrong);
    if (sameJson(draft, before)) return { ok: true, object: before };

    const changed = split && !sameJson(withoutMetaAndStatus(draft), withoutMetaAndStatus(before));
    const generation = changed ? { generation: (before.metadata.generation ?? 0) + 1 } : {};
    stored.object = settle({
      ...draft,
      metadata: { ...draft.metadata, ...generation, resourceVersion: nextVersion() },
    });
    if (isFinished(stored.object)) collection(resource).delete(keyOfObject(stored.object));
    return { ok: true, object: stored.object };
  }

  /** Deletes the object, or marks it while a finalizer (or a namespace's content) holds it. */
  function remove(resource: Resource, stored: StoredObject): void {
    const { metadata } = stored.object;
    if (metadata.deletionTimestamp !== undefined) return;
    const isNamespace = resource.plural === 'namespaces';
    if ((metadata.finalizers ?? []).length === 0 && !isNamespace) {
      collection(resource).delete(keyOfObject(stored.object));
      return;
    }
    const marked = { ...metadata, deletionTimestamp: timestamp(), resourceVersion: nextVersion() };
    const generation = metadata.generation === undefined ? {} : { generation: metadata.generation + 1 };
    const phase = isNamespace ? { status: { phase: 'Terminating' } } : {};
    stored.object = settle({ ...stored.object, ...phase, metadata: { ...marked, ...generation } } as KubeObject);
  }

  function collectGarbage(): number {
    let deleted = 0;
    for (let found = true; found; ) {
      found = false;
      const uids = new Set(all().map(({ object }) => object.metadata.uid));
      for (const { resource, byName } of [...collections.values()]) {
        for (const stored of [...byName.values()]) {
          if (!isGarbage(resource, stored.object, uids)) continue;
          if (resource.plural === 'namespaces') byName.delete(keyOfObject(stored.object));
          else remove(resource, stored);
          deleted += 1;
          found = true;
        }
      }
    }
    return deleted;
  }

  /**
   * Whether an object is garbage: no owner left, or a namespace being deleted; a terminating namespace once it is
   * empty.
   */
  function isGarbage(resource: Resource, { metadata }: KubeObject, uids: ReadonlySet<string | undefined>): boolean {
    if (resource.plural === 'namespaces') {
      const held = (metadata.finalizers ?? []).length > 0;
      return (
        metadata.deletionTimestamp !== undefined &&
        !held &&
        !all().some(({ object }) => object.metadata.namespace === metadata.name)
      );
    }
    if (metadata.deletionTimestamp !== undefined) return false;
    const home = metadata.namespace === undefined ? undefined : find(NAMESPACES, undefined, metadata.namespace);
    if (home?.object.metadata.deletionTimestamp !== undefined) return true;
    const owners = metadata.ownerReferences ?? [];
    return owners.length > 0 && owners.every(({ uid }) => !uids.has(uid));
  }

  return { all, find, insert, update, remove, collectGarbage };
}

const isFinished = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0;

function withoutMetaAndStatus({ metadata: _metadata, status: _status, ...rest }: KubeObject): unknown {
  return rest;
}
