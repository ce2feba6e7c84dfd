// What does planning ask of the world again and again? Answered once per plan: where a member stands, what it claims, who pays beside it.
import { admitsNamespace } from '#core/allowed-namespaces.ts';
import type { Finding } from '#core/finding.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { Claim, Holder } from '#core/ports/registry.ts';
import { instanceIsDeleted, instanceNotFound, namespaceNotAllowed } from '#core/rules/instance.ts';
import { type Reference, type Referred, referenceFound } from '#core/rules/references.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { retainedSecret } from '../retained.ts';
import {
  aliasOf,
  type InstanceView,
  idOf,
  instancePathOf,
  type Member,
  type Path,
  pathOf,
  type World,
} from '../world.ts';
import { type InstanceJudgement, judgeInstance } from './judge-instance.ts';

/** Where a member stands with its instance. */
export type Standing =
  /** There is no such instance, or it is being deleted. */
  | { readonly at: 'missing'; readonly instance: InstanceView | undefined; readonly why: Finding }
  /** Nothing may be done: it is paused, or could not be looked at. */
  | { readonly at: 'paused'; readonly instance: InstanceView | undefined }
  /** It does not admit the namespace. Who was never admitted is told the same as where there is none. */
  | { readonly at: 'refused'; readonly instance: InstanceView; readonly why: Finding }
  | { readonly at: 'unreachable'; readonly instance: InstanceView; readonly judgement: InstanceJudgement }
  | { readonly at: 'admitted'; readonly instance: InstanceView; readonly judgement: InstanceJudgement };

/** `open`: it could be claimed now. */
export type ClaimView =
  | { readonly state: 'ours'; readonly claim: Claim }
  | { readonly state: 'open' }
  /** Its holder is gone, or lives on only in the Secret of a retained key. */
  | { readonly state: 'orphaned'; readonly claim: Claim; readonly retained: string | undefined }
  | { readonly state: 'taken'; readonly by: Holder };

/** `waiting`: it will have its claim later in this run. */
export type Payer<T> =
  | { readonly state: 'paying'; readonly object: T; readonly claim: Claim }
  | { readonly state: 'waiting' }
  | { readonly state: 'unusable'; readonly why: Finding };

export interface Outlook {
  readonly world: World;
  readonly now: Millis;
  /** Ids of scopes that nobody claims are made with it. */
  readonly hash: Hash;
  judge(view: InstanceView): InstanceJudgement;
  standing(member: Member): Standing;
  claim(member: Member, instance: InstanceView): ClaimView;
  /** The members here that want this claim of this instance. */
  wanting(instance: Path, claim: string): ReadonlyArray<Member>;
  user(key: VirtualKey): Payer<User> | undefined;
  /** The key's `teamRef`, else all teams of its user, by name, at most eight (LEDGER 2). */
  teams(key: VirtualKey): ReadonlyArray<Payer<Team>>;
}

const MOST_TEAMS = 8;

