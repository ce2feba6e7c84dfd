// Checks that keys, users and teams have in common: their instance, its models, aliases, references, a budget of zero.

import { parseMoney } from '#core/money/money.ts';
import { aliasTaken } from '#core/rules/conflicts.ts';
import type { Finding } from '#core/rules/finding.ts';
import { instanceIsDeleted, instanceNotFound } from '#core/rules/instance.ts';
import { modelsServed as findUnserved, modelBudgetsServed, toServedModels } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { ConnectionRef } from '#crds/kinds/shared-fields.ts';
import type { Check } from '../check.ts';
import type { MemberFacts } from '../facts.ts';

interface MemberSpec {
  readonly connectionRef: ConnectionRef;
  readonly models: string[];
  readonly modelMaxBudget?: Readonly<Record<string, { readonly maxBudget: string }>> | undefined;
  readonly budgets?: ReadonlyArray<{ readonly maxBudget: string }> | undefined;
  readonly maxBudget?: string | undefined;
}
type MemberCheck = Check<MemberSpec, MemberFacts>;

export const instanceExists: MemberCheck = ({ metadata, spec, facts: { instance } }) => {
  const { instanceRef } = spec.connectionRef;
  if (instance === undefined) return [instanceNotFound(instanceRef, metadata.namespace)];
  return instance.isDeleted ? [instanceIsDeleted(instanceRef)] : [];
};

export const modelsServed: MemberCheck = ({ spec, didYouMean, facts: { instance } }) => {
  if (instance === undefined) return [];
  return findUnserved(spec, spec.connectionRef.instanceRef, toServedModels(instance.served, didYouMean));
};

export const modelBudgets: MemberCheck = ({ spec, didYouMean, facts: { instance } }) =>
  instance === undefined ? [] : modelBudgetsServed(spec, toServedModels(instance.served, didYouMean));

export const aliasesFree: MemberCheck = ({ facts: { taken } }) => taken.map(aliasTaken);

/** Without an instance of its own to compare with (a finding already), only missing objects are named. */
export const referencesFound: MemberCheck = ({ spec, facts: { instance, references } }) => {
  const own = instance === undefined ? undefined : spec.connectionRef.instanceRef;
  return references.flatMap(([reference, found]) => referenceFound(reference, found, own) ?? []);
};

export const zeroBudget: MemberCheck = ({ spec: { maxBudget, budgets = [], modelMaxBudget = {} } }) => {
  const ofWindows = budgets.map((one, place) => [`spec.budgets[${place}].maxBudget`, one.maxBudget] as const);
  const ofModels = Object.entries(modelMaxBudget).map(
    ([model, one]) => [`spec.modelMaxBudget[${JSON.stringify(model)}].maxBudget`, one.maxBudget] as const,
  );
  return [['spec.maxBudget', maxBudget] as const, ...ofWindows, ...ofModels].flatMap(([path, value]): Finding[] => {
    if (value === undefined || parseMoney(value) !== 0n) return [];
    const message =
      'a budget of zero is used up from the start, so nothing that it pays for works, free models included; raise it';
    return [{ rule: 'ZeroBudget', path, value, message, effect: 'warn' }];
  });
};
