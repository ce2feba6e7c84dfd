// Rules about models that a key, a user or a team names: the instance serves each, by exactly that name.
import type { Finding } from '../finding.ts';
import { didYouMean } from '../nearest.ts';
import { type InstanceName, toPath } from './instance.ts';

const MAX_NAMED = 8;
const MAX_COMPARED = 20;

/** `served` are the `modelName`s of the instance, each once. */
export function modelsServed(
  { models }: { readonly models: ReadonlyArray<string> },
  instance: InstanceName,
  served: ReadonlySet<string>,
): ReadonlyArray<Finding<'ModelNotServed'>> {
  const names = [...served];
  const must = `must be exactly a modelName of instance ${JSON.stringify(toPath(instance))}`;
  return models.flatMap((model, index): Finding<'ModelNotServed'>[] => {
    if (served.has(model)) return [];
    const message = `${must}${remedy(model, index, names)}`;
    const path = `spec.models[${index}]`;
    return [{ rule: 'ModelNotServed', type: 'Not found', path, value: model, message, effect: 'refuse' }];
  });
}

/** Budgets of models that the instance does not serve limit nothing: a typo would cost money. */
export function modelBudgetsServed(
  { modelMaxBudget = {} }: { readonly modelMaxBudget?: object | undefined },
  served: ReadonlySet<string>,
): ReadonlyArray<Finding> {
  return Object.keys(modelMaxBudget).flatMap((model, index): Finding[] => {
    if (served.has(model)) return [];
    const message = `is no modelName of the instance, so this budget limits nothing${remedy(model, index, [...served])}`;
    const path = `spec.modelMaxBudget[${JSON.stringify(model)}]`;
    return [{ rule: 'ModelBudgetNotServed', path, value: model, message, effect: 'warn' }];
  });
}

/** Names that mean all models in other gateways. */
const ALL: ReadonlySet<string> = new Set(['*', 'all', 'any', 'all-models', 'all-proxy-models', 'all-team-models']);

/** The advice. Comparing hundreds of names with hundreds of others takes seconds, so only the first are compared. */
function remedy(model: string, index: number, served: ReadonlyArray<string>): string {
  if (index >= MAX_COMPARED) return '; correct the name, or add an entry to the instance';
  if (ALL.has(model)) return '; remove it: an empty list means every model of the instance';
  const meant = didYouMean(model, served);
  if (meant !== '') return meant;
  if (served.length === 0) return '; add an entry to the instance, which has none yet';
  const names = served.slice(0, MAX_NAMED).map((name) => JSON.stringify(name));
  const more = served.length > MAX_NAMED ? `, and ${served.length - MAX_NAMED} more` : '';
  return `; add an entry to the instance, or choose among its own: ${names.join(', ')}${more}`;
}
