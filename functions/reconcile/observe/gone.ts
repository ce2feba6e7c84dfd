// Whose claims are left over? A holder counts as gone only after a GET by name answers that it is not there, or is another.
import { RESOURCES } from '#core/ports/cluster.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { ReconcileDeps } from '../deps.ts';
import { retainedSecret } from '../retained.ts';
import { aliasOf, type InstanceView, type Member } from '../world.ts';
import { each } from './each.ts';
import { OWN } from './objects.ts';

const WIDTH = 16;
const KINDS = { key: 'VirtualKey', user: 'User', team: 'Team' } as const;

/** Among all claims of a complete instance, else among those whose aliases the members here want. */
export async function findGone(
  deps: ReconcileDeps,
  view: InstanceView,
  members: ReadonlyArray<Member>,
): Promise<ReadonlySet<ScopeId>> {
  const here = new Set(members.map(({ metadata }) => metadata.uid));
  const wanted = view.complete ? undefined : new Set(members.map((member) => aliasOf(member).key));
  const suspects = [...view.claims]
    .filter(([key, claim]) => !here.has(claim.holder.uid) && (wanted === undefined || wanted.has(key)))
    .map(([, claim]) => claim);
  const gone = await each(suspects, WIDTH, async (claim) => ((await isGone(deps, claim)) ? [claim.scopeId] : []));
  return new Set(gone.flat());
}

async function isGone({ cluster }: ReconcileDeps, claim: Claim): Promise<boolean> {
  const { namespace, name, uid } = claim.holder;
  const secret = retainedSecret(claim.policy);
  if (secret !== undefined) return (await cluster.get(RESOURCES.secrets, namespace, secret)) === undefined;
  const found = await cluster.get(OWN[KINDS[claim.kind]], namespace, name);
  return found?.metadata.uid !== uid;
}
