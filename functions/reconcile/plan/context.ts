// The context of planning: a member's access to its instance, its claim, and the users and teams that pay beside it.
import { admitsNamespace } from '#core/allowed-namespaces.ts';
import { type Finding, toText } from '#core/finding.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { instanceIsDeleted, instanceNotFound, namespaceNotAllowed } from '#core/rules/instance.ts';
import { type Reference, referenceFound } from '#core/rules/references.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { MemberReason } from '../key/reasons.ts';
import {
  aliasOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type Member,
  membersOf,
  type OwnClaim,
  type Path,
  type Problem,
  pathOf,
  retainedSecret,
  type World,
} from '../world.ts';
import { evaluateInstance, type InstanceConditions } from './conditions-instance.ts';

/**
 * A member's access to its instance; `why`: the instance keeps the member from working. `missing`: there is no such instance, or it is
 * being deleted. `paused`: nothing may be done, or it could not be looked at. `notAllowed`: it does not admit the namespace; a
 * member that it never admitted gets the same message as for a missing one. `unreachable`: its database.
 */
export type InstanceAccess =
  | {
      readonly at: 'missing' | 'paused' | 'notAllowed';
      readonly instance: InstanceView | undefined;
      readonly why: Problem<MemberReason>;
    }
  | {
      readonly at: 'unreachable' | 'allowed';
      readonly instance: InstanceView;
      readonly evaluated: InstanceConditions;
      readonly why: Problem<MemberReason> | undefined;
    };

/** `open`: the alias is free. `orphaned`: its holder is gone, or lives on only in the Secret of a retained key. */
export type ClaimState =
  | { readonly state: 'open'; readonly claim?: undefined }
  | { readonly state: 'ours' | 'orphaned' | 'taken'; readonly claim: Claim };

/** Users and teams that pay beside a key, and those that should and cannot. `isWaiting`: one will have its claim later in this run. */
export interface Payers {
  readonly paying: ReadonlyArray<OwnClaim & { readonly object: User | Team }>;
  readonly unpaid: ReadonlyArray<Finding<MemberReason>>;
  readonly isWaiting: boolean;
}

export type PlanContext = ReturnType<typeof createPlanContext>;

const MAX_TEAMS = 8;

type Evaluate = (view: InstanceView) => InstanceConditions;

export function createPlanContext(world: World, now: Millis) {
  const evaluated = new Map<InstanceView, InstanceConditions>();
  const evaluate = (view: InstanceView) => {
    const conditions = evaluated.get(view) ?? evaluateInstance(view, world);
    evaluated.set(view, conditions);
    return conditions;
  };
  const access = (member: Member) => accessOf(member, world, evaluate);
  let wanted: ReadonlyMap<string, ReadonlyArray<Member>> | undefined;
  /** The members here that want this claim of this instance. */
  const wanting = (instance: Path, key: string) => {
    wanted ??= Map.groupBy(membersOf(world), (member) => `${instancePathOf(member)} ${aliasOf(member).key}`);
    return wanted.get(`${instance} ${key}`) ?? [];
  };
  const own = (member: Member): OwnClaim | undefined => {
    const found = access(member);
    if (found.at !== 'allowed') return undefined;
    const { instance } = found;
    const state = claimOf(member, instance);
    return state.state === 'ours' ? { instance, claim: state.claim } : undefined;
  };
  const members = [...world.teams.values()].flatMap((team) =>
    team.spec.members.map(({ name }) => ({ user: pathOf({ ...team.metadata, name }), team })),
  );
  const memberships = Map.groupBy(members, ({ user }) => user);
  /** The key's user, and its `teamRef`, else all teams of the user, by name, at most eight (LEDGER 2). */
  const payers = (key: VirtualKey): Payers => {
    const references = referencesOf(key, world, memberships);
    const paying: Array<Payers['paying'][number]> = [];
    const unpaid: Finding<MemberReason>[] = [];
    for (const reference of references) {
      const object = (reference.kind === 'User' ? world.users : world.teams).get(pathOf(reference));
      const missing = referenceFound(reference, toReferred(object), key.spec.connectionRef.instanceRef);
      const found = object && missing === undefined ? access(object) : undefined;
      if (missing !== undefined) unpaid.push(missing);
      if (object === undefined || found?.at !== 'allowed') continue;
      const { instance } = found;
      const state = claimOf(object, instance);
      const hasFailed = world.failures.has(idOf(object.kind, object.metadata));
      if (state.state === 'ours') paying.push({ object, instance, claim: state.claim });
      else if (hasFailed || state.state === 'taken') unpaid.push(notReady(reference));
    }
    return { paying, unpaid, isWaiting: paying.length + unpaid.length < references.length };
  };
  return { world, now, evaluate, access, own, wanting, payers };
}

