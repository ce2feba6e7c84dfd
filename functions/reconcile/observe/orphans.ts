// Rows whose objects are gone. Nothing counts as gone before a GET by name has said so: a list may be older than a row.

import { reasonOf } from '#core/failure/error-text.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { Claim, InstanceRow } from '#core/ports/registry.ts';
import { gatewayInstances, kindOf } from '#crds/kinds/kinds.ts';
import { mapConcurrent } from '../concurrent.ts';
import { clusterOf, type Link } from '../memory.ts';
import { aliasOf, instancePathOf, KIND_OF, type Member, pathOf, retainedSecret } from '../world.ts';
import type { ObserveContext } from './context.ts';
import type { ObservedInstance } from './instance.ts';
import { toOwn, whereServed } from './objects.ts';

/**
 * Claims whose holder is gone: among all of a complete instance, else among those whose aliases the members here want.
 */
export async function findOrphanedClaims(
  { deps: { cluster } }: ObserveContext,
  view: ObservedInstance,
  members: ReadonlyArray<Member>,
): Promise<ReadonlySet<ScopeId>> {
  const instance = pathOf(view.object.metadata);
  const listed = new Map(members.map((member) => [member.metadata.uid, aliasOf(member).key]));
  const wanted = view.isComplete ? undefined : new Set(listed.values());
  /**
   * Whether nothing of the holder's uid claims this any more. A claim stays while its object is malformed, or the kind
   * is not served.
   */
  const isGone = async (key: string, claim: Claim): Promise<boolean> => {
    const { namespace, name, uid } = claim.holder;
    const secret = retainedSecret(claim);
    if (secret !== undefined) return (await cluster.get(RESOURCES.secrets, namespace, secret)) === undefined;
    const kind = kindOf[KIND_OF[claim.kind]];
    const found = await whereServed(cluster, kind, () => cluster.get(kind, namespace, name), 'not served');
    if (found === undefined || found === 'not served') return found === undefined;
    const isSame = found.metadata.uid === uid;
    const own = toOwn(found)?.object;
    if (own === undefined || own.kind === 'GatewayInstance') return !isSame;
    if (instancePathOf(own) !== instance || aliasOf(own).key !== key) return true;
    // Another of its name that the list does not show: it may bring along what proves that the claim is its own.
    return !isSame && listed.has(own.metadata.uid);
  };
  const suspects = [...view.claims].filter(
    ([key, { holder }]) => listed.get(holder.uid) !== key && (wanted === undefined || wanted.has(key)),
  );
  const gone = await mapConcurrent(suspects, async ([key, claim]) =>
    (await isGone(key, claim)) ? [claim.scopeId] : [],
  );
  return new Set(gone.flat());
}

/** Instances of this cluster that the database still counts as open, though they are gone. */
export async function findOrphanedInstances(
  context: ObserveContext,
  view: ObservedInstance,
  link: Link | undefined,
): Promise<ReadonlyArray<InstanceRow>> {
  const { all, deps } = context;
  // Only where everything was listed: an instance that is not there is then gone, or younger than the list.
  if (all.complete !== 'all' || link === undefined || !view.database.ok || !view.database.isKnown) return [];
  const cluster = await clusterOf(context);
  if (cluster === undefined) return [];
  const known = new Set([...all.instances.values(), ...all.malformed.values()].map(({ metadata }) => metadata.uid));
  try {
    const suspects = (await link.registry.openInstances(cluster)).filter(({ uid }) => !known.has(uid));
    const gone = await mapConcurrent(suspects, async (row) => {
      const found = await deps.cluster.get(gatewayInstances, row.namespace, row.name);
      return found?.metadata.uid === row.uid ? [] : [row];
    });
    return gone.flat();
  } catch (error) {
    const instance = pathOf(view.object.metadata);
    deps.log.info('no instances could be looked for', { instance, why: reasonOf(error) });
    return [];
  }
}
