// Objects: what every one of them has in common.
import type { JsonObject } from './schema/json.ts';

export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
};

export type ObjectMeta = {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: JsonObject[];
  selfLink?: string;
};

/** An object as it is stored and answered. A stored one is never changed in place: every write makes a new one. */
export type KubeObject = {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [member: string]: unknown;
};

/** The object with some of its metadata replaced; a member given as undefined is removed. */
export function withMeta(
  object: KubeObject,
  change: { readonly [K in keyof ObjectMeta]?: ObjectMeta[K] | undefined },
): KubeObject {
  const metadata: JsonObject = { ...object.metadata, ...change };
  for (const key of Object.keys(metadata)) if (metadata[key] === undefined) delete metadata[key];
  return { ...object, metadata: metadata as ObjectMeta };
}

export function withoutFinalizer(object: KubeObject, finalizer: string): KubeObject {
  const left = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer);
  return withMeta(object, { finalizers: left.length > 0 ? left : undefined });
}

/** The object with a member replaced; undefined removes it. */
export function withMember(object: KubeObject, member: string, value: unknown): KubeObject {
  const { [member]: _, ...rest } = object;
  return (value === undefined ? rest : { ...object, [member]: value }) as KubeObject;
}

/** Kubernetes writes times to the second. */
export function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