/** A missing team that the user itself names leaves the key unpaid, as a missing teamRef does. */
function referencesOf(
  key: VirtualKey,
  { users }: World,
  memberships: ReadonlyMap<Path, ReadonlyArray<{ readonly team: Team }>>,
): ReadonlyArray<Reference> {
  const { namespace } = key.metadata;
  const { userRef, teamRef } = key.spec;
  const refer = (kind: Reference['kind'], path: string, name: string): Reference => ({ kind, path, name, namespace });
  const ofUser = userRef === undefined ? [] : [refer('User', 'spec.userRef.name', userRef.name)];
  if (teamRef !== undefined) return [...ofUser, refer('Team', 'spec.teamRef.name', teamRef.name)];
  const user = userRef && users.get(pathOf({ namespace, name: userRef.name }));
  if (user === undefined) return ofUser;
  const listing = (memberships.get(pathOf(user.metadata)) ?? []).flatMap(({ team }) =>
    !isDeleted(team) && instancePathOf(team) === instancePathOf(key) ? [team.metadata.name] : [],
  );
  const names = [...user.spec.teamRefs.map(({ name }) => name), ...listing];
  const path = `spec.teamRefs of User ${JSON.stringify(user.metadata.name)}`;
  const teams = [...new Set(names)].sort().slice(0, MAX_TEAMS);
  return [...ofUser, ...teams.map((name) => refer('Team', path, name))];
}

function accessOf(member: Member, world: World, evaluate: Evaluate): InstanceAccess {
  const path = instancePathOf(member);
  const instance = world.instances.get(path);
  const ref = member.spec.connectionRef.instanceRef;
  const unusable = (how: string) =>
    ({ reason: 'InstanceNotReady', message: `GatewayInstance ${path} is ${how}` }) as const;
  const no = (finding: Finding<MemberReason>) => ({
    instance,
    why: { reason: finding.rule, message: toText([finding]) },
  });
  const paused = { at: 'paused', instance, why: unusable('paused') } as const;
  if (world.unobserved.has(path)) return paused;
  const { namespace } = member.metadata;
  if (instance === undefined) return { at: 'missing', ...no(instanceNotFound(ref, namespace)) };
  const asking = { name: namespace, labels: world.namespaces.get(namespace) ?? {} };
  const isAdmitted = admitsNamespace(instance.object.spec.allowedNamespaces, ref.namespace, asking);
  const wasAdmitted = isAdmitted || instance.claims.get(aliasOf(member).key)?.holder.uid === member.metadata.uid;
  const unseen = wasAdmitted ? undefined : instanceNotFound(ref, namespace);
  if (isDeleted(instance.object)) return { at: 'missing', ...no(unseen ?? instanceIsDeleted(ref)) };
  if (unseen !== undefined) return { at: 'notAllowed', ...no(unseen) };
  if (instance.object.spec.paused) return paused;
  if (!isAdmitted) return { at: 'notAllowed', ...no(namespaceNotAllowed(ref, namespace)) };
  const evaluated = evaluate(instance);
  const { ready, workload } = evaluated;
  // A rollout of seconds would tell every key twice.
  const isQuiet = ready === workload.reached && workload.isRolling && wasReady(member);
  const why = ready.ok || isQuiet ? undefined : unusable(`not ready: ${ready.reason}: ${ready.message}`);
  return { at: instance.database.ok ? 'allowed' : 'unreachable', instance, evaluated, why };
}

const wasReady = ({ status }: Member): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

export function claimOf(member: Member, { claims, orphanedClaims }: InstanceView): ClaimState {
  const claim = claims.get(aliasOf(member).key);
  if (claim === undefined) return { state: 'open' };
  if (claim.holder.uid === member.metadata.uid) return { state: 'ours', claim };
  const isOrphaned = retainedSecret(claim) !== undefined || orphanedClaims.has(claim.scopeId);
  return { state: isOrphaned ? 'orphaned' : 'taken', claim };
}

/** The object that a reference names, as the rule about references reads it. */
export const toReferred = (object: User | Team | undefined) =>
  object && { instance: object.spec.connectionRef.instanceRef, isDeleted: isDeleted(object) };

/** The user or team is there, and cannot pay. */
const notReady = ({ kind, path, name }: Reference): Finding<`${Reference['kind']}NotReady`> => ({
  rule: `${kind}NotReady`,
  path,
  value: name,
  message: `this ${kind} does not have its ${kind === 'User' ? 'userEmail' : 'teamAlias'} to itself, or could not be recorded; see its conditions`,
  effect: 'refuse',
});
