// Members that want the same claim, and which of them may have it.
import {
  aliasOf,
  idOf,
  instancePathOf,
  isDeleted,
  type Member,
  membersOf,
  type Path,
  pathOf,
  type World,
} from '../world.ts';
import type { InstanceAccess } from './access.ts';

export function createClaimants(world: World, access: (member: Member) => InstanceAccess) {
  let byClaim: ReadonlyMap<string, ReadonlyArray<Member>> | undefined;
  const oldest = new Map<string, Member | undefined>();
  /** The loaded members that want this claim of this instance. */
  const claimantsOf = (instance: Path, key: string): ReadonlyArray<Member> => {
    byClaim ??= Map.groupBy(membersOf(world), (member) => `${instancePathOf(member)} ${aliasOf(member).key}`);
    return byClaim.get(`${instance} ${key}`) ?? [];
  };
  const mayClaim = (member: Member) =>
    !isDeleted(member) && access(member).state === 'allowed' && !world.failures.has(idOf(member.kind, member.metadata));
  /** The oldest loaded member that wants this claim and could have it now. */
  const oldestClaimant = (instance: Path, key: string): Member | undefined => {
    const claim = `${instance} ${key}`;
    if (!oldest.has(claim)) oldest.set(claim, oldestOf(claimantsOf(instance, key).filter(mayClaim)));
    return oldest.get(claim);
  };
  return { claimantsOf, oldestClaimant };
}

const ageOf = ({ metadata }: Member): string => `${metadata.creationTimestamp} ${pathOf(metadata)}`;

export const isOlder = (one: Member, other: Member): boolean => ageOf(one) < ageOf(other);

function oldestOf(members: ReadonlyArray<Member>): Member | undefined {
  const [first, ...others] = members;
  return first && others.reduce((oldest, member) => (isOlder(member, oldest) ? member : oldest), first);
}
