// Checks that VirtualKeys, Users and Teams have in common: instance, models, aliases, references, windows, a budget of zero.

import { parseMoney } from '#core/money/money.ts';
import { isTimeZone } from '#core/money/time-zone.ts';
import { aliasTaken } from '#core/rules/conflicts.ts';
import type { Finding } from '#core/rules/finding.ts';
import { instanceIsDeleted, instanceNotFound } from '#core/rules/instance.ts';
import { modelsServed as findUnserved, modelBudgetsServed, toServedModels } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { ConnectionRef } from '#crds/kinds/shared-fields.ts';
import type { Check } from '../check.ts';
import type { ScopeObjectFacts } from '../facts/scope-object.ts';

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

export const timeZoneKnown: Check<ScopeObjectSpec> = ({ spec: { budgetTimeZone: value = 'UTC' } }) => {
  if (isTimeZone(value)) return [];
  const message = 'must be a time zone of the IANA database; write its name, e.g. "Europe/Berlin"';
  return [
    { rule: 'TimeZoneUnknown', path: 'spec.budgetTimeZone', type: 'Not found', value, message, effect: 'refuse' },
  ];
};

export const timeZoneUsed: ScopeObjectCheck = ({ spec: { budgetTimeZone: value, budgetWindow } }) => {
  if (value === undefined || budgetWindow === 'Calendar') return [];
  const message = 'has no effect on Rolling windows; set budgetWindow: Calendar, or remove it';
  return [{ rule: 'TimeZoneUnused', path: 'spec.budgetTimeZone', value, message, effect: 'warn' }];
};

export const calendarUsed: ScopeObjectCheck = ({ spec: { maxBudget, budgetDuration, budgetWindow: value } }) => {
  const missing = Object.entries({ maxBudget, budgetDuration }).filter(([, field]) => field === undefined);
  if (value === 'Rolling' || missing.length === 0) return [];
  const message = `has no effect without ${missing.map(([name]) => name).join(' and ')}; add ${missing.length === 1 ? 'it' : 'them'}, or remove budgetWindow`;
  return [{ rule: 'CalendarUnused', path: 'spec.budgetWindow', value, message, effect: 'warn' }];
};

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

export const zeroBudget: ScopeObjectCheck = ({ spec: { maxBudget, budgets = [], modelMaxBudget = {} } }) => {
  const ofWindows = budgets.map((one, index) => [`spec.budgets[${index}].maxBudget`, one.maxBudget] as const);
  const ofModels = Object.entries(modelMaxBudget).map(
    ([model, one]) => [`spec.modelMaxBudget[${JSON.stringify(model)}].maxBudget`, one.maxBudget] as const,
  );
  return [['spec.maxBudget', maxBudget] as const, ...ofWindows, ...ofModels].flatMap(([path, value]): Finding[] => {
    if (value === undefined || parseMoney(value) !== 0n) return [];
    const message =
      'a budget of zero is spent from the start, so every request that is charged to it is refused, even one for a free model; raise it';
    return [{ rule: 'ZeroBudget', path, value, message, effect: 'warn' }];
  });
};
