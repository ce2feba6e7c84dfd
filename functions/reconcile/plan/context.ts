// What planning asks of the world again and again, answered once per plan: a member's access to its instance, its claim, who pays beside it.
import { admitsNamespace } from '#core/allowed-namespaces.ts';
import type { Finding } from '#core/finding.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, Holder } from '#core/ports/registry.ts';
import { instanceIsDeleted, instanceNotFound, namespaceNotAllowed } from '#core/rules/instance.ts';
import { type Reference, referenceFound } from '#core/rules/references.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import {
  aliasOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type Member,
  membersOf,
  type Path,
  pathOf,
  retainedSecret,
  type World,
} from '../world.ts';
import { evaluateInstance, type InstanceConditions } from './conditions-instance.ts';

/** A member's access to its instance. */
export type InstanceAccess =
  /** There is no such instance, or it is being deleted. */
  | { readonly at: 'missing'; readonly instance: InstanceView | undefined; readonly why: Finding }
  /** Nothing may be done: it is paused, or could not be looked at. */
  | { readonly at: 'paused'; readonly instance: InstanceView | undefined }
  /** It does not admit the namespace. A member that it never admitted is told the same as where there is none. */
  | { readonly at: 'notAllowed'; readonly instance: InstanceView; readonly why: Finding }
  | { readonly at: 'unreachable'; readonly instance: InstanceView; readonly evaluated: InstanceConditions }
  | { readonly at: 'allowed'; readonly instance: InstanceView; readonly evaluated: InstanceConditions };

/** `open`: nobody has the alias. */
export type ClaimState =
  | { readonly state: 'ours'; readonly claim: Claim }
  | { readonly state: 'open' }
  /** Its holder is gone, or lives on only in the Secret of a retained key. */
  | { readonly state: 'orphaned'; readonly claim: Claim; readonly retained: string | undefined }
  | { readonly state: 'taken'; readonly by: Holder };

/** Users and teams that pay beside a key, and those that should and cannot. `isWaiting`: one will have its claim later in this run. */
export interface Payers {
  readonly paying: ReadonlyArray<{ readonly object: User | Team; readonly claim: Claim }>;
  readonly unpaid: ReadonlyArray<Finding>;
  readonly isWaiting: boolean;
}

export interface PlanContext {
  readonly world: World;
  readonly now: Millis;
  evaluate(view: InstanceView): InstanceConditions;
  access(member: Member): InstanceAccess;
  claim(member: Member, instance: InstanceView): ClaimState;
  /** The claim of a member that has it, on an instance that can be used. */
  ownClaim(member: Member): Claim | undefined;
  /** The members here that want this claim of this instance. */
  wanting(instance: Path, claim: string): ReadonlyArray<Member>;
  /** The key's user, and its `teamRef`, else all teams of the user, by name, at most eight (LEDGER 2). */
  payers(key: VirtualKey): Payers;
}

const MAX_TEAMS = 8;

export function createPlanContext(world: World, now: Millis): PlanContext {
  const evaluated = new Map<InstanceView, InstanceConditions>();
  const evaluate = (view: InstanceView) => {
    const conditions = evaluated.get(view) ?? evaluateInstance(view, world);
    evaluated.set(view, conditions);
    return conditions;
  };
  const access = (member: Member) => accessOf(member, world, evaluate);
  let wanted: ReadonlyMap<string, ReadonlyArray<Member>> | undefined;
  const wanting = (instance: Path, key: string) => {
    wanted ??= Map.groupBy(membersOf(world), (member) => `${instancePathOf(member)} ${aliasOf(member).key}`);
    return wanted.get(`${instance} ${key}`) ?? [];
  };
  const ownClaim = (member: Member) => {
    const found = access(member);
    const state = found.at === 'allowed' ? claimOf(member, found.instance) : undefined;
    return state?.state === 'ours' ? state.claim : undefined;
  };

  const teamsByUser = membersByUser(world.teams.values());
  const payers = (key: VirtualKey): Payers => {
    const { namespace } = key.metadata;
    const { userRef, teamRef } = key.spec;
    const user = userRef && world.users.get(pathOf({ namespace, name: userRef.name }));
    const ofUser = `spec.teamRefs of User ${JSON.stringify(user?.metadata.name)}`;
    const teams = teamRef !== undefined ? [teamRef.name] : teamNamesOf(user, key);
    const path = teamRef !== undefined ? 'spec.teamRef.name' : ofUser;
    const references: ReadonlyArray<Reference> = [
      ...(userRef === undefined
        ? []
        : [{ kind: 'User', path: 'spec.userRef.name', name: userRef.name, namespace } as const]),
      ...teams.map((name) => ({ kind: 'Team', path, name, namespace }) as const),
    ];
    const paying: Array<Payers['paying'][number]> = [];
    const unpaid: Finding[] = [];
    for (const reference of references) {
      const object = (reference.kind === 'User' ? world.users : world.teams).get(pathOf(reference));
      const missing = referenceFound(reference, toReferred(object), key.spec.connectionRef.instanceRef);
      const found = object && access(object);
      if (missing !== undefined) unpaid.push(missing);
      if (missing !== undefined || object === undefined || found?.at !== 'allowed') continue;
      const state = claimOf(object, found.instance);
      const hasFailed = world.failures.has(idOf(object.kind, object.metadata));
      if (state.state === 'ours') paying.push({ object, claim: state.claim });
      else if (hasFailed || state.state === 'taken') unpaid.push(notReady(reference));
    }
    return { paying, unpaid, isWaiting: paying.length + unpaid.length < references.length };
  };
  /** A team that the user itself names and that is not there pays for nothing: then nobody does, as with teamRef. */
  const teamNamesOf = (user: User | undefined, key: VirtualKey): ReadonlyArray<string> => {
    if (user === undefined) return [];
    const listing = (teamsByUser.get(pathOf(user.metadata)) ?? []).filter(
      (team) => !isDeleted(team) && instancePathOf(team) === instancePathOf(key),
    );
    const names = [...user.spec.teamRefs.map(({ name }) => name), ...listing.map(({ metadata }) => metadata.name)];
    return [...new Set(names)].sort().slice(0, MAX_TEAMS);
  };
  return { world, now, evaluate, access, claim: claimOf, ownClaim, wanting, payers };
}