export function createOutlook(world: World, now: Millis, hash: Hash): Outlook {
  const judgements = new Map<InstanceView, InstanceJudgement>();
  const judge = (view: InstanceView) => {
    const judged = judgements.get(view) ?? judgeInstance(view);
    judgements.set(view, judged);
    return judged;
  };

  const standing = (member: Member): Standing => {
    const path = instancePathOf(member);
    const instance = world.instances.get(path);
    const ref = member.spec.connectionRef.instanceRef;
    if (world.unobserved.has(path)) return { at: 'paused', instance };
    const { namespace } = member.metadata;
    if (instance === undefined) return { at: 'missing', instance, why: instanceNotFound(ref, namespace) };
    const asking = { name: namespace, labels: world.namespaces.get(namespace) ?? {} };
    const admits = admitsNamespace(instance.object.spec.allowedNamespaces, ref.namespace, asking);
    const wasAdmitted = admits || instance.claims.get(aliasOf(member).key)?.holder.uid === member.metadata.uid;
    const unseen = wasAdmitted ? undefined : instanceNotFound(ref, namespace);
    if (instance.object.metadata.deletionTimestamp !== undefined)
      return { at: 'missing', instance, why: unseen ?? instanceIsDeleted(ref) };
    if (unseen !== undefined) return { at: 'refused', instance, why: unseen };
    if (instance.object.spec.paused) return { at: 'paused', instance };
    if (!admits) return { at: 'refused', instance, why: namespaceNotAllowed(ref, namespace) };
    return { at: instance.database.ok ? 'admitted' : 'unreachable', instance, judgement: judge(instance) };
  };

  const claim = (member: Member, instance: InstanceView): ClaimView => {
    const { key } = aliasOf(member);
    const found = instance.claims.get(key);
    if (found?.holder.uid === member.metadata.uid) return { state: 'ours', claim: found };
    const taken = instance.taken.get(key);
    if (found === undefined) return taken === undefined ? { state: 'open' } : { state: 'taken', by: taken };
    const retained = retainedSecret(found.policy);
    if (retained !== undefined || instance.gone.has(found.scopeId))
      return { state: 'orphaned', claim: found, retained };
    return { state: 'taken', by: found.holder };
  };

  const payer = <T extends User | Team>(key: VirtualKey, object: T | undefined, reference: Reference): Payer<T> => {
    const { connectionRef } = key.spec;
    const missing = referenceFound(reference, toReferred(object), connectionRef.instanceRef);
    if (missing !== undefined) return { state: 'unusable', why: missing };
    if (object === undefined) return { state: 'waiting' };
    const at = standing(object);
    if (at.at !== 'admitted') return { state: 'waiting' };
    const view = claim(object, at.instance);
    if (view.state === 'ours') return { state: 'paying', object, claim: view.claim };
    const hasFailed = world.failures.has(idOf(object.kind, object.metadata));
    return hasFailed || view.state === 'taken' ? { state: 'unusable', why: notReady(reference) } : { state: 'waiting' };
  };

  const userOf = (key: VirtualKey): Payer<User> | undefined => {
    const name = key.spec.userRef?.name;
    if (name === undefined) return undefined;
    const { namespace } = key.metadata;
    const reference = { kind: 'User', path: 'spec.userRef.name', name, namespace } as const;
    return payer(key, world.users.get(pathOf({ namespace, name })), reference);
  };

  let wanted: ReadonlyMap<string, ReadonlyArray<Member>> | undefined;
  const wanting = (instance: Path, key: string) => {
    wanted ??= Map.groupBy(membersOf(world), (member) => `${instancePathOf(member)} ${aliasOf(member).key}`);
    return wanted.get(`${instance} ${key}`) ?? [];
  };

  const members = membersByUser(world.teams.values());
  const teamsOf = (key: VirtualKey): ReadonlyArray<Payer<Team>> => {
    const { namespace } = key.metadata;
    const named = key.spec.teamRef?.name;
    const teamOf = (team: string, path: string) =>
      payer(key, world.teams.get(pathOf({ namespace, name: team })), { kind: 'Team', path, name: team, namespace });
    if (named !== undefined) return [teamOf(named, 'spec.teamRef.name')];
    const name = key.spec.userRef?.name;
    const user = name === undefined ? undefined : world.users.get(pathOf({ namespace, name }));
    if (user === undefined) return [];
    // A team that the user itself names and that is not there pays for nothing: then nobody does, as with teamRef.
    const own = user.spec.teamRefs.map((ref) => ref.name);
    const claimed = (members.get(pathOf(user.metadata)) ?? []).filter(
      (team) => team.metadata.deletionTimestamp === undefined && instancePathOf(team) === instancePathOf(key),
    );
    return [...new Set([...own, ...claimed.map((team) => team.metadata.name)])]
      .sort()
      .slice(0, MOST_TEAMS)
      .map((team) => teamOf(team, `spec.teamRefs of User ${JSON.stringify(user.metadata.name)}`));
  };

  return { world, now, hash, judge, standing, claim, wanting, user: userOf, teams: teamsOf };
}

/** What a reference leads to, as the rule about it asks. */
export const toReferred = (object: User | Team | undefined): Referred | undefined =>
  object && {
    instance: object.spec.connectionRef.instanceRef,
    isDeleted: object.metadata.deletionTimestamp !== undefined,
  };

/** It is there, and is nobody who could pay. */
const notReady = ({ kind, path, name }: Reference): Finding => ({
  rule: `${kind}NotReady`,
  path,
  value: name,
  message: `this ${kind} does not have its ${kind === 'User' ? 'userEmail' : 'teamAlias'} to itself, or could not be recorded; see its conditions`,
  effect: 'refuse',
});

export function membersOf(world: World): ReadonlyArray<Member> {
  return [...world.teams.values(), ...world.users.values(), ...[...world.keys.values()].map(({ object }) => object)];
}

function membersByUser(teams: Iterable<Team>): ReadonlyMap<Path, ReadonlyArray<Team>> {
  const found = new Map<Path, Team[]>();
  for (const team of teams) {
    for (const { name } of team.spec.members) {
      const path = pathOf({ namespace: team.metadata.namespace, name });
      found.set(path, [...(found.get(path) ?? []), team]);
    }
  }
  return found;
}
