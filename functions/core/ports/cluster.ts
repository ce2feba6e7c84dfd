// The cluster: the calls of the admission webhook and the reconciler to a Kubernetes API server.
import type { OwnerReference } from '#crds/names/object-meta.ts';

/** Any Kubernetes object as JSON. Kind-specific shapes come from crds/. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: ReadonlyArray<string>;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: ReadonlyArray<OwnerReference>;
  };
  readonly [member: string]: unknown;
}

/** Names a resource collection: `{group: '', version: 'v1', plural: 'secrets', kind: 'Secret'}`. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  /**
   * The maximum number of members of one object: whoever may write such objects decides how long parsing them takes.
   * An object with more is not parsed (`hasTooManyKeys`).
   */
  readonly maxMembers?: number;
}

export interface Selection {
  /** Absent: all namespaces (or a cluster-scoped resource). */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /**
   * The maximum number of objects, in one page; a page of large objects may have fewer. Absent: all, page by page. With
   * 1, an object with too many members is not parsed (`hasTooManyKeys`).
   */
  readonly limit?: number;
  /** Nothing but `metadata` is needed: large objects are not sent whole. */
  readonly metadataOnly?: true;
  /** The namespace for which the read counts in limits of concurrent reads. Absent: that of the object. */
  readonly readFor?: string;
}

/** The reason why a write did not happen, as far as callers distinguish it. Other reasons throw `ClusterError`. */
export type WriteRefusal = 'exists' | 'conflict' | 'gone' | 'terminating' | 'forbidden' | 'invalid';

export type WriteResult<T> =
  | { readonly ok: true; readonly object: T }
  | { readonly ok: false; readonly refusal: WriteRefusal; readonly message: string };

/**
 * The API server could not be reached, or gave an answer that no caller expects. `status`: the HTTP status; undefined:
 * no answer.
 */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  readonly status: number | undefined;
  constructor(message: string, status?: number, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/**
 * Every call gives up within 10 s, obeys 429 with Retry-After, and keeps one connection alive. Throws when the API
 * server is unreachable.
 */
export interface Cluster {
  /** The only namespace whose objects are read; undefined: all are read. */
  readonly onlyNamespace?: string;
  /** Undefined on 404. Of an object with too many members, only the name is returned (`hasTooManyKeys`). */
  get(
    resource: Resource,
    namespace: string | undefined,
    name: string,
    how?: Pick<Selection, 'metadataOnly' | 'readFor'>,
  ): Promise<KubeObject | undefined>;
  list(resource: Resource, selection?: Selection): Promise<ReadonlyArray<KubeObject>>;
  /**
   * Lists objects page by page, so that they are never all in memory. A list that must start again repeats its objects.
   */
  listPages(
    resource: Resource,
    selection: Selection,
    page: (objects: ReadonlyArray<KubeObject>, hasMore: boolean) => void,
  ): Promise<void>;
  create(resource: Resource, object: KubeObject): Promise<WriteResult<KubeObject>>;
  /** JSON merge patch. A `metadata.resourceVersion` or `metadata.uid` inside is a precondition (`conflict`). */
  patch(
    resource: Resource,
    namespace: string | undefined,
    name: string,
    patch: Readonly<Record<string, unknown>>,
    subresource?: 'status',
  ): Promise<WriteResult<KubeObject>>;
  /**
   * Forced server-side apply with our field manager; a dry run with `isDry`. A `metadata.uid` or
   * `metadata.resourceVersion` is a precondition: never a new object, never a later version (`conflict`).
   */
  apply(resource: Resource, object: KubeObject, how?: { readonly isDry: boolean }): Promise<WriteResult<KubeObject>>;
  /** Deletes exactly this object (uid precondition). Already gone is `gone`, another uid `conflict`. */
  delete(resource: Resource, namespace: string | undefined, name: string, uid: string): Promise<WriteResult<undefined>>;
  /** Whether the API server serves this resource now, by its discovery. Throws when discovery does not answer. */
  serves(resource: Resource): Promise<boolean>;
  /** Whether `user` may do this (SubjectAccessReview). Without a name: to every object of the namespace. */
  may(user: Requester, verb: string, resource: Resource, namespace: string, name?: string): Promise<boolean>;
}

export interface Requester {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: ReadonlyArray<string>;
  readonly extra?: Readonly<Record<string, ReadonlyArray<string>>>;
}

/** The maximum number of keys of a Secret or ConfigMap that is read. */
export const MAX_KEYS = 1000;
/**
 * Each key is a member of the data, of the fields of each program that manages it, and of the object that `kubectl
 * apply` keeps.
 */
const maxMembers = 4 * MAX_KEYS + 96;

/** The core resources that the functions read and write. */
export const RESOURCES = {
  secrets: { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', maxMembers },
  configMaps: { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', maxMembers },
  events: { group: '', version: 'v1', plural: 'events', kind: 'Event' },
  namespaces: { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace' },
} as const satisfies Record<string, Resource>;

/** An object of which only the name was read. No object of the API server has the mark. */
export const withTooManyKeys = (resource: Resource, namespace: string | undefined, name: string): KubeObject => ({
  ...typeOf(resource),
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  hasTooManyKeys: true,
});

export const hasTooManyKeys = (object: KubeObject): boolean => object.hasTooManyKeys === true;

export const typeOf = ({ group, version, kind }: Resource) => ({
  apiVersion: group === '' ? version : `${group}/${version}`,
  kind,
});

/** `a=b,c=d` for `list`, with the three characters that a field selector gives a meaning escaped. */
export function toFieldSelector(fields: Readonly<Record<string, string>>): string {
  return Object.entries(fields)
    .map(([field, value]) => `${field}=${value.replace(/[\\,=]/g, '\\$&')}`)
    .join(',');
}
