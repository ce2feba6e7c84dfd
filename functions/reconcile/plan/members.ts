// What brings a key, a user or a team to what its spec says? Finalizer, claim, policy; for a key its value; for a user its key.
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { Action } from '../action.ts';
import { aliasOf, hashesOf, idOf, instancePathOf, type KeyView, type Member, pathOf } from '../world.ts';
import { about } from './about.ts';
import { planClaim } from './claims.ts';
import { hasFinalizer, isDeleted, planKeyDeletion, planScopeDeletion } from './deletion.ts';
import { planKeyValue } from './key-value.ts';
import type { Outlook } from './outlook.ts';
import { planOwnedKey, planOwnedKeyDeletion } from './owned-key.ts';
import { planPolicy } from './policies.ts';

export function planKey(view: KeyView, outlook: Outlook): Action[] {
  return isDeleted(view.object) ? planKeyDeletion(view, outlook) : planMember(view.object, outlook, view);
}

export function planUser(user: User, outlook: Outlook): Action[] {
  if (isDeleted(user)) {
    return planScopeDeletion(user, outlook, planOwnedKeyDeletion(user, outlook));
  }
  return [...planMember(user, outlook), ...planOwnedKey(user, outlook)];
}

export function planTeam(team: Team, outlook: Outlook): Action[] {
  return isDeleted(team) ? planScopeDeletion(team, outlook) : planMember(team, outlook);
}

/** The steps that can be taken now, in order; those that wait for an outcome come with the next pass. */
function planMember(member: Member, outlook: Outlook, view?: KeyView): Action[] {
  if (outlook.world.failures.has(idOf(member.kind, member.metadata))) return [];
  const standing = outlook.standing(member);
  if (standing.at === 'refused') return view === undefined ? [] : silence(view, outlook);
  if (standing.at !== 'admitted') return [];
  const finalizer: Action[] = hasFinalizer(member)
    ? []
    : [{ action: 'AddFinalizer', ...about(member, 'it will have a claim and spend in the database') }];
  const { instance } = standing;
  if (!instance.database.ok || !instance.database.opened) return finalizer;
  const state = outlook.claim(member, instance);
  if (state.state !== 'ours') return [...finalizer, ...planClaim(member, instance, outlook, view)];
  const { claim } = state;
  const value =
    view === undefined ? [] : planKeyValue({ view, claim, url: standing.judgement.workload.url, time: instance.time });
  // A key that goes with its user is not blocked for it first: it may be one that is retained.
  const policy = view !== undefined && isLeaving(view, outlook) ? [] : planPolicy(member, claim, outlook);
  return [...finalizer, ...policy, ...value];
}

const isLeaving = ({ object: { metadata } }: KeyView, { world }: Outlook): boolean =>
  metadata.ownerReferences?.some(({ kind, name, uid }) => {
    const user = kind === 'User' ? world.users.get(pathOf({ namespace: metadata.namespace, name })) : undefined;
    return user?.metadata.uid === uid && isDeleted(user);
  }) === true;

/** A key of a namespace that is not admitted any more does not work: its values are retired, its claim and its Secret stay. */
function silence({ object }: KeyView, outlook: Outlook): Action[] {
  const { instance } = outlook.standing(object);
  const state = instance === undefined ? undefined : outlook.claim(object, instance);
  if (state?.state !== 'ours' || state.claim.values.length === 0) return [];
  const on = {
    ...about(object, 'the instance does not admit its namespace any more'),
    instance: instancePathOf(object),
  };
  const { claim } = state;
  return [
    { action: 'RetireValues', ...on, claim: aliasOf(object).key, scopeId: claim.scopeId, hashes: hashesOf(claim) },
  ];
}
