// The double of a Kubernetes API server: the Cluster port in memory, with the rules that our functions rely on.

import { hasMoreMembers } from '#core/json/json.ts';
import type { Clock } from '#core/ports/clock.ts';
import {
  type Cluster,
  ClusterError,
  type KubeObject,
  RESOURCES,
  type Requester,
  type Resource,
  type WriteRefusal,
  type WriteResult,
  withTooManyKeys,
} from '#core/ports/cluster.ts';
import type { Ids } from '#core/ports/ids.ts';
import { kinds } from '../../crds/kinds/kinds.ts';
import { applyOver, isRecord, type Json, mergePatch } from './merge-patch.ts';
import { createObjects, refuse, type StoredObject } from './objects.ts';
import { toFieldPredicate, toLabelPredicate } from './selector.ts';

export interface Call {
  /** `get` without a name asks whether the resource is served. */
  readonly verb: 'get' | 'list' | 'create' | 'patch' | 'apply' | 'delete' | 'may';
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: 'status' | undefined;
  /** The object or patch that a write carries; the selectors of a list. */
  readonly body?: unknown;
  /** A write that changed nothing: the object is of the same version. */
  isNoOp?: boolean;
}

/**
 * What goes wrong with a call: a write is refused, or (`lost`) it happens and the answer never arrives. Throw for a
 * call that fails.
 */
export type Fault = WriteRefusal | 'lost' | undefined;

export interface MemoryCluster extends Cluster {
  /** Every call so far, in order; set `length = 0` to count anew. */
  readonly calls: Call[];
  /** Asked before each call; may throw. The last one set holds. */
  inject(fault: (call: Call) => Fault | Promise<Fault>): void;
  /** Everything stored, or everything of one resource, in the order of namespace and name. */
  objects(resource?: Resource): ReadonlyArray<KubeObject>;
  /**
   * What the garbage collector and the namespace controller would do until nothing is left to do. Answers how many
   * objects it deleted.
   */
  collectGarbage(): number;
}

export interface MemoryClusterDependencies {
  readonly clock: Clock;
  readonly ids: Ids;
  /** Answers `may`. Everybody may everything by default. */
  readonly allows?: (user: Requester, verb: string, resource: Resource, namespace: string, name?: string) => boolean;
  /** Answers `serves`. By default our kinds are served, and what our functions touch. */
  readonly serves?: (resource: Resource) => boolean;
  /** Refuse what is created in a namespace that has no Namespace object. Off by default. */
  readonly strictNamespaces?: boolean;
}

