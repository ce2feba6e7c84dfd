// Rules about models that a key, a user or a team names: the instance serves each, by exactly that name (SPEC 2.3).
import type { Finding } from '../finding.ts';
import { didYouMean } from '../nearest.ts';
import { type InstanceName, toPath } from './instance.ts';

const MAX_NAMED = 8;
const MAX_COMPARED = 20;

interface NamesModels {
  readonly models: ReadonlyArray<string>;
  readonly modelMaxBudget?: Readonly<Record<string, unknown>> | undefined;
}

/** `served` are the `modelName`s of the instance, each once. A budget for a model that nobody serves bounds nothing yet. */
export function modelsServed(
  { models, modelMaxBudget = {} }: NamesModels,
  instance: InstanceName,
  served: ReadonlySet<string>,
): ReadonlyArray<Finding> {
  const names = [...served];
  const must = `must be exactly a modelName of instance ${JSON.stringify(toPath(instance))}`;
  const notServed = (model: string, index: number) => ({
    rule: 'ModelNotServed',
    value: model,
    message: `${must}${remedy(model, index, names)}`,
  });
  const refused = models.flatMap((model, index): Finding[] => {
    if (served.has(model)) return [];
    return [{ ...notServed(model, index), type: 'Not found', path: `spec.models[${index}]`, effect: 'refuse' }];
  });
  const warned = Object.keys(modelMaxBudget)
    .filter((model) => !served.has(model))
    .map((model, index): Finding => {
      const path = `spec.modelMaxBudget[${JSON.stringify(model)}]`;
      return { ...notServed(model, index), path, value: undefined, effect: 'warn' };
    });
  return [...refused, ...warned];
}

/** What other gateways write for all models. */
const ALL: ReadonlySet<string> = new Set(['*', 'all', 'any', 'all-models', 'all-proxy-models', 'all-team-models']);

/** Comparing hundreds of names with hundreds of others takes seconds, and nobody reads that far. */
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
