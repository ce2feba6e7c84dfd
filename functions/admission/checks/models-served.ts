// Does the instance serve every model that the object names? Exactly that name (SPEC 2.3).
import type { Check } from '../check.ts';
import type { Finding } from '../finding.ts';
import { didYouMean } from '../nearest.ts';
import { InstanceView, KeyView, toView } from '../spec-views.ts';
import { instanceOf } from './instance-of.ts';

const MOST_NAMED = 8;
const MOST_COMPARED = 20;

export const modelsServed: Check = async ({ object }, lookup) => {
  const { models, modelMaxBudget } = toView(KeyView, object.spec);
  const budgets = Object.keys(modelMaxBudget);
  if (models.length === 0 && budgets.length === 0) return [];
  const reference = await instanceOf(object, lookup);
  if (reference?.instance === undefined) return [];

  const entries = toView(InstanceView, reference.instance.spec).models;
  const served = [...new Set(entries.flatMap(({ modelName }) => (modelName === undefined ? [] : [modelName])))];
  const isServed = new Set(served);
  const at = JSON.stringify(`${reference.namespace}/${reference.name}`);
  // Comparing hundreds of names with hundreds of others takes seconds, and nobody reads that far.
  const sentence = (model: string, index: number) =>
    `instance ${at} serves no model of exactly this name` +
    (index < MOST_COMPARED ? didYouMean(model, served) || choices(served) : '');
  const refused = models.flatMap((model, index): Finding[] =>
    model === undefined || isServed.has(model)
      ? []
      : [finding('refuse', `spec.models[${index}]`, model, sentence(model, index))],
  );
  const warned = budgets
    .filter((model) => !isServed.has(model))
    .map((model, index) =>
      finding('warn', `spec.modelMaxBudget[${JSON.stringify(model)}]`, undefined, sentence(model, index)),
    );
  return [...refused, ...warned];
};

const finding = (effect: 'refuse' | 'warn', path: string, value: string | undefined, message: string): Finding => ({
  rule: 'ModelNotServed',
  path,
  value,
  message,
  effect,
});

function choices(served: ReadonlyArray<string>): string {
  if (served.length === 0) return '; it serves none yet';
  const names = served.slice(0, MOST_NAMED).map((name) => JSON.stringify(name));
  return `; it serves ${names.join(', ')}${served.length > MOST_NAMED ? `, and ${served.length - MOST_NAMED} more` : ''}`;
}
