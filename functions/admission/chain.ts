// The chain of checks of each kind, in the order of the findings: refusals first, the most important first.

import { createLazy } from '#core/caches/lazy.ts';
import type { Finding } from '#core/rules/finding.ts';
import { createDidYouMean } from '#core/rules/nearest-name.ts';
import type { KindName, Schemas } from '#crds/kinds/kinds.ts';
import { validate } from '#crds/validation/validate.ts';
import type { Check, ComparedObject } from './check.ts';
import * as instanceChecks from './checks/instance.ts';
import * as instancePolicyChecks from './checks/instance-key-policies.ts';
import { keySecretFree, templateHarmless, windowBudgets } from './checks/key.ts';
import * as keyPolicyChecks from './checks/key-policy.ts';
import * as scopeObjectChecks from './checks/scope-object.ts';
import * as userChecks from './checks/user.ts';
import type { FactContext } from './facts/context.ts';
import { gatherInstanceFacts } from './facts/instance.ts';
import { gatherKeyFacts, gatherTeamFacts, gatherUserFacts } from './facts/scope-object.ts';
import type { Draft } from './subject.ts';

/**
 * All findings about an object: those about its own fields, and, if there is a `factContext`, those with the objects
 * that it refers to.
 */
export type Chain = (
  object: Draft,
  old: Draft | undefined,
  factContext: FactContext | undefined,
) => Promise<ReadonlyArray<Finding>>;

// Checks that VirtualKeys, Users and Teams have in common.

const SCOPE_OBJECT_CHECKS_ALONE = [
  scopeObjectChecks.timeZoneKnown, // the time zone exists
];
const SCOPE_OBJECT_WARNINGS = [
  scopeObjectChecks.timeZoneUsed, // warns: Rolling windows have no time zone
  scopeObjectChecks.calendarUsed, // warns: without a budget and its duration, there is no window
  scopeObjectChecks.zeroBudget, //   warns: a budget of zero is spent from the start
  scopeObjectChecks.belowSpend, //   warns: the window has already cost more than the new budget
];
const SCOPE_OBJECT_CHECKS = [
  scopeObjectChecks.instanceExists, //     the instance exists and allows this namespace
  scopeObjectChecks.modelsServed, //       the instance serves every model
  scopeObjectChecks.aliasesFree, //        no other object of the instance has the alias or the address
  scopeObjectChecks.referencesFound, //    the User and the Teams exist, on the same instance
];

