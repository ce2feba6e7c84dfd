// Does the instance serve every model that the object names?
import { modelsServed as judgeModels } from '#core/rules/models-served.ts';
import type { Check } from '../check.ts';
import { KeyView, servedBy, toView } from '../spec-views.ts';
import { instanceOf } from './instance-of.ts';

export const modelsServed: Check = async ({ object }, lookup) => {
  const { models, modelMaxBudget } = toView(KeyView, object.spec);
  if (models.length === 0 && Object.keys(modelMaxBudget).length === 0) return [];
  const reference = await instanceOf(object, lookup);
  if (reference?.instance === undefined) return [];
  return judgeModels({ models, modelMaxBudget }, reference, servedBy(reference.instance.spec));
};
