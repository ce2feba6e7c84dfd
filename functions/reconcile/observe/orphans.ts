// Database rows whose objects are gone. An object counts as gone only after a GET by name, because a list may be older
// than a row.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { keySecretName } from '#core/keys/object-names.ts';
import { type Cluster, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import type { Claim, InstanceRow } from '#core/ports/registry.ts';
import { gatewayInstances, kindOf } from '#crds/kinds/kinds.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE, RETAINED_LABEL } from '#crds/names/group.ts';
import { BLOCKED_ANNOTATION, KEY_UID_ANNOTATION } from '../key/secret-shape.ts';
import { clusterOf, type DatabaseLink } from '../memory.ts';
import {
  aliasOf,
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isAbandoned,
  KIND_OF,
  type ObjectId,
  type OrphanedClaim,
  type OwnObject,
  observedHolder,
  type Path,
  pathOf,
  retainedSecret,
  type ScopeObject,
} from '../world.ts';
import type { ObserveContext } from './context.ts';
import type { ObservedInstance } from './instance.ts';
import { valueIn } from './keys.ts';
import { ifServed, toOwnObjectView } from './objects.ts';

/** An object that a claim names, with only what is compared: the owner of a database may name objects of a megabyte. */
/** Longer than any uid: the owner of a namespace chooses the text. */
const MAX_UID = 128;

interface ClaimedObject {
  readonly uid: string | undefined;
  /** Of a Secret with our label: the VirtualKey that the Secret was created for, and the marks of a retained key. */
  readonly keyUid?: string | undefined;
  readonly isRetained?: boolean;
  readonly isBlocked?: boolean;
  /** Absent if the object is malformed, or not a scope object of an instance. */
  readonly claims?: { readonly instance: Path; readonly key: string; readonly uid: string };
}

/**
 * Claims whose holder is gone: among all claims of a complete instance, else among those whose aliases the loaded
 * scope objects want. If there are very many, a part is searched now, first those that are wanted.
 */
export async function findOrphanedClaims(
  context: ObserveContext,
  view: ObservedInstance,
  scopeObjects: ReadonlyArray<ScopeObject>,
): Promise<Pick<InstanceView, 'orphanedClaims' | 'unsearchedClaims'>> {
  const instance = pathOf(view.object.metadata);
  const { notLoaded } = context.all;
  const listed = new Map(scopeObjects.map((scopeObject) => [scopeObject.metadata.uid, aliasOf(scopeObject).key]));
  const lookUp = createLookUp(context.deps.cluster);
  /**
   * Whether no object with the holder's uid claims this any more. A claim stays while its object is malformed, or the
   * kind is not served.
   */
  const { onlyNamespace } = context.deps.cluster;
  const isGone = async (key: string, claim: Claim): Promise<boolean> => {
    const { namespace, name, uid } = claim.holder;
    // Never a suspect: for the type only.
    if (claim.kind === 'namespace') return false;
    // Objects of other namespaces are not read, so their claims stay.
    if (onlyNamespace !== undefined && namespace !== onlyNamespace) return false;
    const secret = retainedSecret(claim);
    const found = await (secret === undefined
      ? lookUp(kindOf[KIND_OF[claim.kind]], namespace, name)
      : lookUp(RESOURCES.secrets, namespace, secret));
    if (found === undefined || found === 'not served') return found === undefined;
    // The claim stays only if the Secret was created for its uid: whoever writes claims into a database cannot find out
    // which Secrets exist without knowing their uids.
    if (secret !== undefined) return found.keyUid !== uid;
    const isSame = found.uid === uid;
    if (found.claims === undefined) return !isSame;
    if (found.claims.instance !== instance) return true;
    // The alias of a User or Team was edited: its claim gets the new alias, and stays until that is free.
    const isRenamed = isSame && claim.kind !== 'key' && view.claims.get(found.claims.key)?.holder.uid !== uid;
    if (found.claims.key !== key) return !isRenamed;
    // Another object has the holder's name. If it is loaded, the claim is orphaned; else it may still prove that the
    // claim is its own.
    return !isSame && listed.has(found.claims.uid);
  };
  /**
   * The Secret of a key that was retained when the database did not have it: the database was away, or was restored
   * from a backup. Like a VirtualKey that is retained, the Secret must hold a working value.
   */
  const findRetention = async (claim: Claim): Promise<Pick<OrphanedClaim, 'retention'>> => {
    const { namespace, name, uid } = claim.holder;
    if (claim.kind !== 'key' || claim.values.length === 0 || retainedSecret(claim) !== undefined) return {};
    const secret = keySecretName(name, claim.policy?.secretName, context.deps.hash);
    const found = await lookUp(RESOURCES.secrets, namespace, secret);
    if (found === undefined || found === 'not served' || found.keyUid !== uid || found.isRetained !== true) return {};
    const value = valueIn(await context.deps.cluster.get(RESOURCES.secrets, namespace, secret));
    if (!hashesOf(claim).includes(context.deps.hash(value))) return {};
    return { retention: { secret, isBlocked: found.isBlocked === true } };
  };
  const claimedAliases = new Set(listed.values());
  // A finalizer of another program may keep the object of a retained claim: its Secret decides.
  const isSuspect = ([key, claim]: readonly [string, Claim]): boolean =>
    claim.kind !== 'namespace' &&
    (listed.get(claim.holder.uid) !== key || retainedSecret(claim) !== undefined) &&
    !notLoaded.has(claim.holder.uid);
  const { true: first = [], false: others = [] } = Object.groupBy(
    [...view.claims].filter(isSuspect),
    ([key]) => `${claimedAliases.has(key)}` as const,
  );
  const rest = view.isComplete ? others : [];
  const batches = [
    context.roundRobin.take(`wanted claims of ${instance}`, first, context.limits.changedKeys, rowOf),
    context.roundRobin.take(`claims of ${instance}`, rest, lookUpsOf(context, view), rowOf),
  ];
  const searched = new Set(batches.flatMap(({ rows }) => rows));
  const orphans = await mapConcurrent(searched, async ([key, claim]) =>
    (await isGone(key, claim))
      ? [[claim.scopeId, { observed: observedHolder(claim), ...(await findRetention(claim)) }] as const]
      : [],
  );
  for (const { advance } of batches) advance();
  const unsearched = rest.filter((one) => !searched.has(one) && retainedSecret(one[1]) === undefined);
  const unsearchedClaims = [...Map.groupBy(unsearched, ([, { holder }]) => holder.namespace)].map(
    ([namespace, { length }]) => [namespace, length] as const,
  );
  return { orphanedClaims: new Map(orphans.flat()), unsearchedClaims: new Map(unsearchedClaims) };
}

const rowOf = ([, { holder, scopeId }]: readonly [string, Claim]) => ({ namespace: holder.namespace, id: scopeId });

/** Reads each object once. */
function createLookUp(cluster: Cluster) {
  const found = new Map<ObjectId, Promise<ClaimedObject | 'not served' | undefined>>();
  const readObject = async (
    kind: Resource,
    namespace: string,
    name: string,
  ): Promise<ClaimedObject | 'not served' | undefined> => {
    if (kind === RESOURCES.secrets) {
      const secret = await cluster.get(kind, namespace, name, { metadataOnly: true });
      if (secret?.metadata.labels?.[OWNED_LABEL] !== OWNED_LABEL_VALUE) return undefined;
      // A person has deleted it to end the value: a finalizer of another program must not prevent that.
      if (secret.metadata.deletionTimestamp !== undefined) return undefined;
      const { uid, labels, annotations } = secret.metadata;
      return {
        uid,
        keyUid: annotations?.[KEY_UID_ANNOTATION]?.slice(0, MAX_UID),
        isRetained: labels?.[RETAINED_LABEL] === 'true',
        isBlocked: annotations?.[BLOCKED_ANNOTATION] === 'true',
      };
    }
    const object = await ifServed(cluster, kind, () => cluster.get(kind, namespace, name), 'not served');
    if (object === undefined || object === 'not served') return object;
    // The API server sets the metadata that our types require.
    if (isAbandoned(object as Pick<OwnObject, 'metadata'>)) return undefined;
    const own = toOwnObjectView(object)?.object;
    if (own === undefined || own.kind === 'GatewayInstance') return { uid: object.metadata.uid };
    const claims = { instance: instancePathOf(own), key: aliasOf(own).key, uid: own.metadata.uid };
    return { uid: object.metadata.uid, claims };
  };
  return (kind: Resource, namespace: string, name: string) => {
    const id = idOf(kind.kind, { namespace, name });
    const reading = found.get(id) ?? readObject(kind, namespace, name);
    found.set(id, reading);
    return reading;
  };
}

/** The number of objects that may be looked up for one instance's database: an equal share of its namespace's share. */
export function lookUpsOf({ instanceCounts, limits }: ObserveContext, { object }: ObservedInstance): number {
  const own = instanceCounts.get(object.metadata.namespace) ?? 1;
  return Math.ceil(limits.lookUps / Math.max(1, instanceCounts.size) / own);
}

/** Instances of this cluster that the database still has as open, although they are gone. */
export async function findDeletedInstances(
  context: ObserveContext,
  view: ObservedInstance,
  link: DatabaseLink | undefined,
): Promise<ReadonlyArray<InstanceRow>> {
  const { all, deps } = context;
  // Only if everything was listed: an instance that is not in the list is then gone, or younger than the list.
  if (all.complete !== 'all' || link === undefined || !view.database.ok || !view.database.isKnown) return [];
  const cluster = await clusterOf(context);
  if (cluster === undefined) return [];
  const known = new Set([...all.listed.values(), ...all.malformed.values()].map(({ metadata }) => metadata.uid));
  const { onlyNamespace } = deps.cluster;
  // Objects of other namespaces are not read, so their instances stay open.
  const isUnlisted = ({ namespace, uid }: InstanceRow) =>
    !known.has(uid) && (onlyNamespace === undefined || namespace === onlyNamespace);
  try {
    const unlisted = (await link.registry.openInstances(cluster)).filter(isUnlisted);
    const list = `instances in the database of ${pathOf(view.object.metadata)}`;
    const toRow = ({ namespace, uid: id }: InstanceRow) => ({ namespace, id });
    const { rows, advance } = context.roundRobin.take(list, unlisted, lookUpsOf(context, view), toRow);
    const deleted = await mapConcurrent(rows, async (row) => {
      const found = await deps.cluster.get(gatewayInstances, row.namespace, row.name);
      return found?.metadata.uid === row.uid ? [] : [row];
    });
    advance();
    return deleted.flat();
  } catch (error) {
    const instance = pathOf(view.object.metadata);
    deps.log.info('cannot list instances of a database', { instance, why: reasonOf(error) });
    return [];
  }
}
