// Checks of `spec.keyPolicies` of an instance: time zones, models, Teams, policies that never apply, and budgets that are
// zero, without an effect, or below the spend.

import { parseMoney } from '#core/money/money.ts';
import type { Finding } from '#core/rules/finding.ts';
import { selectsAll } from '#core/rules/key-policies.ts';
import { modelsServed, toServedModels } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { secondsOf } from '#crds/validation/units.ts';
import type { Check } from '../check.ts';
import type { InstanceFacts } from '../facts/instance.ts';
import {
  type BudgetFields,
  isBelowSpend,
  unknownTimeZone,
  unusedCalendar,
  unusedTimeZone,
  zeroBudgetAt,
} from './budget-window.ts';

type InstanceCheck = Check<GatewayInstanceSpec, InstanceFacts>;

export const policyTimeZonesKnown: Check<GatewayInstanceSpec> = ({ spec }) => budgetsOf(spec).flatMap(unknownTimeZone);

/** If the instance served no model of a policy, the VirtualKeys of the policy could use none. */
export const policyModelsServed: InstanceCheck = ({ metadata: { namespace, name = '' }, spec, didYouMean }) => {
  const { keyPolicies = [] } = spec;
  const served = toServedModels(
    spec.models.map(({ modelName }) => modelName),
    didYouMean,
  );
  return keyPolicies.flatMap(({ models = [] }, index) =>
    modelsServed({ models, path: `spec.keyPolicies[${index}].models` }, { namespace, name }, served),
  );
};

/** A Team is created after its instance, so a missing Team is only a warning. */
export const policyTeamsFound: InstanceCheck = ({ metadata: { namespace, name = '' }, facts: { policyTeams } }) =>
  policyTeams.flatMap(([reference, found]): Finding[] => {
    const finding = referenceFound(reference, found, { namespace, name });
    if (finding === undefined) return [];
    const missing = `no Team of this name is in namespace ${JSON.stringify(namespace)}; create it, or correct the name`;
    const problem = finding.rule === 'TeamNotFound' ? missing : finding.message;
    const message = `${problem}. Until then all requests of this policy's namespaces fail with 403 key_blocked`;
    return [{ ...finding, message, effect: 'warn' }];
  });

/** The first policy that selects a namespace applies, so a policy after one that selects all namespaces never does. */
export const policiesApply: Check<GatewayInstanceSpec> = ({ spec: { keyPolicies = [] } }) => {
  const lastAt = keyPolicies.findIndex(selectsAll);
  const last = JSON.stringify(keyPolicies[lastAt]?.name);
  const unused = lastAt === -1 ? [] : keyPolicies.slice(lastAt + 1);
  return unused.map(({ name }, index): Finding => {
    const path = `spec.keyPolicies[${lastAt + 1 + index}]`;
    const message = `never applies, because ${last} selects all namespaces; move it before ${last}`;
    return { rule: 'PolicyUnused', path, value: name, message, effect: 'warn' };
  });
};

/** Budgets for each VirtualKey that are above the budget of its whole namespace, for windows of the same length. */
export const policyPerKeyBudgets: Check<GatewayInstanceSpec> = ({ spec: { keyPolicies = [] } }) =>
  keyPolicies.flatMap(({ perKey, perNamespace }, index): Finding[] => {
    const [each, all] = [parseMoney(perKey?.maxBudget ?? ''), parseMoney(perNamespace?.maxBudget ?? '')];
    const isSameLength = secondsOf(perKey?.budgetDuration ?? '') === secondsOf(perNamespace?.budgetDuration ?? '');
    if (each === undefined || all === undefined || !isSameLength || each <= all) return [];
    const path = `spec.keyPolicies[${index}].perKey.maxBudget`;
    const message = `is more than perNamespace.maxBudget, so the smaller budget applies; write at most ${JSON.stringify(perNamespace?.maxBudget)}`;
    return [{ rule: 'BudgetAbovePolicy', path, value: perKey?.maxBudget, message, effect: 'warn' }];
  });

export const policyBudgets: InstanceCheck = ({ spec }) =>
  budgetsOf(spec).flatMap((budget) => [
    ...unusedTimeZone(budget),
    ...unusedCalendar(budget),
    ...zeroBudgetAt(budget.path, budget.maxBudget),
  ]);

/** The maximum namespaces that a message names. */
const MAX_NAMED = 5;

/** Namespaces whose spend in `status.namespaces` is above a new `perNamespace.maxBudget` of their policy. */
export const policyBelowSpend: InstanceCheck = ({ spec: { keyPolicies = [] }, old, spends }) => {
  const stored = new Map(old()?.keyPolicies?.map(({ name, perNamespace }) => [name, perNamespace]));
  return keyPolicies.flatMap(({ name, perNamespace: fields }, index): Finding[] => {
    const path = `spec.keyPolicies[${index}].perNamespace`;
    const over = spends.filter(
      ({ policy, currentSpend }) =>
        policy === name && isBelowSpend({ path, ...fields }, stored.get(name), currentSpend),
    );
    if (over.length === 0) return [];
    const named = over.slice(0, MAX_NAMED).map(({ namespace, currentSpend }) => `${namespace} (${currentSpend})`);
    const more = over.length > MAX_NAMED ? `, and ${over.length - MAX_NAMED} more` : '';
    const message = `is less than the dollars that namespaces have spent in the current window: ${named.join(', ')}${more}. Their requests are refused until the window ends; raise the budget`;
    return [{ rule: 'BudgetBelowSpend', path: `${path}.maxBudget`, value: fields?.maxBudget, message, effect: 'warn' }];
  });
};

const budgetsOf = ({ keyPolicies = [] }: GatewayInstanceSpec): BudgetFields[] =>
  keyPolicies.flatMap(({ perNamespace, perKey }, index) =>
    Object.entries({ perNamespace, perKey }).flatMap(([part, fields]) =>
      fields === undefined ? [] : { path: `spec.keyPolicies[${index}].${part}`, ...fields },
    ),
  );
