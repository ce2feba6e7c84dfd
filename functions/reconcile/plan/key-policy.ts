// A VirtualKey under the key policy of its namespace: the policy in force, what the VirtualKey lacks, and the event that
// reports this.

import { type ConditionState, toTimestamp } from '#core/conditions/conditions.ts';
import type { MissingOwnerReason } from '#core/conditions/reasons.ts';
import { formatMoney } from '#core/money/money.ts';
import type { Finding } from '#core/rules/finding.ts';
import { toText } from '#core/rules/finding.ts';
import { type AppliedPolicy, describePolicy, modelsWithin, policyViolations } from '#core/rules/key-policies.ts';
import type { KeyPolicySpec } from '#crds/kinds/key-policy.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { type Action, event } from '../action.ts';
import { perKeyScope, spentIn } from '../key/budget.ts';
import { type InstanceView, instancePathOf, type OwnClaim, type Problem, pathOf, teamAt } from '../world.ts';
import type { ChargedScope } from './charged-scopes.ts';
import type { PlanContext } from './context.ts';
import { namespaceClaim } from './namespaces.ts';

export const POLICY_MET = 'PolicyMet' as const;
const POLICY_VIOLATED = 'PolicyViolated' as const;

type Violations = ReadonlyArray<Finding<typeof POLICY_VIOLATED>>;

/**
 * The key policy that is in force for the namespace of a VirtualKey, by the row of the namespace: undefined if none
 * applies. `unknown`: the row has a policy that the instance no longer has, because the labels could not be read.
 */
export function policyInForce(
  { metadata }: VirtualKey,
  instance: InstanceView,
): (AppliedPolicy & { readonly policy: KeyPolicySpec }) | undefined | 'unknown' {
  const name = namespaceClaim(instance, metadata.namespace)?.policy?.policyName;
  if (name === undefined) return undefined;
  const { spec, metadata: of } = instance.object;
  const policy = spec.keyPolicies?.find((one) => one.name === name);
  return policy === undefined ? 'unknown' : { policy, instance: of, blockedMessage: spec.blockedMessage };
}

/** Everything that the VirtualKey lacks under its policy. */
function violationsOf(key: VirtualKey, applied: AppliedPolicy, context: PlanContext): Violations {
  const { models, userRef } = key.spec;
  const hasTeam = applied.policy.require?.includes('teamRef') ? context.chargedScopes(key).hasTeam : undefined;
  return policyViolations({ kind: 'VirtualKey', models, hasUser: userRef !== undefined, hasTeam }, applied);
}

/**
 * `PolicyMet`: whether the VirtualKey has what its policy requires, and lists no models outside the policy. If not, it
 * works with the models that are left. Undefined if no policy applies, or the policy is unknown.
 */
export function toPolicyCondition(
  key: VirtualKey,
  instance: InstanceView,
  context: PlanContext,
): ConditionState | undefined {
  const applied = policyInForce(key, instance);
  if (typeof applied !== 'object') return undefined;
  const violations = violationsOf(key, applied, context);
  return violations.length === 0
    ? { type: POLICY_MET, status: 'True', reason: POLICY_MET, message: `${describePolicy(applied)} is met` }
    : { type: POLICY_MET, status: 'False', reason: POLICY_VIOLATED, message: toText(violations) };
}

/** The models of the VirtualKey that its policy allows. Empty means all; undefined: none is left. */
export function allowedModels(key: VirtualKey, instance: InstanceView): ReadonlyArray<string> | undefined {
  const applied = policyInForce(key, instance);
  return modelsWithin(key.spec.models, typeof applied === 'object' ? applied.policy : undefined);
}

