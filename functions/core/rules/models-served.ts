// Does the instance serve every model that a key, a user or a team names? Exactly that name (SPEC 2.3).
import type { Finding } from '../finding.ts';
import { didYouMean } from '../nearest.ts';
import { type InstanceName, toPath } from './instance-found.ts';

const MOST_NAMED = 8;
const MOST_COMPARED = 20;

export interface NamesModels {
  readonly models: ReadonlyArray<string | undefined>;
  readonly modelMaxBudget?: Readonly<Record<string, unknown>> | undefined;
}

/** `served` are the `modelName`s of the instance, each once. */
export function modelsServed(
  { models, modelMaxBudget = {} }: NamesModels,
  instance: InstanceName,
  served: ReadonlySet<string>,
): ReadonlyArray<Finding> {
  const budgets = Object.keys(modelMaxBudget);
  if ([...models, ...budgets].every((model) => model === undefined || served.has(model))) return [];
  const names = [...served];
  const at = JSON.stringify(toPath(instance));
  const sentence = (model: string, index: number) =>
    `instance ${at} serves no model of exactly this name${remedy(model, index, names)}`;
  const refused = models.flatMap((model, index): Finding[] =>
    model === undefined || served.has(model)
      ? []
      : [finding('refuse', `spec.models[${index}]`, model, sentence(model, index))],
  );
  const warned = budgets
    .filter((model) => !served.has(model))
    .map((model, index) =>
      finding('warn', `spec.modelMaxBudget[${JSON.stringify(model)}]`, undefined, sentence(model, index)),
    );
  return [...refused, ...warned];
}

const finding = (effect: 'refuse' | 'warn', path: string, value: string | undefined, message: string): Finding => ({
  rule: 'ModelNotServed',
  path,
  value,
  message,
  effect,
});

/** What other gateways write for all models. */
const ALL: ReadonlySet<string> = new Set(['*', 'all', 'any', 'all-models', 'all-proxy-models', 'all-team-models']);

/** Comparing hundreds of names with hundreds of others takes seconds, and nobody reads that far. */
function remedy(model: string, index: number, served: ReadonlyArray<string>): string {
  if (index >= MOST_COMPARED) return '; correct the name, or add an entry to the instance';
  if (ALL.has(model)) return '; remove it: an empty list means every model of the instance';
  const meant = didYouMean(model, served);
  if (meant !== '') return meant;
  if (served.length === 0) return '; add an entry to the instance, which serves none yet';
  const names = served.slice(0, MOST_NAMED).map((name) => JSON.stringify(name));
  const more = served.length > MOST_NAMED ? `, and ${served.length - MOST_NAMED} more` : '';
  return `; add an entry to the instance, or choose among what it serves: ${names.join(', ')}${more}`;
}
