// The scope of a key, a user or a team: the first claim of an alias wins, and the policy follows the spec.
import { type Claim, SAME_PLACE } from '#core/ports/registry.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import { type Action, about, type ScopeValue } from '../action.ts';
import { isLabelled, isOurs } from '../key/secret-shape.ts';
import {
  aliasOf,
  hasFinalizer,
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type KeyView,
  KIND_OF,
  type Member,
  pathOf,
  present,
} from '../world.ts';
import type { ClaimState, PlanContext } from './context.ts';
import { planScopeDeletion } from './deletion.ts';
import { differingMembers, sameJson } from './json.ts';
import { isOpen, mayStillArrive } from './ledger.ts';
import { policyOf } from './policy.ts';

/** The steps of a user or team that can be taken now, in order. */
export function planScopeOwner(member: User | Team, context: PlanContext): Action[] {
  if (isDeleted(member)) return planScopeDeletion(member, context);
  const access = context.access(member);
  if (access.at !== 'allowed' || context.world.failures.has(idOf(member.kind, member.metadata))) return [];
  const { instance } = access;
  return [...planFinalizer(member), ...(isOpen(instance) ? planScope(member, instance, context) : [])];
}

export function planFinalizer(member: Member): Action[] {
  if (hasFinalizer(member)) return [];
  return [{ action: 'AddFinalizer', ...about(member, 'it will have a claim and spend in the database') }];
}

/** The member's claim and policy, and a value where it is a key's. Nothing while somebody else has the alias, or pays beside it and has no claim yet. */
export function planScope(
  member: Member,
  instance: InstanceView,
  context: PlanContext,
  { view, value, why: whyValue }: { readonly view?: KeyView; readonly value?: ScopeValue; readonly why?: string } = {},
): Action[] {
  const state = context.claim(member, instance);
  if (state.state === 'taken' || (state.state === 'open' && hasOlderRival(member, context))) return [];
  const proof = state.state === 'ours' ? undefined : proofOf(member, state, instance, view);
  if (state.state === 'orphaned' && proof === undefined) return planTakeover(member, state.claim, instance);
  const claim = state.state === 'open' ? undefined : state.claim;
  // Whole seconds, as people read the dates that are counted from it.
  const anchor = Math.floor(instance.time / 1000) * 1000;
  const policy = policyOf(member, claim ?? { scopeId: '', anchor }, context);
  const isKept = state.state === 'ours' && value === undefined && sameJson(policy, state.claim.policy);
  if (policy === undefined || isKept) return [];
  const { kind: scope, alias } = aliasOf(member);
  const why =
    state.state === 'open'
      ? `nobody has the ${scope} alias "${alias}" yet`
      : state.state === 'orphaned'
        ? 'it takes its claim over, with spend and values'
        : (whyValue ?? `its ${differingMembers(policy, state.claim.policy ?? {})} changed`);
  return [
    {
      ...{ action: 'PutScope', ...about(member, why), instance: instancePathOf(member), scope, alias },
      ...{ policy, generation: member.metadata.generation },
      isNew: state.state === 'open',
      ...(proof === undefined ? {} : { proof }),
      ...(value === undefined ? {} : { value }),
    },
  ];
}

/** What proves that an orphaned claim is the member's, or may prove that a retained claim of another instance is. */
function proofOf(
  member: Member,
  state: Exclude<ClaimState, { readonly state: 'taken' | 'ours' }>,
  instance: InstanceView,
  view: KeyView | undefined,
): string | undefined {
  const secret = present(view?.secret);
  if (state.state === 'open') return secret !== undefined && isLabelled(secret) ? secret.hash : undefined;
  if (view !== undefined) return provenBy(view, state.claim);
  const { holder } = state.claim;
  const isBack = holder.namespace === member.metadata.namespace && holder.name === member.metadata.name;
  return isBack && mayStillArrive(instance) ? SAME_PLACE : undefined;
}

/** The hash of the value in the Secret that the key brings along, if it is one of the claim's. */
function provenBy(view: KeyView, claim: Claim): string | undefined {
  const secret = present(view.secret);
  const live = hashesOf(claim);
  const isProven = secret?.hash !== undefined && live.includes(secret.hash) && isOurs(secret, view.object, live);
  return isProven ? secret.hash : undefined;
}

/** An orphaned claim that nobody proves is retired: by a sweep, or here, where a sweep would wait or not all members are seen. */
function planTakeover(member: Member, claim: Claim, instance: InstanceView): Action[] {
  const isForSweep = instance.isComplete && !mayStillArrive(instance);
  if (isForSweep || !instance.orphanedClaims.has(claim.scopeId)) return [];
  const { kind: scope, alias } = aliasOf(member);
  const why = `the ${pathOf(claim.holder)} that had its alias is gone`;
  const on = { ...about(member, why), instance: instancePathOf(member), scope, alias };
  return [{ action: 'RetireScope', ...on, scopeId: claim.scopeId }];
}

/** Of several members here that could claim the same alias now the oldest asks first. */
function hasOlderRival(member: Member, { wanting, access, world }: PlanContext): boolean {
  const ageOf = ({ metadata }: Member) => `${metadata.creationTimestamp} ${pathOf(metadata)}`;
  return wanting(instancePathOf(member), aliasOf(member).key).some(
    (other) =>
      other.metadata.uid !== member.metadata.uid &&
      ageOf(other) < ageOf(member) &&
      !isDeleted(other) &&
      access(other).at === 'allowed' &&
      !world.failures.has(idOf(other.kind, other.metadata)),
  );
}

/** A sweep retires claims whose object is gone, or claims something else by now: another alias, another instance. */
export function planOrphanedClaims(path: string, instance: InstanceView, { world, wanting }: PlanContext): Action[] {
  const { object, database, isComplete } = instance;
  if (!isComplete || !database.ok || object.spec.paused || mayStillArrive(instance)) return [];
  const isProven = (key: string, claim: Claim) =>
    wanting(path, key).some((member) => {
      const view = member.kind === 'VirtualKey' ? world.keys.get(pathOf(member.metadata)) : undefined;
      return view !== undefined && provenBy(view, claim) !== undefined;
    });
  return [...instance.claims].flatMap(([key, claim]): Action[] => {
    if (!instance.orphanedClaims.has(claim.scopeId) || isProven(key, claim)) return [];
    const { holder, kind: scope, alias, scopeId } = claim;
    const { namespace, name } = holder;
    const why = `it is gone, or claims something else than the ${scope} alias "${alias}" by now`;
    return [
      { action: 'RetireScope', kind: KIND_OF[scope], namespace, name, why, instance: path, scope, alias, scopeId },
    ];
  });
}
