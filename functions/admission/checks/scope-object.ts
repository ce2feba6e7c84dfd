// Checks that VirtualKeys, Users and Teams have in common: instance, models, aliases, references, windows, a budget of zero.

import { aliasTaken } from '#core/rules/conflicts.ts';
import type { Finding } from '#core/rules/finding.ts';
import { instanceIsDeleted, instanceNotFound } from '#core/rules/instance.ts';
import { modelsServed as findUnserved, modelBudgetsServed, toServedModels } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { ConnectionRef } from '#crds/kinds/shared-fields.ts';
import type { Check } from '../check.ts';
import type { ScopeObjectFacts } from '../facts/scope-object.ts';
import { isBelowSpend, unknownTimeZone, unusedCalendar, unusedTimeZone, zeroBudgetAt } from './budget-window.ts';

interface ScopeObjectSpec {
  readonly connectionRef: ConnectionRef;
  readonly models: string[];
  readonly modelMaxBudget?: Readonly<Record<string, { readonly maxBudget: string }>> | undefined;
  readonly budgets?: ReadonlyArray<{ readonly maxBudget: string }> | undefined;
  readonly maxBudget?: string | undefined;
  readonly budgetDuration?: string | undefined;
  readonly budgetWindow: 'Rolling' | 'Calendar';
  readonly budgetTimeZone?: string | undefined;
}
type ScopeObjectCheck = Check<ScopeObjectSpec, ScopeObjectFacts>;

export const timeZoneKnown: Check<ScopeObjectSpec> = ({ spec }) => unknownTimeZone({ path: 'spec', ...spec });

export const timeZoneUsed: ScopeObjectCheck = ({ spec }) => unusedTimeZone({ path: 'spec', ...spec });

export const calendarUsed: ScopeObjectCheck = ({ spec }) => unusedCalendar({ path: 'spec', ...spec });

export const instanceExists: ScopeObjectCheck = ({ metadata, spec, facts: { instance } }) => {
  const { instanceRef } = spec.connectionRef;
  if (instance === undefined) return [instanceNotFound(instanceRef, metadata.namespace)];
  return instance.isDeleted ? [instanceIsDeleted(instanceRef)] : [];
};

export const modelsServed: ScopeObjectCheck = ({ spec, didYouMean, facts: { instance } }) => {
  if (instance === undefined) return [];
  return findUnserved(spec, spec.connectionRef.instanceRef, toServedModels(instance.served, didYouMean));
};

export const modelBudgets: ScopeObjectCheck = ({ spec, didYouMean, facts: { instance } }) =>
  instance === undefined ? [] : modelBudgetsServed(spec, toServedModels(instance.served, didYouMean));

export const aliasesFree: ScopeObjectCheck = ({ facts: { takenAliases } }) => takenAliases.map(aliasTaken);

/** If the object's instance does not exist, which is a finding already, only missing objects are found. */
export const referencesFound: ScopeObjectCheck = ({ spec, facts: { instance, references } }) => {
  const own = instance === undefined ? undefined : spec.connectionRef.instanceRef;
  return references.flatMap(([reference, found]) => referenceFound(reference, found, own) ?? []);
};

export const zeroBudget: ScopeObjectCheck = ({ spec: { maxBudget, budgets = [], modelMaxBudget = {} } }) => [
  ...zeroBudgetAt('spec', maxBudget),
  ...budgets.flatMap((one, index) => zeroBudgetAt(`spec.budgets[${index}]`, one.maxBudget)),
  ...Object.entries(modelMaxBudget).flatMap(([model, one]) =>
    zeroBudgetAt(`spec.modelMaxBudget[${JSON.stringify(model)}]`, one.maxBudget),
  ),
];

export const belowSpend: ScopeObjectCheck = ({ spec, old, spends }) =>
  spends.flatMap(({ namespace, currentSpend, budgetResetDate }): Finding[] => {
    if (namespace !== undefined || !isBelowSpend({ path: 'spec', ...spec }, old(), currentSpend)) return [];
    const until = budgetResetDate === undefined ? '' : ` until ${budgetResetDate}`;
    const message = `is less than the ${currentSpend} dollars of status.currentSpend, so every request is refused${until}; raise it to continue`;
    return [{ rule: 'BudgetBelowSpend', path: 'spec.maxBudget', value: spec.maxBudget, message, effect: 'warn' }];
  });