/** The violations by each model of the VirtualKey, if the policy allows none of them. Empty if a model is left. */
export function whyNoModelAllowed(key: VirtualKey, instance: InstanceView): Violations {
  const applied = policyInForce(key, instance);
  const { models } = key.spec;
  // Of nearly every key the policy allows a model: the first one decides.
  if (typeof applied !== 'object' || models.some((one) => applied.policy.models?.includes(one))) return [];
  if (allowedModels(key, instance) !== undefined) return [];
  return policyViolations({ kind: 'VirtualKey', models, hasUser: true, hasTeam: true }, applied);
}

/**
 * Why the Team of the policy cannot be charged, so that the gateway refuses all keys of the namespace. The row of the
 * namespace has the reason, because gateways use this row.
 */
export function whyNoPolicyTeam(
  { metadata }: VirtualKey,
  instance: InstanceView,
): Problem<MissingOwnerReason> | undefined {
  const row = namespaceClaim(instance, metadata.namespace)?.policy;
  const reason = row?.blocked === true ? row.missingOwnerReason : undefined;
  if (!isObstacle(reason)) return undefined;
  const path = JSON.stringify(pathOf(instance.object.metadata));
  const message = `the Team of key policy ${JSON.stringify(row?.policyName)} of instance ${path}, to which the VirtualKeys of this namespace are charged, ${OBSTACLES[reason]}: ask the owner of the instance`;
  return { reason, message };
}

const OBSTACLES = {
  TeamNotFound: 'does not exist',
  TeamOfOtherInstance: 'belongs to another instance',
  TeamNotReady: 'is not ready',
} as const satisfies Partial<Record<MissingOwnerReason, string>>;

const isObstacle = (reason: unknown): reason is keyof typeof OBSTACLES =>
  typeof reason === 'string' && Object.hasOwn(OBSTACLES, reason);

/** The Team of the policy, if it can be charged. */
export function policyTeam(
  key: VirtualKey,
  instance: InstanceView,
  { world, ownClaim }: PlanContext,
): ChargedScope | undefined {
  const applied = policyInForce(key, instance);
  const name = typeof applied === 'object' ? applied.policy.teamRef?.name : undefined;
  if (name === undefined) return undefined;
  const team = teamAt(world, pathOf({ namespace: instance.object.metadata.namespace, name }));
  const own = team && instancePathOf(team) === pathOf(instance.object.metadata) ? ownClaim(team) : undefined;
  return team && own && { object: team, ...own };
}

/** Why the VirtualKey is not ready: its budget of `perKey` is spent. */
export function whyPerKeyExceeded(
  { metadata }: VirtualKey,
  { claim, instance }: OwnClaim,
  { now, hash }: PlanContext,
): Problem<'BudgetExceeded'> | undefined {
  const namespace = namespaceClaim(instance, metadata.namespace);
  const scope = perKeyScope(claim, namespace, hash);
  if (scope === undefined) return undefined;
  const { window, spent } = spentIn(instance.sums, { ...scope, anchor: claim.anchor }, now);
  const limit = BigInt(scope.budget.limit);
  if (spent < limit) return undefined;
  const of = `perKey of key policy ${JSON.stringify(namespace?.policy?.policyName)}`;
  const message = `this VirtualKey has spent ${formatMoney(spent)} of ${formatMoney(limit)} dollars that each VirtualKey may spend per ${scope.budget.duration} (${of}): wait until ${toTimestamp(window.end)}, or ask the owner of the instance`;
  return { reason: 'BudgetExceeded', message };
}

/** One event when the VirtualKey begins to violate its policy. If it is not ready, the event of `Ready` reports that. */
export function planPolicyEvent(key: VirtualKey, evaluated: ConditionState | undefined, isReady: boolean): Action[] {
  if (evaluated?.status !== 'False' || !isReady) return [];
  const before = key.status?.conditions?.find(({ type }) => type === POLICY_MET);
  if (before?.status === 'False') return [];
  const once = `${POLICY_VIOLATED}/${key.metadata.generation}/${before?.lastTransitionTime ?? ''}`;
  return [event(key, { reason: POLICY_VIOLATED, message: evaluated.message, once })];
}