export const CHAINS: Readonly<Record<KindName, Chain>> = {
  GatewayInstance: createChain('GatewayInstance', {
    load: () => import('#crds/kinds/gateway-instance.ts'),
    gatherFacts: gatherInstanceFacts,
    withoutFacts: [
      instanceChecks.sharesNoCredentials, //        no two model entries share a Secret, unless the annotation allows it
      instancePolicyChecks.policyTimeZonesKnown, // the time zones of key policies exist
    ],
    withFacts: [
      instanceChecks.databaseSecret, //            the Secret and its mapped keys exist
      instanceChecks.storeSecret, //               the same for the counter store
      instanceChecks.modelCredentials, //          the same for the credentials of each model entry
      instancePolicyChecks.policyModelsServed, //  the instance serves every model of its key policies
      instancePolicyChecks.policyTeamsFound, //    warns: the Team of a key policy is missing, or of another instance
      instancePolicyChecks.policiesApply, //       warns: a key policy for all namespaces is before others
      instancePolicyChecks.policyPerKeyBudgets, // warns: the budget per VirtualKey is above that of the namespace
      instancePolicyChecks.policyBudgets, //       warns: a time zone or an alignment has no effect, or a budget is zero
      instancePolicyChecks.policyBelowSpend, //    warns: namespaces have already spent more than the new budget
      instanceChecks.modelsInUse, //               warns: VirtualKeys are restricted to a removed model
      instanceChecks.warnOfNoModels, //            warns: an instance without model entries serves nothing
      instanceChecks.addresses, //                 warns: the provider is unknown, and no address is given
      instanceChecks.prices, //                    warns: no VirtualKey can use a model without a price
      instanceChecks.credentialNames, //           warns: no provider reads a credential of this name
    ],
  }),
  VirtualKey: createChain('VirtualKey', {
    load: () => import('#crds/kinds/virtual-key.ts'),
    gatherFacts: gatherKeyFacts,
    withoutFacts: SCOPE_OBJECT_CHECKS_ALONE,
    withFacts: [
      ...SCOPE_OBJECT_CHECKS,
      keyPolicyChecks.keyMeetsPolicy, //       it has what the key policy requires, and names no other models
      keySecretFree, //                        the Secret does not belong to something else
      templateHarmless, //                     its labels and annotations do not control other software
      scopeObjectChecks.modelBudgets, //       warns: a model's budget limits nothing, because the model is not served
      windowBudgets, //                        warns: two windows have the same length, or a shorter one has a larger budget
      keyPolicyChecks.keyBudgetAbovePolicy, // warns: the key policy has a smaller budget
      ...SCOPE_OBJECT_WARNINGS,
    ],
  }),
  User: createChain('User', {
    load: () => import('#crds/kinds/user.ts'),
    gatherFacts: gatherUserFacts,
    withoutFacts: SCOPE_OBJECT_CHECKS_ALONE,
    withFacts: [
      ...SCOPE_OBJECT_CHECKS,
      keyPolicyChecks.userMeetsPolicy, //       its VirtualKey would have what the key policy requires
      userChecks.keyNameFree, //                warns: another VirtualKey has the User's name
      userChecks.keyReplaced, //                warns: this edit replaces the User's VirtualKey
      keyPolicyChecks.userBudgetAbovePolicy, // warns: the key policy has a smaller budget
      ...SCOPE_OBJECT_WARNINGS,
    ],
  }),
  Team: createChain('Team', {
    load: () => import('#crds/kinds/team.ts'),
    gatherFacts: gatherTeamFacts,
    withoutFacts: SCOPE_OBJECT_CHECKS_ALONE,
    withFacts: [...SCOPE_OBJECT_CHECKS, ...SCOPE_OBJECT_WARNINGS],
  }),
};

interface Checks<Spec, Facts> {
  /** Loads the kind's schemas with its first review: those of all kinds would take 15 ms of a cold start. */
  readonly load: () => Promise<{ readonly schemas: Schemas<Spec> }>;
  readonly gatherFacts: (object: ComparedObject<Spec>, factContext: FactContext) => Promise<Facts>;
  /** Checks of the object alone: by /mutate, and by /validate again. */
  readonly withoutFacts?: ReadonlyArray<Check<Spec>>;
  /** Checks with facts: by /validate only. */
  readonly withFacts: ReadonlyArray<Check<Spec, Facts>>;
}

/**
 * The maximum number of findings of one check. 512 model entries with 32 credentials each can have 16,384 findings of
 * 600 bytes each, and a review keeps them while it reads facts about the stored object.
 */
const MAX_FINDINGS = 2048;

/** Validates by the schema first. A spec that the schema cannot read is not checked further. */
function createChain<Spec, Facts>(
  name: KindName,
  { load, gatherFacts, withoutFacts = [], withFacts }: Checks<Spec, Facts>,
): Chain {
  const loaded = createLazy(load);
  return async ({ metadata, spec: given }, old, factContext) => {
    const kind = { ...(await loaded()).schemas, kind: name };
    const { violations, spec } = validate(kind, { metadata, spec: given }, old);
    const refusals = violations.map((violation): Finding => ({ ...violation, effect: 'refuse' }));
    if (spec === undefined) return refusals;
    const specOf = (version: Draft | undefined) => version && validate(kind, version).spec;
    const { spends = [] } = old ?? {};
    const object = { metadata, spec, old: () => specOf(old), spends, didYouMean: createDidYouMean() };
    const findings = [...refusals, ...withoutFacts.flatMap((check) => check({ ...object, facts: undefined }))];
    if (factContext === undefined) return findings;
    const facts = await gatherFacts({ ...object, other: () => specOf(factContext.other) }, factContext);
    return [...findings, ...withFacts.flatMap((check) => check({ ...object, facts }).slice(0, MAX_FINDINGS))];
  };
}
