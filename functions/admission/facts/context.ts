// The context of gathering facts, and the reads that several facts need. No other folder of the admission webhook reads
// the cluster.

import { listOf } from '#core/json/json.ts';
import { type KubeObject, RESOURCES, type Requester, type Resource, toFieldSelector } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import { type InstanceName, isSameInstance } from '#core/rules/instance.ts';
import type { Reference, ReferenceFacts } from '#core/rules/references.ts';
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { ConnectionRef } from '#crds/kinds/shared-fields.ts';
import { teams, users } from '#crds/names/resources.ts';
import { isMap, type Json } from '#crds/validation/json-shapes.ts';
import type { ClusterReads } from '../reads.ts';
import type { Draft } from '../subject.ts';

/** The context of reading facts: the cluster, and the user for whom it is read. */
export interface FactContext {
  readonly cluster: ClusterReads;
  /**
   * On update, the other version of the object: the stored one, or the new one for facts about the stored one. No facts
   * are needed about references that both have: findings about them are not new.
   */
  readonly other?: Draft | undefined;
  readonly hash: Hash;
  readonly user: Requester;
  /** Aborts when the review has ended without a decision. */
  readonly signal: AbortSignal;
  /** Domains whose labels and annotations the Secret of a VirtualKey may have. */
  readonly secretPrefixes: ReadonlyArray<string>;
}

export const INSTANCE_FIELD = 'spec.connectionRef.instanceRef.name';

/** Objects of one kind that a review reads concurrently: each may have a megabyte, of which little is kept. */
export const MAX_READS = 4;

/** The models that an instance serves: the `modelName`s of its entries. */
export const servedModels = ({ models }: Json | GatewayInstanceSpec): ReadonlySet<string> =>
  new Set(
    listOf(models).flatMap((entry) => (isMap(entry) && typeof entry.modelName === 'string' ? entry.modelName : [])),
  );

/** Undefined: the Secret is missing, or the user may not read it. Findings do not show which. */
export async function findSecret(
  namespace: string,
  name: string,
  { cluster, user }: FactContext,
  how: { readonly metadataOnly?: true } = {},
): Promise<KubeObject | undefined> {
  const may = await cluster.may(user, 'get', RESOURCES.secrets, namespace, name);
  return may ? cluster.get(RESOURCES.secrets, namespace, name, how) : undefined;
}

/**
 * Calls `onObject` for one page of the objects with these selectable fields, in all namespaces, without those that are
 * being deleted. Returns whether there are more. Objects may have hundreds of kilobytes: `onObject` keeps only what is
 * needed.
 */
export async function visitPage(
  cluster: ClusterReads,
  { resource, fields, limit }: PageSelection,
  onObject: (object: KubeObject) => void,
): Promise<boolean> {
  let more = false;
  await cluster.listPages(resource, { fieldSelector: toFieldSelector(fields), limit }, (objects, hasMore) => {
    for (const object of objects.filter(isLive)) onObject(object);
    more = hasMore;
  });
  return more;
}

interface PageSelection {
  readonly resource: Resource;
  readonly fields: Readonly<Record<string, string>>;
  readonly limit: number;
}

export const isLive = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;
export const belongsTo = (object: KubeObject, instance: InstanceName): boolean => {
  const connection = instanceRefOf(object);
  return connection !== undefined && isSameInstance(connection, instance);
};
export const instanceRefOf = ({ spec }: KubeObject): InstanceName | undefined =>
  ConnectionRef.safeParse(isMap(spec) ? spec.connectionRef : undefined).data?.instanceRef;

export async function findReferred(
  { kind, namespace, name }: Reference,
  { cluster }: FactContext,
): Promise<ReferenceFacts | undefined> {
  const found = await cluster.get(kind === 'User' ? users : teams, namespace, name);
  return found && { instance: instanceRefOf(found), isDeleted: !isLive(found) };
}