export function createMemoryCluster(deps: MemoryClusterDependencies): MemoryCluster {
  const store = createObjects(deps);
  const calls: Call[] = [];
  let inject: (call: Call) => Fault | Promise<Fault> = () => undefined;

  /** Counts the call, asks for a fault, then does it: nothing inside `does` waits, so two calls never interleave. */
  async function read<T>(call: Call, does: () => T): Promise<T> {
    calls.push(call);
    const fault = await inject(call);
    if (fault !== undefined) throw new ClusterError(`injected: ${fault}`);
    const isAbout = call.verb === 'list' || (call.verb === 'get' && call.name !== undefined);
    if (isAbout && deps.serves?.(call.resource) === false)
      throw new ClusterError(`reading ${call.resource.plural}: 404 page not found`, 404);
    return does();
  }
  async function write<T>(call: Call, does: () => WriteResult<T>): Promise<WriteResult<T>> {
    calls.push(call);
    const fault = await inject(call);
    if (fault !== undefined && fault !== 'lost') return refuse(fault, `injected: ${fault}`);
    const written = does();
    if (fault === 'lost') throw new ClusterError(`injected: the answer to this ${call.verb} was lost`);
    return written;
  }

  const list: Cluster['list'] = (resource, selection = {}) =>
    read({ verb: 'list', resource, namespace: selection.namespace, body: selection }, () => {
      const fields = toFieldPredicate(resource, selection.fieldSelector);
      const labels = toLabelPredicate(selection.labelSelector);
      const { namespace } = selection;
      return store
        .all(resource)
        .map(({ object }) => object)
        .filter((object) => namespace === undefined || object.metadata.namespace === namespace)
        .filter((object) => fields(object) && labels(object))
        .slice(0, selection.limit)
        .map((object) =>
          selection.limit === 1 && isTooWide(resource, object) ? withTooManyKeys(resource, namespace, '') : object,
        );
    });

  return {
    calls,
    inject: (fault) => {
      inject = fault;
    },
    objects: (resource) => store.all(resource).map(({ object }) => object),
    collectGarbage: store.collectGarbage,

    get: (resource, namespace, name, how) =>
      read({ verb: 'get', resource, namespace, name, body: how }, () => {
        const { apiVersion, kind, metadata, ...rest } = store.find(resource, namespace, name)?.object ?? {};
        if (metadata === undefined) return undefined;
        if (isTooWide(resource, { metadata, ...rest })) return withTooManyKeys(resource, namespace, name);
        return { apiVersion, kind, metadata, ...(how?.metadataOnly ? {} : rest) } as KubeObject;
      }),

    list,
    listPages: async (resource, selection, onPage) => {
      const { limit = Number.POSITIVE_INFINITY, ...whole } = selection;
      const found = await list(resource, whole);
      onPage(found.slice(0, limit), found.length > limit);
    },

    create: (resource, object) =>
      write({ verb: 'create', resource, ...place(object), body: object }, () => store.insert(resource, object)),

    patch: (resource, namespace, name, patch, subresource) =>
      write({ verb: 'patch', resource, namespace, name, subresource, body: patch }, () => {
        const stored = store.find(resource, namespace, name);
        if (stored === undefined) return missing(resource, name);
        const stale = precondition(stored, patch);
        if (stale !== undefined) return refuse('conflict', stale);
        return store.update(resource, stored, mergePatch(stored.object, patch) as KubeObject, subresource);
      }),

    apply: async (resource, object, { isDry } = { isDry: false }) => {
      const there = store.find(resource, object.metadata.namespace, object.metadata.name);
      if (isDry && there !== undefined) {
        const would = applyOver(there.object, there.applied, object) as KubeObject;
        return read({ verb: 'get', resource, ...place(object) }, () => ({ ok: true, object: would }));
      }
      const call: Call = { verb: 'apply', resource, ...place(object), body: object };
      return write(call, () => {
        const stored = store.find(resource, object.metadata.namespace, object.metadata.name);
        const { uid, resourceVersion } = object.metadata;
        if (uid !== undefined && uid !== stored?.object.metadata.uid)
          return refuse('conflict', `Precondition failed: uid ${uid} is not ${stored?.object.metadata.uid}`);
        if (resourceVersion !== undefined && resourceVersion !== stored?.object.metadata.resourceVersion)
          return refuse('conflict', `the object has been modified: it is not of version ${resourceVersion}`);
        if (stored === undefined) {
          const inserted = store.insert(resource, object);
          const made = store.find(resource, object.metadata.namespace, object.metadata.name);
          if (inserted.ok && made !== undefined) made.applied = object;
          return inserted;
        }
        const before = stored.object.metadata.resourceVersion;
        const merged = applyOver(stored.object, stored.applied, object) as KubeObject;
        const written = store.update(resource, stored, merged);
        if (written.ok && written.object.metadata.resourceVersion === before) call.isNoOp = true;
        if (written.ok) stored.applied = object;
        return written;
      });
    },

    delete: (resource, namespace, name, uid) =>
      write({ verb: 'delete', resource, namespace, name }, () => {
        const stored = store.find(resource, namespace, name);
        if (stored === undefined) return missing(resource, name);
        if (stored.object.metadata.uid !== uid) {
          return refuse('conflict', `the UID in the precondition (${uid}) does not match the UID in record`);
        }
        store.remove(resource, stored);
        return { ok: true, object: undefined };
      }),

    serves: (resource) => read({ verb: 'get', resource }, () => (deps.serves ?? isKnown)(resource)),

    may: (user, verb, resource, namespace, name) =>
      read({ verb: 'may', resource, namespace, name, body: { user, verb } }, () =>
        deps.allows === undefined ? true : deps.allows(user, verb, resource, namespace, name),
      ),
  };
}

const isTooWide = ({ maxMembers }: Resource, object: object): boolean =>
  maxMembers !== undefined && hasMoreMembers(JSON.stringify(object), maxMembers);

const isKnown = ({ group, plural }: Resource): boolean =>
  [...Object.values(RESOURCES), ...kinds].some((known) => known.group === group && known.plural === plural);

const place = ({ metadata: { namespace, name } }: KubeObject) => ({ namespace, name });

const missing = (resource: Resource, name: string) => refuse('gone', `${resource.plural} "${name}" not found`);

function precondition({ object }: StoredObject, patch: Json): string | undefined {
  const wanted = isRecord(patch.metadata) ? patch.metadata : {};
  const { uid, resourceVersion } = object.metadata;
  if (typeof wanted.uid === 'string' && wanted.uid !== uid) return `uid is ${uid}, not ${wanted.uid}`;
  if (typeof wanted.resourceVersion === 'string' && wanted.resourceVersion !== resourceVersion) {
    return 'the object has been modified; please apply your changes to the latest version and try again';
  }
  return undefined;
}
