// The Users and Teams that are charged together with a VirtualKey.
import type { MissingOwnerReason } from '#core/conditions/reasons.ts';
import type { Finding } from '#core/rules/finding.ts';
import { type Reference, referenceFound } from '#core/rules/references.ts';
import type { Team } from '#crds/kinds/team.ts';
import type { User } from '#crds/kinds/user.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import {
  idOf,
  instancePathOf,
  isDeleted,
  type OwnClaim,
  type Path,
  pathOf,
  type ScopeObject,
  teamAt,
  userAt,
  type World,
} from '../world.ts';
import { claimOf, type InstanceAccess } from './access.ts';

/** A User or Team with its claim. */
export interface ChargedScope extends OwnClaim {
  readonly object: User | Team;
}

/**
 * Users and Teams that are charged together with a VirtualKey, and those that should be but cannot. `isWaiting`: the
 * claim of one of them is written later in this run.
 */
export interface ChargedScopes {
  readonly charged: ReadonlyArray<ChargedScope>;
  readonly unchargeable: ReadonlyArray<Finding<MissingOwnerReason>>;
  readonly isWaiting: boolean;
  /** Whether it names a Team, or its User is in one. Undefined: its User was not found. */
  readonly hasTeam: boolean | undefined;
}

/** The VirtualKey's User, and its `teamRef`, else all Teams of the User, by name, at most eight (LEDGER 2). */
export function createChargedScopes(
  world: World,
  access: (scopeObject: ScopeObject) => InstanceAccess,
): (key: VirtualKey) => ChargedScopes {
  const teamsOf = createTeamsOf(world);
  return (key) => {
    const references = referencesOf(key, world, teamsOf);
    const charged: ChargedScope[] = [];
    const unchargeable: Finding<MissingOwnerReason>[] = [];
    for (const reference of references) {
      const object = (reference.kind === 'User' ? userAt : teamAt)(world, pathOf(reference));
      const missing = referenceFound(reference, toReferred(object), key.spec.connectionRef.instanceRef);
      const found = object && missing === undefined ? access(object) : undefined;
      if (missing !== undefined) unchargeable.push(missing);
      if (object === undefined || found?.state !== 'allowed') continue;
      const { instance } = found;
      const { state, claim } = claimOf(object, instance);
      const hasFailed = world.failures.has(idOf(object.kind, object.metadata));
      if (state === 'ours') charged.push({ object, instance, claim });
      else if (hasFailed || state === 'taken') unchargeable.push(notReady(reference));
    }
    const isWaiting = charged.length + unchargeable.length < references.length;
    const isUserMissing = unchargeable.some(({ rule }) => rule === 'UserNotFound');
    const hasTeam = references.some(({ kind }) => kind === 'Team') || (isUserMissing ? undefined : false);
    return { charged, unchargeable, isWaiting, hasTeam };
  };
}

const MAX_TEAMS = 8;

type TeamsOf = (user: User, instance: Path) => ReadonlyArray<string>;

/** The names of a User's first eight Teams on an instance, computed once for all of the User's VirtualKeys there. */
function createTeamsOf({ teams, keys }: World): TeamsOf {
  // A Team may have a thousand members, most of which are not needed here.
  const users = new Set([...keys.values()].map(({ object: { metadata, spec } }) => userPathOf(metadata, spec.userRef)));
  let memberships: Map<string, Team[]> | undefined;
  const findMemberships = () => {
    const found = new Map<string, Team[]>();
    for (const team of teams.values()) {
      if (isDeleted(team)) continue;
      for (const { name } of team.spec.members) {
        const user = userPathOf(team.metadata, { name });
        if (!users.has(user)) continue;
        const own = found.get(user);
        if (own === undefined) found.set(user, [team]);
        else own.push(team);
      }
    }
    return found;
  };
  const known = new Map<string, ReadonlyArray<string>>();
  return ({ metadata, spec }, instance) => {
    const id = `${pathOf(metadata)} ${instance}`;
    memberships ??= findMemberships();
    const own = memberships.get(pathOf(metadata)) ?? [];
    const listing = () => own.filter((team) => instancePathOf(team) === instance).map(({ metadata: { name } }) => name);
    const named = () => new Set([...spec.teamRefs.map(({ name }) => name), ...listing()]);
    const names = known.get(id) ?? [...named()].sort().slice(0, MAX_TEAMS);
    known.set(id, names);
    return names;
  };
}

const userPathOf = ({ namespace }: ScopeObject['metadata'], user: { readonly name: string } | undefined): Path =>
  pathOf({ namespace, name: user?.name ?? '' });

/** If a Team that the User itself names is missing, the VirtualKey is blocked, as with a missing teamRef. */
function referencesOf(key: VirtualKey, { users }: World, teamsOf: TeamsOf): ReadonlyArray<Reference> {
  const { namespace } = key.metadata;
  const { userRef, teamRef } = key.spec;
  const refer = (kind: Reference['kind'], path: string, name: string): Reference => ({ kind, path, name, namespace });
  const ofUser = userRef === undefined ? [] : [refer('User', 'spec.userRef.name', userRef.name)];
  if (teamRef !== undefined) return [...ofUser, refer('Team', 'spec.teamRef.name', teamRef.name)];
  const user = userRef && users.get(pathOf({ namespace, name: userRef.name }));
  if (user === undefined) return ofUser;
  const path = `spec.teamRefs of User ${JSON.stringify(user.metadata.name)}`;
  return [...ofUser, ...teamsOf(user, instancePathOf(key)).map((name) => refer('Team', path, name))];
}

/** The object that a reference names, in the form that the rule about references reads. */
export const toReferred = (object: User | Team | undefined) =>
  object && { instance: object.spec.connectionRef.instanceRef, isDeleted: isDeleted(object) };

/** The User or Team exists but cannot be charged. */
const notReady = ({ kind, path, name }: Reference): Finding<`${Reference['kind']}NotReady`> => ({
  rule: `${kind}NotReady`,
  path,
  value: name,
  message: `another object has the ${kind === 'User' ? 'userEmail' : 'teamAlias'} of this ${kind}, or the ${kind} could not be recorded; see its conditions`,
  effect: 'refuse',
});
