// Metadata of an object, as far as we read it.
import type { AnnotationName } from './annotations.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE } from './group.ts';

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Metadata of a stored object, with the members that the API server fills in. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Counts the changes of `spec`. */
  readonly generation: number;
  /** RFC 3339. */
  readonly creationTimestamp: string;
  /** RFC 3339; present after a deletion, while a finalizer holds the object. */
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Others than these are not kept. */
  readonly annotations?: Readonly<Partial<Record<AnnotationName, string>>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

/** An object of one of our kinds as the API server stores it. */
export interface KubeObject<ApiVersion extends string, Kind extends string, Spec, Status> {
  readonly apiVersion: ApiVersion;
  readonly kind: Kind;
  readonly metadata: ObjectMeta;
  readonly spec: Spec;
  readonly status?: Status;
}

/** The object as the owner of objects that are deleted with it. */
export const controllerOf = (object: KubeObject<string, string, unknown, unknown>): OwnerReference => ({
  apiVersion: object.apiVersion,
  kind: object.kind,
  name: object.metadata.name,
  uid: object.metadata.uid,
  controller: true,
  blockOwnerDeletion: true,
});

/** Whether we made the object for this owner: the object has our label, and the owner controls it. */
export function isOwnedBy({ labels, ownerReferences }: Pick<ObjectMeta, 'labels' | 'ownerReferences'>, uid: string) {
  const isOwner = ownerReferences?.some((owner) => owner.uid === uid && owner.controller === true);
  return labels?.[OWNED_LABEL] === OWNED_LABEL_VALUE && isOwner === true;
}