function accessOf(member: Member, world: World, evaluate: PlanContext['evaluate']): InstanceAccess {
  const path = instancePathOf(member);
  const instance = world.instances.get(path);
  const ref = member.spec.connectionRef.instanceRef;
  if (world.unobserved.has(path)) return { at: 'paused', instance };
  const { namespace } = member.metadata;
  if (instance === undefined) return { at: 'missing', instance, why: instanceNotFound(ref, namespace) };
  const asking = { name: namespace, labels: world.namespaces.get(namespace) ?? {} };
  const isAdmitted = admitsNamespace(instance.object.spec.allowedNamespaces, ref.namespace, asking);
  const wasAdmitted = isAdmitted || instance.claims.get(aliasOf(member).key)?.holder.uid === member.metadata.uid;
  const unseen = wasAdmitted ? undefined : instanceNotFound(ref, namespace);
  if (isDeleted(instance.object)) return { at: 'missing', instance, why: unseen ?? instanceIsDeleted(ref) };
  if (unseen !== undefined) return { at: 'notAllowed', instance, why: unseen };
  if (instance.object.spec.paused) return { at: 'paused', instance };
  if (!isAdmitted) return { at: 'notAllowed', instance, why: namespaceNotAllowed(ref, namespace) };
  return { at: instance.database.ok ? 'allowed' : 'unreachable', instance, evaluated: evaluate(instance) };
}

function claimOf(member: Member, { claims, orphanedClaims }: InstanceView): ClaimState {
  const found = claims.get(aliasOf(member).key);
  if (found === undefined) return { state: 'open' };
  if (found.holder.uid === member.metadata.uid) return { state: 'ours', claim: found };
  const retained = retainedSecret(found);
  const isOrphaned = retained !== undefined || orphanedClaims.has(found.scopeId);
  return isOrphaned ? { state: 'orphaned', claim: found, retained } : { state: 'taken', by: found.holder };
}

/** What a reference leads to, as the rule about it asks. */
export const toReferred = (object: User | Team | undefined) =>
  object && { instance: object.spec.connectionRef.instanceRef, isDeleted: isDeleted(object) };

/** It is there, and cannot pay. */
const notReady = ({ kind, path, name }: Reference): Finding => ({
  rule: `${kind}NotReady`,
  path,
  value: name,
  message: `this ${kind} does not have its ${kind === 'User' ? 'userEmail' : 'teamAlias'} to itself, or could not be recorded; see its conditions`,
  effect: 'refuse',
});

function membersByUser(teams: Iterable<Team>): ReadonlyMap<Path, ReadonlyArray<Team>> {
  const pairs = [...teams].flatMap((team) =>
    team.spec.members.map(({ name }) => ({ user: pathOf({ namespace: team.metadata.namespace, name }), team })),
  );
  const groups = Map.groupBy(pairs, ({ user }) => user);
  return new Map([...groups].map(([user, all]) => [user, all.map(({ team }) => team)]));
}
