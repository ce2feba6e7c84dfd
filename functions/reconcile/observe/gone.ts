// Whose claims are left over? Nobody counts as gone before a GET by name has said so: a list may be older than a claim.
import { RESOURCES } from '#core/ports/cluster.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { Claim } from '#core/ports/registry.ts';
import { kindOf } from '#crds/kinds.ts';
import type { ReconcileDeps } from '../deps.ts';
import { retainedSecret } from '../retained.ts';
import { aliasOf, type InstanceView, instancePathOf, KIND_OF, type Member, pathOf } from '../world.ts';
import { each } from './each.ts';
import { toOwn } from './own.ts';
import { whereServed } from './served.ts';

const WIDTH = 16;

/** Among all claims of a complete instance, else among those whose aliases the members here want. */
export async function findGone(
  deps: ReconcileDeps,
  view: InstanceView,
  members: ReadonlyArray<Member>,
): Promise<ReadonlySet<ScopeId>> {
  const claimed = new Map(members.map((member) => [member.metadata.uid, aliasOf(member).key]));
  const wanted = view.complete ? undefined : new Set(claimed.values());
  const suspects = [...view.claims].filter(
    ([key, { holder }]) => claimed.get(holder.uid) !== key && (wanted === undefined || wanted.has(key)),
  );
  const instance = pathOf(view.object.metadata);
  const gone = await each(suspects, WIDTH, async ([key, claim]) =>
    (await isGone(deps, claim, { key, instance, listed: claimed })) ? [claim.scopeId] : [],
  );
  return new Set(gone.flat());
}

interface Place {
  readonly key: string;
  readonly instance: string;
  /** What the members that were listed claim, by their uid. */
  readonly listed: ReadonlyMap<string, string>;
}

/** Whether nothing of the holder's uid claims this any more. Nothing is known of an object that is malformed, or whose kind is not served: it stays. */
async function isGone({ cluster }: ReconcileDeps, claim: Claim, at: Place): Promise<boolean> {
  const { namespace, name, uid } = claim.holder;
  const secret = retainedSecret(claim.policy);
  if (secret !== undefined) return (await cluster.get(RESOURCES.secrets, namespace, secret)) === undefined;
  const kind = kindOf[KIND_OF[claim.kind]];
  const found = await whereServed(cluster, kind, () => cluster.get(kind, namespace, name), 'not served');
  if (found === 'not served') return false;
  if (found === undefined) return true;
  const own = toOwn(found)?.object;
  const isSame = found.metadata.uid === uid;
  if (own === undefined || own.kind === 'GatewayInstance') return !isSame;
  if (instancePathOf(own) !== at.instance || aliasOf(own).key !== at.key) return true;
  // Another of its name that the list does not show: it may bring along what proves that the claim is its own.
  return !isSame && at.listed.has(own.metadata.uid);
}
