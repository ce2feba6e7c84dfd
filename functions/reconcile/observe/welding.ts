// How do a hundred thousand claims fit beside their keys? Names, uids and hashes that both have are kept once.
import type { Claim } from '#core/ports/registry.ts';
import { aliasOf, type Member } from '../world.ts';

/** An equal claim: where it says the same as the member that holds it, the member's own text stands in it. */
export function createWelding(members: Iterable<Member>): (claim: Claim) => Claim {
  const byUid = new Map<string, Member>();
  for (const member of members) byUid.set(member.metadata.uid, member);
  return (claim) => {
    const member = byUid.get(claim.holder.uid);
    return member === undefined ? claim : weld(claim, member);
  };
}

function weld(claim: Claim, member: Member): Claim {
  const { metadata } = member;
  const name = same(claim.holder.name, metadata.name);
  const namespace = same(claim.holder.namespace, metadata.namespace);
  const alias = same(same(claim.alias, aliasOf(member).alias), name);
  const keyID = member.kind === 'VirtualKey' ? member.status?.keyID : undefined;
  return {
    ...claim,
    alias,
    holder: { uid: metadata.uid, namespace, name },
    values: claim.values.map((value) => ({ ...value, hash: same(value.hash, keyID) })),
    ...(claim.policy === undefined
      ? {}
      : { policy: weldPolicy(claim.policy, { ...claim, alias }, { namespace, name }) }),
  };
}

type Policy = NonNullable<Claim['policy']>;

function weldPolicy(
  policy: Policy,
  { scopeId, alias }: Claim,
  object: { readonly namespace: string; readonly name: string },
): Policy {
  const welded = { ...policy, scopeId: same(policy.scopeId, scopeId), name: same(policy.name, alias) };
  if (!('object' in policy)) return welded;
  const { namespace, name } = policy.object;
  const at = { namespace: same(namespace, object.namespace), name: same(name, object.name) };
  return { ...welded, object: at } as Policy;
}

/** Of two equal texts the one that is kept anyway. */
const same = (text: string, kept: string | undefined): string => (text === kept ? kept : text);
