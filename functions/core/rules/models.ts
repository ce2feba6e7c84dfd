// Rules about models that a key, a user or a team names: the instance serves each, by exactly that name.
import { cutText } from '../json/text.ts';
import type { Finding } from './finding.ts';
import { type InstanceName, toPath } from './instance.ts';
import type { DidYouMean } from './nearest-name.ts';

const MAX_NAMED = 8;
/** Characters of a name in a sentence that lists several. */
const MAX_NAME = 60;
const MAX_ADVISED = 20;

/** The `modelName`s of an instance, each once, and how to suggest one of them. */
export interface ServedModels {
  readonly has: (name: string) => boolean;
  readonly names: ReadonlyArray<string>;
  readonly didYouMean: DidYouMean;
}

export const toServedModels = (models: Iterable<string>, didYouMean: DidYouMean): ServedModels => {
  const served = new Set(models);
  return { has: (name) => served.has(name), names: [...served], didYouMean };
};

/** `path`: that of the list. */
export function modelsServed(
  { models, path: list = 'spec.models' }: { readonly models: ReadonlyArray<string>; readonly path?: string },
  instance: InstanceName,
  served: ServedModels,
): ReadonlyArray<Finding<'ModelNotServed'>> {
  const must = `must be exactly a modelName of instance ${JSON.stringify(toPath(instance))}`;
  return models.flatMap((model, index): Finding<'ModelNotServed'>[] => {
    if (served.has(model)) return [];
    const message = `${must}${remedy(model, index, served)}`;
    const path = `${list}[${index}]`;
    return [{ rule: 'ModelNotServed', type: 'Not found', path, value: model, message, effect: 'refuse' }];
  });
}

/** Budgets of models that the instance does not serve limit nothing: a typo would cost money. */
export function modelBudgetsServed(
  { modelMaxBudget = {} }: { readonly modelMaxBudget?: object | undefined },
  served: ServedModels,
): ReadonlyArray<Finding> {
  return Object.keys(modelMaxBudget).flatMap((model, index): Finding[] => {
    if (served.has(model)) return [];
    const message = `is no modelName of the instance, so this budget limits nothing${remedy(model, index, served)}`;
    const path = `spec.modelMaxBudget[${JSON.stringify(model)}]`;
    return [{ rule: 'ModelBudgetNotServed', path, value: model, message, effect: 'warn' }];
  });
}

/** Names that mean all models in other gateways. */
const ALL: ReadonlySet<string> = new Set(['*', 'all', 'any', 'all-models', 'all-proxy-models', 'all-team-models']);

/** The advice. A message shows few of the findings, so only the first get more than a sentence. */
function remedy(model: string, index: number, { names, didYouMean }: ServedModels): string {
  if (index >= MAX_ADVISED) return '; correct the name, or add a model entry to the instance';
  if (ALL.has(model)) return '; remove it: an empty list means every model of the instance';
  const meant = didYouMean(model, names);
  if (meant !== '') return meant;
  if (names.length === 0) return '; add a model entry to the instance, which has none yet';
  const first = names.slice(0, MAX_NAMED).map((name) => JSON.stringify(cutText(name, MAX_NAME)));
  const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : '';
  return `; add a model entry to the instance, or choose one of its models: ${first.join(', ')}${more}`;
}
