// Members that want the same claim, and which of them may have it.
import {
  aliasOf,
  idOf,
  instancePathOf,
  isDeleted,
  type Path,
  pathOf,
  type ScopeObject,
  scopeObjectsOf,
  type World,
} from '../world.ts';
import type { InstanceAccess } from './access.ts';

export function createClaimants(world: World, access: (scopeObject: ScopeObject) => InstanceAccess) {
  let byClaim: ReadonlyMap<string, ReadonlyArray<ScopeObject>> | undefined;
  const oldest = new Map<string, ScopeObject | undefined>();
  /** The loaded scope objects that want this claim of this instance. */
  const claimantsOf = (instance: Path, key: string): ReadonlyArray<ScopeObject> => {
    byClaim ??= Map.groupBy(
      scopeObjectsOf(world),
      (scopeObject) => `${instancePathOf(scopeObject)} ${aliasOf(scopeObject).key}`,
    );
    return byClaim.get(`${instance} ${key}`) ?? [];
  };
  const mayClaim = (scopeObject: ScopeObject) =>
    !isDeleted(scopeObject) &&
    access(scopeObject).state === 'allowed' &&
    !world.failures.has(idOf(scopeObject.kind, scopeObject.metadata));
  /** The oldest loaded scope object that wants this claim and could have it now. */
  const oldestClaimant = (instance: Path, key: string): ScopeObject | undefined => {
    const claim = `${instance} ${key}`;
    if (!oldest.has(claim)) oldest.set(claim, oldestOf(claimantsOf(instance, key).filter(mayClaim)));
    return oldest.get(claim);
  };
  return { claimantsOf, oldestClaimant };
}

const ageOf = ({ metadata }: ScopeObject): string => `${metadata.creationTimestamp} ${pathOf(metadata)}`;

export const isOlder = (one: ScopeObject, other: ScopeObject): boolean => ageOf(one) < ageOf(other);

function oldestOf(scopeObjects: ReadonlyArray<ScopeObject>): ScopeObject | undefined {
  const [first, ...others] = scopeObjects;
  return first && others.reduce((oldest, scopeObject) => (isOlder(scopeObject, oldest) ? scopeObject : oldest), first);
}
