// What does planning ask of the world again and again? Answered once per plan: where a member stands, what it claims, who pays beside it.
import { admitsNamespace } from '#core/allowed-namespaces.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, Holder } from '#core/ports/registry.ts';
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
  | { readonly at: 'missing'; readonly instance: InstanceView | undefined }
  /** Nothing may be done: it is paused, or could not be looked at. */
  | { readonly at: 'paused'; readonly instance: InstanceView | undefined }
  | { readonly at: 'refused'; readonly instance: InstanceView }
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
  | { readonly state: 'unusable'; readonly why: string };

export interface Outlook {
  readonly world: World;
  readonly now: Millis;
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

export function createOutlook(world: World, now: Millis): Outlook {
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
    if (instance === undefined || instance.object.metadata.deletionTimestamp !== undefined)
      return { at: 'missing', instance };
    if (instance.object.spec.paused) return { at: 'paused', instance };
    const { namespace } = member.metadata;
    const asking = { name: namespace, labels: world.namespaces.get(namespace) ?? {} };
    const { allowedNamespaces } = instance.object.spec;
    if (!admitsNamespace(allowedNamespaces, ref.namespace, asking)) return { at: 'refused', instance };
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

  const payer = <T extends User | Team>(key: VirtualKey, object: T | undefined, what: string): Payer<T> => {
    if (object === undefined || object.metadata.deletionTimestamp !== undefined)
      return { state: 'unusable', why: `${what} is not there` };
    const mine = key.spec.connectionRef.instanceRef;
    if (instancePathOf(object) !== pathOf(mine))
      return { state: 'unusable', why: `${what} belongs to another instance` };
    const at = standing(object);
    if (at.at !== 'admitted') return { state: 'waiting' };
    const view = claim(object, at.instance);
    if (view.state === 'ours') return { state: 'paying', object, claim: view.claim };
    if (world.failures.has(idOf(object.kind, object.metadata)))
      return { state: 'unusable', why: `${what} could not be recorded` };
    const lost = view.state === 'taken';
    return lost
      ? {
          state: 'unusable',
          why: `${what} does not have its ${object.kind === 'User' ? 'userEmail' : 'teamAlias'} to itself`,
        }
      : { state: 'waiting' };
  };

  const userOf = (key: VirtualKey): Payer<User> | undefined => {
    const name = key.spec.userRef?.name;
    if (name === undefined) return undefined;
    const { namespace } = key.metadata;
    return payer(key, world.users.get(pathOf({ namespace, name })), `User "${name}"`);
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
    if (named !== undefined)
      return [payer(key, world.teams.get(pathOf({ namespace, name: named })), `Team "${named}"`)];
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
      .map((team) => payer(key, world.teams.get(pathOf({ namespace, name: team })), `Team "${team}"`));
  };

  return { world, now, judge, standing, claim, wanting, user: userOf, teams: teamsOf };
}

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
