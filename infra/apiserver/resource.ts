// Resources: the names, rules and schema of one kind that the server serves.
import type { Column } from './codec/table.ts';
import type { KubeObject } from './object.ts';
import type { Cause } from './schema/field-errors.ts';
import type { JsonObject } from './schema/json.ts';
import type { Schema } from './schema/schema.ts';
import type { Structural } from './schema/structural.ts';

export type Subresource = 'status' | 'finalize';

/** The rules of a kind beyond its schema. Every member is pure; the names are the API server's own. */
export type Strategy = {
  /** Fills in or rewrites fields when an object is decoded: defaults, `stringData`. Repeating this changes nothing. */
  applyDefaults?(object: KubeObject): KubeObject;
  /** Sets the fields that only the server writes, after the mutating webhooks. */
  prepareForCreate?(object: KubeObject): KubeObject;
  prepareForUpdate?(object: KubeObject, old: KubeObject): KubeObject;
  /** The causes that no schema can express. */
  validate?(object: KubeObject, old?: KubeObject): readonly Cause[];
  /** Sets the status that the server itself reports, e.g. a CRD's conditions. */
  updateStatus?(object: KubeObject, now: string): KubeObject;
  /** Adds the finalizer that keeps a deleted object until a controller releases it. */
  beforeDelete?(object: KubeObject): KubeObject;
  /** The status of a kind that is answered and never stored. */
  answer?(user: object): JsonObject;
  /** Fields a list can be filtered by, beyond metadata.name and metadata.namespace. */
  readonly selectable?: Readonly<Record<string, (object: KubeObject) => string>>;
};

export type Resource = {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources: readonly Subresource[];
  /** `group/plural` of what is stored: the same for all versions. */
  readonly storedAs: string;
  readonly custom: boolean;
  /** Whether `metadata.generation` counts changes of this kind. */
  readonly generations: boolean;
  /** Whether a PUT may leave out the resourceVersion. */
  readonly unconditionalUpdate: boolean;
  readonly nameRule: 'subdomain' | 'label' | 'path';
  readonly columns: readonly Column[];
  readonly strategy: Strategy;
  readonly schema: Schema;
  /** A custom resource's schema with its rules, compiled on first use. */
  structural?(): Structural;
};

export function apiVersionOf({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** A stored object as this version shows it. */
export function shown(resource: Resource, stored: KubeObject): KubeObject {
  const apiVersion = apiVersionOf(resource);
  return stored.apiVersion === apiVersion ? stored : { ...stored, apiVersion };
}

export function keyOf(resource: Resource, namespace: string | undefined, name: string) {
  return { resource: resource.storedAs, namespace: resource.namespaced ? (namespace ?? '') : '', name };
}

export function gvk({ group, version, kind }: Resource): JsonObject {
  return { group, version, kind };
}

export function gvr({ group, version, plural }: Resource): JsonObject {
  return { group, version, resource: plural };
}
